//! RX-01: receive, every length.

use linerate_model::bench::FrameOut;
use linerate_model::bench::probe::ProbeId;
use linerate_model::qualification::Level;

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, SHORTEST_BYTES, TPID_CUSTOMER, out, tag, tagged_probe};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "RX-01",
    title: "receive, every length",
    does: "The peer sends what the dut sends in TX-01, and frames whose payload begins at odd places behind VLAN \
           tags; the dut captures them with nothing merged.",
    holds: "Each frame is delivered once, in order, with its length and bytes; no FCS shows.",
    skipped: "",
    source: "new",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["lock_step", "pipelined", "tagged"], limit_s: 60, judge },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    let hosts = bench.hosts(Way::ToDut);
    let longest = bench.dut.mtu().min(bench.peer.mtu()) as usize + ETHERNET_BYTES;
    let lengths = bench.lengths(SHORTEST_BYTES, longest);
    if bench.variant() == "tagged" {
        return tagged(bench, &lengths);
    }
    let lane = bench.lane(Way::ToDut)?;
    if bench.variant() == "lock_step" {
        let probes = bench.probes(&hosts, &lengths);
        let frames: Vec<FrameOut> = probes.iter().cloned().map(out).collect();
        let arrived = bench.lock_step(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
        return Ok(());
    }
    for _ in 0..3 {
        let probes = bench.probes(&hosts, &lengths);
        send_and_judge(bench, &lane, &probes)?;
    }
    Ok(())
}

/// One to three tags move the payload by 4, 8 and 12 bytes; within it, each probe's own bytes stand at every place. Frames
/// with two and three tags are longer than the MTU allows unless the payload is shorter.
fn tagged(bench: &mut Bench, lengths: &[usize]) -> Result<(), Trouble> {
    // Everything: a tagged frame has another EtherType where the tag stays in it.
    let lane = bench.packet_lane(Way::ToDut)?;
    let hosts = bench.hosts(Way::ToDut);
    for tags in 1..=3 {
        let tags: Vec<_> = (0..tags).map(|n| tag(TPID_CUSTOMER, 0, false, 100 + n)).collect();
        let (run, stream) = (bench.run(), bench.stream());
        let probe = |(n, length): (usize, &usize)| {
            tagged_probe(&hosts, &tags, ProbeId { run, stream, sequence: n as u64 }, *length)
        };
        let probes: Vec<Vec<u8>> = lengths.iter().enumerate().step_by(7).map(probe).collect();
        send_and_judge(bench, &lane, &probes)?;
    }
    Ok(())
}

fn send_and_judge(bench: &mut Bench, lane: &Lane, probes: &[Vec<u8>]) -> Result<(), Trouble> {
    let frames: Vec<FrameOut> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(lane, &frames)?;
    bench.judge(lane, probes, &arrived, Rules::default());
    Ok(())
}
