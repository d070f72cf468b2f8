//! Finds what the slower end can do, so that counts and time limits follow it.

use std::time::{Duration, Instant};

use linerate_model::bench::EchoSpec;
use linerate_model::bench::FrameOut;
use linerate_model::qualification::Calibration;

use crate::bench::{Bench, FlowAsk, Way};
use crate::frame::{Version, out};
use crate::trouble::Trouble;

/// Probe frames a second that counts are made for.
const FRAMES_PER_SECOND: f64 = 10_000.0;
/// Compared TCP bits a second that durations are made for.
const FLOW_BITS_PER_SECOND: f64 = 200e6;
/// Round trip of an agent request that lock-step is made for, nanoseconds.
const REQUEST_NS: f64 = 2e6;

/// How much slower the slower end is than what counts are made for; 1 or more.
pub(crate) fn slowness(calibration: &Calibration) -> f64 {
    let frames = FRAMES_PER_SECOND / calibration.frames_per_second.max(1.0);
    let flow = FLOW_BITS_PER_SECOND / calibration.flow_bits_per_second.max(1000.0);
    let request = calibration.request_ns as f64 / REQUEST_NS;
    // A flow tells of the line rate: it stretches half as much as what costs CPU does.
    frames.max(request).max(flow.sqrt()).clamp(1.0, 200.0)
}

/// Measures: about half a second on a fast machine.
pub(crate) fn calibrate(bench: &mut Bench) -> Result<Calibration, Trouble> {
    let request_ns = request_ns(bench)?;
    let frames = Way::BOTH.into_iter().map(|way| frames_per_second(bench, way));
    let frames: Vec<f64> = frames.collect::<Result<_, _>>()?;
    Ok(Calibration {
        frames_per_second: frames.into_iter().fold(f64::INFINITY, f64::min),
        flow_bits_per_second: flow_bits_per_second(bench)?,
        request_ns,
        round_trip_ns: round_trip_ns(bench)?,
    })
}

fn request_ns(bench: &mut Bench) -> Result<u64, Trouble> {
    const ROUNDS: u32 = 5;
    let mut slowest = 0;
    for station in [&mut bench.dut, &mut bench.peer] {
        let began = Instant::now();
        for _ in 0..ROUNDS {
            station.node.clock_ns()?;
        }
        slowest = slowest.max(crate::station::nanoseconds(began.elapsed() / ROUNDS));
    }
    Ok(slowest)
}

fn frames_per_second(bench: &mut Bench, way: Way) -> Result<f64, Trouble> {
    const COUNT: usize = 512;
    let lane = bench.lane(way)?;
    let hosts = bench.hosts(way);
    let frames: Vec<FrameOut> = bench.probes(&hosts, &[60; COUNT]).into_iter().map(out).collect();
    let began = Instant::now();
    let (sender, receiver) = bench.ends(way);
    sender.send(&lane.out, &frames)?;
    let (idle, limit) = (Duration::from_secs(1), Duration::from_secs(30));
    let (mut got, mut last) = (0, began.elapsed());
    while got < COUNT {
        let (new, _) = receiver.receive_within(&lane.into, COUNT - got, idle, limit)?;
        if new.is_empty() {
            break;
        }
        got += new.len();
        last = began.elapsed();
    }
    bench.close_lane(&lane)?;
    Ok(got as f64 / last.as_secs_f64().max(1e-6))
}

fn flow_bits_per_second(bench: &mut Bench) -> Result<f64, Trouble> {
    const TIME: Duration = Duration::from_millis(200);
    let Some(version) = version(bench) else { return Ok(FLOW_BITS_PER_SECOND) };
    let ask = FlowAsk { peer_sends: false, ..FlowAsk::tcp(version) };
    let pair = bench.start_flow(&ask)?;
    bench.sleep(TIME)?;
    let limit = Duration::from_secs(10);
    let began = Instant::now();
    bench.dut.finish_flow(pair.dut, limit)?;
    let peer = bench.peer.finish_flow(pair.peer, limit)?;
    Ok(peer.received_bytes as f64 * 8.0 / (TIME + began.elapsed()).as_secs_f64())
}

fn round_trip_ns(bench: &mut Bench) -> Result<u64, Trouble> {
    let Some(to) = version(bench).and_then(|version| bench.peer.address(version)) else { return Ok(0) };
    let spec = EchoSpec {
        to,
        link: None,
        payloads_bytes: vec![56],
        rounds: 10,
        in_flight: 1,
        gap_ns: 0,
        timeout_ns: 2_000_000_000,
        dont_fragment: false,
        seed: 1,
    };
    Ok(bench.dut.echo(spec)?.round_trip_ns.map_or(0, |[_, median, _]| median))
}

fn version(bench: &Bench) -> Option<Version> {
    [Version::V4, Version::V6].into_iter().find(|version| bench.addresses(*version).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cpu_and_a_slow_line_stretch_and_a_fast_machine_does_not() {
        let fast = Calibration {
            frames_per_second: 1e6,
            flow_bits_per_second: 1e10,
            request_ns: 100_000,
            round_trip_ns: 50_000,
        };
        assert_eq!(slowness(&fast), 1.0);
        assert_eq!(slowness(&Calibration { frames_per_second: 1000.0, ..fast }), 10.0);
        assert!(slowness(&Calibration { flow_bits_per_second: 8e6, ..fast }) >= 5.0);
        assert!(slowness(&Calibration { request_ns: 0, frames_per_second: 0.0, ..fast }) <= 200.0);
    }
}
