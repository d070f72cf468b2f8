//! FILT-05: groups of the link.

use linerate_model::bench::frame::MacAddress;
use linerate_model::bench::{LinkAct, PortOptions};
use linerate_model::qualification::{Level, ReasonCode};

use super::{count_arrivals, needs_filter};
use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ethernet, out};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-05",
    title: "groups of the link",
    does: "Frames to the addresses of STP, LLDP, LACP, PTP and PAUSE.",
    holds: "Joined ones are received; PAUSE never reaches the stack where it is obeyed.",
    skipped: "The link has no multicast filter (veth).",
    source: "ksft local_termination",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Addresses of protocols of the link itself (IEEE Std 802.1Q table 8-1, IEEE Std 1588 annexes C to F).
const GROUPS: [(&str, MacAddress); 9] = [
    ("STP", [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00]),
    ("LACP", [0x01, 0x80, 0xc2, 0x00, 0x00, 0x02]),
    ("802.1X", [0x01, 0x80, 0xc2, 0x00, 0x00, 0x03]),
    ("MVRP of a provider", [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0d]),
    ("LLDP", [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]),
    ("PTP over Ethernet", [0x01, 0x1b, 0x19, 0x00, 0x00, 0x00]),
    ("PTP over IPv4", [0x01, 0x00, 0x5e, 0x00, 0x01, 0x81]),
    ("PTP over IPv4, peer delay", [0x01, 0x00, 0x5e, 0x00, 0x00, 0x6b]),
    ("PTP over IPv6", [0x33, 0x33, 0x00, 0x00, 0x01, 0x81]),
];
const PAUSE: MacAddress = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
const ETHER_TYPE_MAC_CONTROL: u16 = 0x8808;
const FRAMES: usize = 20;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    needs_filter(bench)?;
    let link = bench.dut.link().to_owned();
    for (_, mac) in GROUPS {
        bench.dut.act(LinkAct::JoinGroup { link: link.clone(), mac })?;
    }
    for (what, mac) in GROUPS {
        let came = count_arrivals(bench, &[mac; FRAMES])?.into_iter().filter(|came| *came).count();
        if came < FRAMES {
            bench.fail(ReasonCode::FilterMiss, format!("{what} is joined: {came} of {FRAMES} frames came"));
        }
    }
    pause(bench)
}

/// PAUSE frames that ask for no pause: where the link obeys them, they end in the MAC (IEEE Std 802.3 annex 31B).
fn pause(bench: &mut Bench) -> Result<(), Trouble> {
    if bench.dut.setting("pause-rx")?.as_deref() != Some("on") {
        bench.warn("PAUSE was not tried: the link does not obey it, or does not tell");
        return Ok(());
    }
    let link = bench.dut.link().to_owned();
    bench.dut.act(LinkAct::JoinGroup { link, mac: PAUSE })?;
    let into = PortOptions { ether_type: ETHER_TYPE_MAC_CONTROL, ..PortOptions::default() };
    let lane = bench.lane_with(Way::ToDut, PortOptions::default(), into)?;
    let mut payload = vec![0, 1, 0, 0];
    payload.resize(46, 0);
    let frame = out(ethernet(PAUSE, bench.peer.mac(), &[], ETHER_TYPE_MAC_CONTROL, &payload));
    bench.peer.send(&lane.out, &vec![frame; FRAMES])?;
    let (idle, limit) =
        (bench.patient(std::time::Duration::from_millis(250)), std::time::Duration::from_secs(5));
    let (frames, _) = bench.dut.receive_within(&lane.into, FRAMES, idle, bench.patient(limit))?;
    bench.close_lane(&lane)?;
    if !frames.is_empty() {
        let text =
            format!("{} of {FRAMES} PAUSE frames reached the stack of a link that obeys them", frames.len());
        bench.fail(ReasonCode::FilterLeak, text);
    }
    Ok(())
}
