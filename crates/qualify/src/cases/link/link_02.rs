//! LINK-02: carrier lost and back.

use std::time::{Duration, Instant};

use linerate_model::bench::PortOptions;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::out;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "LINK-02",
    title: "carrier lost and back",
    does: "The peer's link, or the emulator's, goes off and on 50 times, for 1 ms to seconds, with \
           traffic queued.",
    holds: "Carrier follows, no more stale frames come than a queue holds, traffic goes on, no watchdog.",
    skipped: "Carrier cannot be controlled.",
    source: "NDISTest, LNST",
    privilege: Privilege::Admin,
    shown_on: "veth, e1000, igb, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 180, judge },
};

const ROUNDS: usize = 50;
const FOLLOWS_WITHIN: Duration = Duration::from_secs(5);
/// How long the carrier is off, in turn, milliseconds.
const OFF_MS: [u64; 6] = [1, 10, 100, 3, 500, 30];
/// Frames sent while there is no carrier.
const QUEUED: usize = 64;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.allow_log(&["Link is Down", "Link is down", "link down"]);
    if !follows(bench, false)? {
        cable(bench, true)?;
        return Err(Trouble::not_shown("the dut's carrier does not follow what can be switched here"));
    }
    cable(bench, true)?;
    if !carrier_is(bench, true)? {
        bench.fail(ReasonCode::Link, format!("no carrier within {FOLLOWS_WITHIN:?} after the first loss"));
        return Ok(());
    }
    let rounds = bench.count(ROUNDS, 6);
    for round in 0..rounds {
        cable(bench, false)?;
        let off_ms = OFF_MS[round % OFF_MS.len()];
        if round % 3 == 0 {
            queue_frames(bench)?;
        }
        bench.sleep(Duration::from_millis(off_ms))?;
        cable(bench, true)?;
        if !carrier_is(bench, true)? {
            bench.fail(
                ReasonCode::Link,
                format!("round {round}: no carrier {FOLLOWS_WITHIN:?} after {off_ms} ms off"),
            );
            return Ok(());
        }
        frames_pass(bench)?;
        if !bench.is_clean() {
            bench.warn(format!("the first fault was in round {round}, after {off_ms} ms without carrier"));
            return Ok(());
        }
    }
    bench.measure("rounds", rounds as f64, "");
    Ok(())
}

/// Pulls the emulator's cable, or takes the peer's link down.
fn cable(bench: &mut Bench, plugged: bool) -> Result<(), Trouble> {
    if let Some(machine) = bench.dut.node.machine() {
        return machine.cable(plugged).map_err(|error| Trouble::harness(error.to_string()));
    }
    bench.peer.set_up(plugged)
}

fn follows(bench: &mut Bench, plugged: bool) -> Result<bool, Trouble> {
    cable(bench, plugged)?;
    carrier_is(bench, plugged)
}

fn carrier_is(bench: &mut Bench, must: bool) -> Result<bool, Trouble> {
    let (begun, limit) = (Instant::now(), bench.patient(FOLLOWS_WITHIN));
    loop {
        if bench.dut.link_now()?.is_some_and(|link| link.carrier == must) {
            return Ok(true);
        }
        if begun.elapsed() > limit {
            return Ok(false);
        }
        bench.sleep(Duration::from_millis(10))?;
    }
}

/// Frames that find no carrier: the kernel may refuse or keep them.
fn queue_frames(bench: &mut Bench) -> Result<(), Trouble> {
    let port = bench.dut.open_port(PortOptions { send_only: true, ..PortOptions::default() })?;
    let hosts = bench.hosts(Way::ToPeer);
    let probes = bench.probes(&hosts, &[200; QUEUED]);
    let frames: Vec<_> = probes.into_iter().map(out).collect();
    bench.dut.send(&port, &frames)?;
    bench.dut.close(port.handle)
}

/// What was kept may still come; frames sent now come each once, in order.
fn frames_pass(bench: &mut Bench) -> Result<(), Trouble> {
    bench.sleep(Duration::from_millis(20))?;
    for way in Way::BOTH {
        let lane = bench.lane(way)?;
        let hosts = bench.hosts(way);
        let probes = bench.probes(&hosts, &[100; 32]);
        let frames: Vec<_> = probes.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}
