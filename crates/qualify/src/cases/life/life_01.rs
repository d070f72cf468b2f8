//! LIFE-01: down and up under traffic.

use std::time::{Duration, Instant};

use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, FlowAsk};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "LIFE-01",
    title: "down and up under traffic",
    does: "The link goes down and up 200 times, 0 to 500 ms apart, while TCP and UDP flows run both ways.",
    holds: "It comes back each time, TCP goes on or connects again with right data, nothing leaks.",
    skipped: "",
    source: "NICDRV test10, ksft, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

const ROUNDS: usize = 200;
/// The rounds end after this, however many there were; on a slow machine later.
const TIME: Duration = Duration::from_secs(20);
const BACK_WITHIN: Duration = Duration::from_secs(3);

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let slow = |ask: FlowAsk| FlowAsk { reconnect: true, bits_per_second: 5_000_000, ..ask };
    let tcp = bench.start_flow(&slow(FlowAsk::tcp(Version::V4)))?;
    let udp = bench.start_flow(&slow(FlowAsk::udp(Version::V4)))?;
    let (begun, limit) = (Instant::now(), bench.patient(TIME));
    let mut rounds = 0;
    while rounds < ROUNDS && begun.elapsed() < limit {
        let pause = Duration::from_millis(bench.rng().below(200));
        bench.sleep(pause)?;
        bench.dut.set_up(false)?;
        let pause = Duration::from_millis(bench.rng().below(200));
        bench.sleep(pause)?;
        bench.dut.set_up(true)?;
        let patience = bench.patient(BACK_WITHIN);
        if let Err(why) = bench.dut.await_carrier(patience)? {
            bench.fail(ReasonCode::Link, format!("round {rounds}: no carrier: {why}"));
            return Ok(());
        }
        rounds += 1;
    }
    bench.measure("rounds", rounds as f64, "");
    let before = bench.dut.look_at_flow(tcp.dut)?.received_bytes;
    let goes_on_within = bench.patient(Duration::from_secs(20));
    let begun = Instant::now();
    while bench.dut.look_at_flow(tcp.dut)?.received_bytes <= before {
        if begun.elapsed() > goes_on_within {
            bench.fail(
                ReasonCode::StuckRx,
                format!("TCP did not go on within {goes_on_within:?} after the last round"),
            );
            break;
        }
        bench.sleep(Duration::from_millis(50))?;
    }
    let (dut, peer) = bench.finish_flow(&tcp, Duration::from_secs(20))?;
    bench.measure("connections made again", f64::from(dut.reconnects + peer.reconnects), "");
    bench.finish_flow(&udp, Duration::from_secs(5)).map(drop)
}
