//! Paced probes that are judged one by one on the node: more frames than fit through an agent's stream.

use std::time::Duration;

use linerate_model::bench::probe;
use linerate_model::bench::{Bytes, GenerateSpec, PortOptions, TallySpec};
use linerate_model::qualification::ReasonCode;

use super::{Bench, Way};
use crate::station::nanoseconds;
use crate::trouble::Trouble;

/// Frame lengths without FCS that are used in turn: short ones, odd ones and full ones, so that what a buffer held before
/// is always longer or shorter than what it holds now.
const LENGTHS_BYTES: [u32; 6] = [60, 1514, 61, 509, 1023, 1513];
/// Nothing came for so long: nothing will, on a fast machine.
const IDLE: Duration = Duration::from_millis(100);

impl Bench {
    /// Sends so many probes at half the rate that the slower end can do. Each that is lost, doubled, late or damaged is a
    /// fault; `when` says under which circumstances.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`]; a harness fault where the tally itself lost frames.
    pub fn half_rate(&mut self, way: Way, count: u64, when: &str) -> Result<(), Trouble> {
        // Generators and tallies are for some thousand frames a second: beyond, a busy machine loses frames by itself.
        const MOST_PER_SECOND: f64 = 20_000.0;
        let able = self.calibration().map_or(MOST_PER_SECOND, |known| known.frames_per_second);
        let rate = (able / 2.0).clamp(10.0, MOST_PER_SECOND);
        let longest = self.dut.mtu().min(self.peer.mtu()) + 14;
        let hosts = self.hosts(way);
        let (run, stream) = (self.run(), self.stream());
        let tally = TallySpec {
            port: PortOptions { ether_type: probe::ETHER_TYPE, ..PortOptions::default() },
            run,
            streams: vec![stream],
            header_bytes: 0,
            latency: false,
        };
        let generate = GenerateSpec {
            port: PortOptions { send_only: true, ..PortOptions::default() },
            to: hosts.to_mac,
            from: hosts.from_mac,
            header: Bytes(Vec::new()),
            run,
            stream,
            lengths_bytes: LENGTHS_BYTES.map(|length| length.min(longest)).to_vec(),
            count: Some(count),
            frames_per_second: rate as u64,
            duration_ns: nanoseconds(self.patient(Duration::from_secs(60))),
            timed: false,
        };
        let time = Duration::from_secs_f64(count as f64 / rate);
        let (idle, wait) = (self.patient(IDLE), 2 * time + self.patient(Duration::from_secs(5)));
        let (sender, receiver) = self.ends(way);
        let tally = receiver.tally(tally)?;
        let generator = sender.generate(generate)?;
        let sent = sender.finish_generate(generator, wait)?;
        let seen = receiver.finish_tally(tally, idle, wait)?;
        let name = receiver.name();
        if seen.dropped_here > 0 {
            let text = format!("{name}: the tally had no room for {} frames", seen.dropped_here);
            return Err(Trouble::harness(text));
        }
        let what = format!("{} {when}", way.words());
        if let Some((why, times)) = sent.refused {
            self.fail(ReasonCode::Refused, format!("{what}: the kernel refused {times} frames: {why}"));
        }
        let lost = sent.sent.saturating_sub(seen.whole + seen.damaged + seen.truncated);
        for (code, number, how) in [
            (ReasonCode::Loss, lost, "were lost"),
            (ReasonCode::Dup, seen.duplicates, "came again"),
            (ReasonCode::Reorder, seen.reordered, "came late"),
            (ReasonCode::Data, seen.damaged, "have a wrong byte"),
            (ReasonCode::Len, seen.truncated, "were cut"),
        ] {
            if number > 0 {
                self.fail(code, format!("{what}: {number} of {} frames {how}", sent.sent));
            }
        }
        Ok(())
    }
}
