//! What a stranger may ask of a server at the most, so that one client can't take the machine.

use std::time::Duration;

use linerate_model::profile::{Group, Profile};
use linerate_model::trial::Trial;
use linerate_model::units::{Rate, RateUnit};
use linerate_model::workload::{TcpBidir, Workload};

/// Longest trial where `--max-duration` says nothing.
pub const LONGEST_TRIAL: Duration = Duration::from_secs(24 * 3600);
/// Most streams of a trial.
pub const MOST_STREAMS: u32 = 256;
/// Most bytes of buffers that the streams of a trial may need.
pub const MOST_BUFFER_BYTES: u64 = 256 << 20;

/// Refuses a trial that would take too much of a server.
///
/// # Errors
/// Says what is allowed.
pub fn check_size(trial: &Trial) -> Result<(), String> {
    if trial.streams > MOST_STREAMS {
        return Err(format!("--streams {}: a server takes {MOST_STREAMS} at the most", trial.streams));
    }
    let call = match &trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => w.size.0,
        Workload::TcpBidir(w) => w.stream.size.0,
        Workload::TcpRr(w) => w.request.0.max(w.response.0),
        Workload::TcpCrr(w) => w.request.0.max(w.response.0),
        Workload::UdpStream(w) => w.size.0,
        Workload::UdpRr(w) => w.request.0.max(w.response.0),
        Workload::Profile(w) => profile_buffer(&w.profile),
    };
    // Each stream has a buffer for a call, and all share two patterns of that length.
    let needed = call.saturating_mul(u64::from(trial.streams) + 2);
    if needed > MOST_BUFFER_BYTES {
        return Err(format!(
            "{} streams of {call} bytes a call need {} MiB of buffers: a server gives {} MiB at the most",
            trial.streams,
            needed >> 20,
            MOST_BUFFER_BYTES >> 20
        ));
    }
    Ok(())
}

/// The buffer of a strand: a transfer larger than that takes several calls.
fn profile_buffer(profile: &Profile) -> u64 {
    let largest = profile.groups.iter().flat_map(Group::flowops).map(|f| u64::from(f.largest())).max();
    largest.unwrap_or(0).min(1 << 20)
}

/// Refuses a trial that would have the server send streams faster than `most` bits a second. Answers to requests are bounded by
/// the requests themselves.
///
/// # Errors
/// Says what is allowed.
pub fn check_rate(trial: &Trial, most: Option<u64>) -> Result<(), String> {
    if let (Some(_), Workload::Profile(_)) = (most, &trial.workload) {
        return Err("this server sends at a limited rate, which a profile does not know".to_owned());
    }
    let (Some(most), Workload::TcpReverse(stream) | Workload::TcpBidir(TcpBidir { stream, .. })) =
        (most, &trial.workload)
    else {
        return Ok(());
    };
    let asked = match stream.rate {
        Some(Rate { per_second, unit: RateUnit::BitsPerSecond }) => Some(per_second),
        Some(Rate { per_second, .. }) => Some(per_second.saturating_mul(stream.size.0).saturating_mul(8)),
        None => None,
    };
    if asked.is_some_and(|rate| rate <= most) {
        return Ok(());
    }
    Err(format!("this server sends {most} bits a second at the most: ask for a --rate within that"))
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::{Experiment, PathFacts};
    use linerate_model::trial::Family;
    use linerate_model::units::ByteCount;
    use linerate_model::workload::WorkloadKind;

    use super::*;

    fn trial(size: u64, streams: u32) -> Trial {
        let asked = Experiment {
            workloads: vec![WorkloadKind::TcpStream],
            sizes: vec![ByteCount(size)],
            streams: vec![streams],
            ..Experiment::default()
        };
        asked.combinations(&[PathFacts { family: Family::V4, mtu_bytes: 1500 }]).unwrap().remove(0)
    }

    #[test]
    fn one_client_cannot_take_the_machine() {
        assert!(check_size(&trial(128 << 10, 128)).is_ok());
        assert!(check_size(&trial(64 << 20, 1)).is_ok());
        assert!(check_size(&trial(64 << 20, 4)).unwrap_err().contains("256 MiB"));
        assert!(check_size(&trial(1, 257)).unwrap_err().contains("256"));
    }
}
