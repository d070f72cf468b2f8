//! TX-01: transmit, every length.

use linerate_model::bench::FrameOut;
use linerate_model::qualification::Level;

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, SHORTEST_BYTES, out};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "TX-01",
    title: "transmit, every length",
    does: "The dut sends one probe frame of every length from 60 bytes to the MTU's, first one at a time, then \
           three rounds back to back so that every length meets every ring slot; the peer captures them.",
    holds: "Each frame arrives once, in order, with its length and bytes, and nothing but zeros behind it.",
    skipped: "",
    source: "NICDRV's ping sizes; new",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["lock_step", "pipelined"], limit_s: 60, judge },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    let lane = bench.lane(Way::ToPeer)?;
    let hosts = bench.hosts(Way::ToPeer);
    let longest = bench.dut.mtu().min(bench.peer.mtu()) as usize + ETHERNET_BYTES;
    let lengths = bench.lengths(SHORTEST_BYTES, longest);
    if bench.variant() == "lock_step" {
        let probes = bench.probes(&hosts, &lengths);
        let frames: Vec<FrameOut> = probes.iter().cloned().map(out).collect();
        let arrived = bench.lock_step(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
        return Ok(());
    }
    for _ in 0..3 {
        let probes = bench.probes(&hosts, &lengths);
        let frames: Vec<FrameOut> = probes.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
    }
    Ok(())
}
