//! XDP-03: XDP that changes frames.

use linerate_model::bench::{PortOptions, XdpSpec, probe};
use linerate_model::qualification::{Level, ReasonCode};

use super::{attach, pass};
use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::out;
use crate::must::delivery::{self, Rules};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "XDP-03",
    title: "XDP that changes frames",
    does: "Head and tail moved, grown to the limit, many buffers, metadata.",
    holds: "Data is right or the program is told no.",
    skipped: "As XDP-01.",
    source: "ksft xdp",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &[
            "native_head_cut",
            "native_tail_cut",
            "native_tail_grown",
            "generic_head_cut",
            "generic_tail_cut",
            "generic_tail_grown",
        ],
        limit_s: 30,
        judge,
    },
};

/// Bytes by which head and tail are moved.
const MOVED: usize = 8;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    bench.neutral_peer()?;
    let variant = bench.variant().to_owned();
    let change = variant.split_once('_').map_or("", |(_, change)| change);
    let moved = MOVED as i32;
    let (head_bytes, tail_bytes) = match change {
        "head_cut" => (moved, 0),
        "tail_cut" => (0, -moved),
        _ => (0, moved),
    };
    attach(bench, XdpSpec { head_bytes, tail_bytes, ..pass(bench) })?;
    // With its head cut a frame begins elsewhere: on the wire it goes to nobody's address.
    let into = PortOptions { ether_type: probe::ETHER_TYPE, promiscuous: true, ..PortOptions::default() };
    let lane = bench.lane_with(Way::ToDut, PortOptions::default(), into)?;
    let hosts = bench.hosts(Way::ToDut);
    let lengths = bench.lengths(100, 1400);
    let probes = bench.probes(&hosts, &lengths);
    let sent: Vec<Vec<u8>> = probes.iter().map(|probe| on_the_wire(probe, change)).collect();
    let frames: Vec<_> = sent.iter().cloned().map(out).collect();
    let expected: Vec<Vec<u8>> = probes.into_iter().map(|probe| as_delivered(probe, change)).collect();
    let arrived = bench.try_exchange(&lane, &frames, expected.len())?;
    if change != "tail_grown" {
        bench.judge(&lane, &expected, &arrived, Rules::default());
        return Ok(());
    }
    // A program is told no where the buffer has no room behind the frame, and then aborts it.
    let findings = delivery::judge(&expected, &arrived.frames, Rules::default());
    bench.add(findings.into_iter().filter(|finding| finding.code != ReasonCode::Loss));
    bench.measure("frames with room behind them", arrived.frames.len() as f64, "frames");
    Ok(())
}

/// What is sent so that the probe is what the program leaves.
fn on_the_wire(probe: &[u8], change: &str) -> Vec<u8> {
    let mut frame = probe.to_vec();
    if change == "head_cut" {
        frame.splice(0..0, [0x02; MOVED]);
    }
    frame
}

/// What the stack must get.
fn as_delivered(mut probe: Vec<u8>, change: &str) -> Vec<u8> {
    match change {
        "tail_cut" => probe.truncate(probe.len() - MOVED),
        "tail_grown" => probe.extend([0; MOVED]),
        _ => {}
    }
    probe
}
