//! From the command line's words to an experiment.

use linerate_model::experiment::{Experiment, Timing};
use linerate_model::trial::{Family, Pinning};
use linerate_model::units::{ByteCount, Rate, RateUnit, parse_seconds_ns};
use linerate_model::values::{expand_sizes, parse_cpu_list};
use linerate_model::workload::{SendMethod, WorkloadKind};

use crate::cli::{RunArgs, TimingArgs, TrafficArgs};
use crate::failure::Failure;

/// Window of each trial of the quick suite: with warm-up and overhead 14 trials take about half a minute.
const QUICK: Timing = Timing { duration_ns: 1_500_000_000, warmup_ns: 300_000_000, interval_ns: None };
/// Seed of the payload generator. Fixed, so that a damaged byte can be found again.
const VERIFY_SEED: u64 = 0x6c69_6e65_7261_7465;

/// What the command line asks for.
pub(crate) fn experiment(args: &RunArgs) -> Result<Experiment, Failure> {
    let traffic = &args.traffic;
    let quick = traffic.workload.is_empty();
    let workloads = if quick {
        WorkloadKind::ALL.to_vec()
    } else {
        traffic.workload.iter().map(|w| w.parse().map_err(Failure::usage)).collect::<Result<_, _>>()?
    };
    let (stream_rates, request_rates) = rates(traffic, &workloads)?;
    Ok(Experiment {
        families: families(&args.nodes.family, quick)?,
        sizes: sizes(traffic.size.as_deref(), "--size")?,
        streams: traffic.streams.clone(),
        sends: traffic.send.iter().map(|s| send_method(s)).collect::<Result<_, _>>()?,
        buffers: sizes(traffic.socket_buffer.as_deref(), "--socket-buffer")?,
        nodelay: traffic.nodelay,
        mss: traffic.mss.clone(),
        congestions: traffic.congestion.clone(),
        requests: sizes(traffic.request.as_deref(), "--request")?,
        responses: sizes(traffic.response.as_deref(), "--response")?,
        in_flights: traffic.in_flight.clone(),
        stream_rates,
        request_rates,
        tos: traffic.tos.as_deref().map(tos).transpose()?,
        one_connection: traffic.one_connection,
        bytes: args.timing.bytes.as_deref().map(bytes).transpose()?,
        transactions: args.timing.transactions,
        timing: timing(&args.timing, quick)?,
        repeats: args.timing.repeat,
        verify_seed: traffic.verify.then_some(VERIFY_SEED),
        pin: traffic.pin.as_deref().map(pinning).transpose()?.unwrap_or_default(),
        workloads,
    })
}

fn families(words: &[String], quick: bool) -> Result<Vec<Family>, Failure> {
    if words.is_empty() {
        return Ok(if quick { vec![Family::V4, Family::V6] } else { Vec::new() });
    }
    let parse = |word: &String| match word.as_str() {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        other => Err(Failure::usage(format!("--family {other}: must be 4, 6 or 4,6"))),
    };
    words.iter().map(parse).collect()
}

fn sizes(list: Option<&str>, option: &str) -> Result<Vec<ByteCount>, Failure> {
    match list {
        None => Ok(Vec::new()),
        Some(list) => expand_sizes(list).map_err(|e| Failure::usage(format!("{option}: {e}"))),
    }
}

fn bytes(text: &str) -> Result<u64, Failure> {
    text.parse::<ByteCount>().map(|b| b.0).map_err(|e| Failure::usage(format!("--bytes: {e}")))
}

fn send_method(word: &str) -> Result<SendMethod, Failure> {
    match word {
        "write" => Ok(SendMethod::Write),
        "sendfile" => Ok(SendMethod::Sendfile),
        other => Err(Failure::usage(format!("--send {other}: must be write or sendfile"))),
    }
}

/// A rate without a unit means requests where only request/response is asked for, else bits.
fn rates(traffic: &TrafficArgs, workloads: &[WorkloadKind]) -> Result<(Vec<Rate>, Vec<Rate>), Failure> {
    let only_requests = workloads.iter().all(|w| w.is_transactional());
    let default = if only_requests { RateUnit::RequestsPerSecond } else { RateUnit::BitsPerSecond };
    let parse =
        |text: &String| Rate::parse(text, default).map_err(|e| Failure::usage(format!("--rate: {e}")));
    let all: Vec<Rate> = traffic.rate.iter().map(parse).collect::<Result<_, _>>()?;
    Ok(all.into_iter().partition(|r| r.unit != RateUnit::RequestsPerSecond))
}

fn tos(text: &str) -> Result<u8, Failure> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Failure::usage(format!("--tos {text}: must be 0 to 255, or 0x00 to 0xff")))
}

fn timing(args: &TimingArgs, quick: bool) -> Result<Timing, Failure> {
    let base = if quick { QUICK } else { Timing::default() };
    let seconds = |text: &Option<String>, option: &str| {
        text.as_deref()
            .map(|t| parse_seconds_ns(t).map_err(|e| Failure::usage(format!("{option}: {e}"))))
            .transpose()
    };
    Ok(Timing {
        duration_ns: seconds(&args.time, "-t")?.unwrap_or(base.duration_ns),
        warmup_ns: seconds(&args.warmup, "--warmup")?.unwrap_or(base.warmup_ns),
        interval_ns: seconds(&args.interval, "--interval")?,
    })
}

/// `dut=0,2-3,peer=1`: a part without `=` continues the list before it.
fn pinning(text: &str) -> Result<Pinning, Failure> {
    let wrong = |why: &str| Failure::usage(format!("--pin {text}: {why}; as in dut=0,peer=1 or dut=0,2-3"));
    let mut pin = Pinning::default();
    let mut list: Option<&mut Vec<u32>> = None;
    for part in text.split(',') {
        let cpus = match part.split_once('=') {
            Some(("dut", cpus)) => {
                list = Some(&mut pin.dut);
                cpus
            }
            Some(("peer", cpus)) => {
                list = Some(&mut pin.peer);
                cpus
            }
            Some((side, _)) => return Err(wrong(&format!("there is no '{side}'"))),
            None => part,
        };
        let cpus = parse_cpu_list(cpus).map_err(|e| wrong(&e.to_string()))?;
        list.as_mut().ok_or_else(|| wrong("it starts with dut= or peer="))?.extend(cpus);
    }
    Ok(pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_lists_for_each_side() {
        let pin = pinning("dut=0,2-3,peer=1").unwrap();
        assert_eq!((pin.dut, pin.peer), (vec![0, 2, 3], vec![1]));
        for wrong in ["0", "both=1", "dut=", "dut=a", ""] {
            assert!(pinning(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plain_rate_means_what_the_workload_counts() {
        let traffic = |rate: &str| TrafficArgs {
            workload: Vec::new(),
            size: None,
            streams: Vec::new(),
            send: Vec::new(),
            socket_buffer: None,
            nodelay: false,
            mss: Vec::new(),
            congestion: Vec::new(),
            request: None,
            response: None,
            in_flight: Vec::new(),
            rate: vec![rate.to_owned()],
            tos: None,
            one_connection: false,
            pin: None,
            verify: false,
        };
        let (streams, requests) = rates(&traffic("10k"), &[WorkloadKind::TcpRr]).ok().unwrap();
        assert_eq!((streams.len(), requests.len()), (0, 1));
        let (streams, requests) = rates(&traffic("10k"), &[WorkloadKind::TcpStream]).ok().unwrap();
        assert_eq!((streams.len(), requests.len()), (1, 0));
    }
}
