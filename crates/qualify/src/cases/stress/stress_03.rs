//! STRESS-03: many connections.

use std::time::{Duration, Instant};

use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, FlowAsk, FlowPair};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "STRESS-03",
    title: "many connections",
    does: "1000 to 3000 TCP connections at once, and many short ones.",
    holds: "All come to their end, every byte right.",
    skipped: "",
    source: "NICDRV netstress, LNST",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["at_once", "short"], limit_s: 300, judge },
};

/// Connections of one flow.
const EACH: u32 = 64;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let short = bench.variant() == "short";
    let flows = bench.count(if short { 200 } else { 16 }, 2);
    let ask = FlowAsk {
        connections: EACH,
        bytes_per_connection: Some(if short { 1000 } else { 256 << 10 }),
        bits_per_second: if short { 0 } else { 20_000_000 },
        ..FlowAsk::tcp(Version::V4)
    };
    let mut finished = 0;
    let mut open = Vec::new();
    for _ in 0..flows {
        let flow = bench.start_flow(&ask)?;
        if short {
            finished += end(bench, &flow)?;
        } else {
            open.push(flow);
        }
    }
    for flow in &open {
        finished += end(bench, flow)?;
    }
    let must = flows as u32 * EACH;
    bench.measure("connections", f64::from(must), "");
    if finished != must {
        bench.fail(ReasonCode::Loss, format!("{finished} of {must} connections came to their end"));
    }
    Ok(())
}

/// Waits until both sides have sent and compared all bytes.
fn end(bench: &mut Bench, flow: &FlowPair) -> Result<u32, Trouble> {
    let (begun, limit) = (Instant::now(), bench.patient(Duration::from_secs(60)));
    while !bench.dut.look_at_flow(flow.dut)?.over && begun.elapsed() < limit {
        bench.sleep(Duration::from_millis(5))?;
    }
    let (dut, peer) = bench.finish_flow(flow, Duration::from_secs(20))?;
    Ok(dut.finished.min(peer.finished))
}
