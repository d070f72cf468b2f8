//! RX-02: giant frames and life after them.

use std::time::Duration;

use linerate_model::bench::{PortOptions, probe};
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, out};
use crate::must::count::growth;
use crate::must::delivery::{self, Rules};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "RX-02",
    title: "giant frames and life after them",
    does: "The peer, with a larger MTU, sends single frames too long for the dut; after each one the \
           dut's ring is filled twice with ordinary frames; at last the link goes down and up.",
    holds: "A giant is delivered whole, or dropped and counted; never cut short or mangled. Every ordinary \
           frame arrives.",
    skipped: "The peer cannot send more than the dut's MTU (veth).",
    source: "UNH 4.1.3, NDISTest; new",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Lengths without FCS, next to those that chips are known to stumble over.
const GIANTS: [usize; 12] = [1515, 1518, 1519, 1522, 1523, 1536, 1537, 1600, 2048, 2049, 4096, 9000];
/// Counters in which a giant that was dropped may turn up.
const DROPS: [&str; 7] = [
    "rx_errors",
    "rx_dropped",
    "rx_length_errors",
    "rx_over_errors",
    "rx_missed_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    if bench.dut.is_veth() {
        return Err(Trouble::not_shown("a veth end gets no frame longer than its MTU"));
    }
    let room = bench.dut.mtu() as usize + ETHERNET_BYTES;
    let most = raise_peer(bench)?;
    let giants: Vec<usize> = GIANTS.into_iter().filter(|length| (room + 1..=most).contains(length)).collect();
    if giants.is_empty() {
        return Err(Trouble::not_shown(format!("the peer sends at most {most} bytes, the dut takes {room}")));
    }
    bench.allow_growth(&["dut.link.rx_*", "dut.driver.*"]);
    let into = PortOptions {
        ether_type: probe::ETHER_TYPE,
        largest_bytes: 1 << 14,
        slots: 2048,
        ..PortOptions::default()
    };
    let lane = bench.lane_with(Way::ToDut, PortOptions::default(), into)?;
    let ring = bench.dut.setting("rx-ring")?.and_then(|text| text.parse().ok()).unwrap_or(256);
    let ordinary = bench.count(2 * ring, 64);
    let before = bench.dut.settled_snapshot()?;
    let mut dropped = 0;
    for length in &giants {
        dropped += usize::from(!giant(bench, &lane, *length)?);
        let when = format!("after a giant of {length} bytes");
        after(bench, &lane, ordinary, &when)?;
        if !bench.is_clean() {
            return Ok(());
        }
    }
    let now = bench.dut.settled_snapshot()?;
    let link: i64 = DROPS.iter().filter_map(|name| growth(&before.link, &now.link, name)).sum();
    let driver: i64 = now
        .driver
        .keys()
        .filter(|name| is_drop(name))
        .filter_map(|name| growth(&before.driver, &now.driver, name))
        .sum();
    bench.measure("giants dropped", dropped as f64, "frames");
    if dropped > 0 && link + driver == 0 {
        bench.fail(ReasonCode::Count, format!("{dropped} giants were dropped, and no counter tells of any"));
    }
    bench.dut.set_up(false)?;
    bench.dut.set_up(true)?;
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier after down and up: {why}"));
    }
    after(bench, &lane, ordinary, "after down and up")
}

/// Gives the peer the largest MTU that it takes; gives the longest frame.
fn raise_peer(bench: &mut Bench) -> Result<usize, Trouble> {
    for mtu in [9000_usize, 4082, 2034, 1600] {
        if bench.peer.try_set("mtu", &mtu.to_string())?.is_ok() {
            return Ok(mtu + ETHERNET_BYTES);
        }
    }
    Ok(bench.peer.mtu() as usize + ETHERNET_BYTES)
}

/// Sends one giant; whether it was delivered. Delivered it must be whole.
fn giant(bench: &mut Bench, lane: &Lane, length: usize) -> Result<bool, Trouble> {
    let hosts = bench.hosts(Way::ToDut);
    let sent = bench.probes(&hosts, &[length]);
    let arrived = bench.try_exchange(lane, &[out(sent[0].clone())], 1)?;
    if let Some(refusal) = arrived.sent.refused.first() {
        bench.warn(format!("the peer's kernel refused a frame of {length} bytes: {}", refusal.reason));
        return Ok(true);
    }
    let findings = delivery::judge(&sent, &arrived.frames, Rules::default());
    bench.add(findings.into_iter().filter(|finding| finding.code != ReasonCode::Loss));
    Ok(!arrived.frames.is_empty())
}

fn after(bench: &mut Bench, lane: &Lane, count: usize, when: &str) -> Result<(), Trouble> {
    let hosts = bench.hosts(Way::ToDut);
    let lengths: Vec<usize> = (0..count).map(|index| 60 + index % 1400).collect();
    let probes = bench.probes(&hosts, &lengths);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(lane, &frames)?;
    bench.judge(lane, &probes, &arrived, Rules::default());
    if !bench.is_clean() {
        bench.fail(ReasonCode::StuckRx, format!("ordinary frames were not received as they must be {when}"));
    }
    Ok(())
}

fn is_drop(name: &str) -> bool {
    let name = name.to_lowercase();
    ["long", "length", "giant", "jabber", "oversize", "drop", "err", "missed"]
        .iter()
        .any(|part| name.contains(part))
}
