//! STAT-06: multicast and broadcast counters.

use linerate_model::bench::frame::MacAddress;
use linerate_model::bench::{PortOptions, Snapshot, probe};
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{BROADCAST, Hosts, out};
use crate::must::count::growth;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "STAT-06",
    title: "multicast and broadcast counters",
    does: "A known number of each.",
    holds: "Counters that name them grow by exactly that.",
    skipped: "",
    source: "NICDRV, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["multicast", "broadcast"], limit_s: 30, judge },
};

/// A group of the documentation range (RFC 7042 section 2.1.2), joined by the capture.
const GROUP: MacAddress = [0x01, 0x00, 0x5e, 0x90, 0x10, 0x05];
/// A round that the kernel's own frames disturbed is done again.
const ROUNDS: usize = 4;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let count = bench.count(1000, 100);
    let to_mac = if bench.variant() == "multicast" { GROUP } else { BROADCAST };
    let mut wrong = Vec::new();
    for _ in 0..ROUNDS {
        wrong = round(bench, to_mac, count)?;
        if wrong.is_empty() {
            return Ok(());
        }
    }
    for text in wrong {
        bench.fail(ReasonCode::Count, text);
    }
    Ok(())
}

/// Sends the frames to the dut; gives what is wrong with its counters.
fn round(bench: &mut Bench, to_mac: MacAddress, count: usize) -> Result<Vec<String>, Trouble> {
    let into = PortOptions { ether_type: probe::ETHER_TYPE, groups: vec![GROUP], ..PortOptions::default() };
    let lane = bench.lane_with(Way::ToDut, PortOptions::default(), into)?;
    let hosts = Hosts { to_mac, ..bench.hosts(Way::ToDut) };
    let probes = bench.probes(&hosts, &vec![100; count]);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let before = bench.dut.settled_snapshot()?;
    let arrived = bench.exchange(&lane, &frames)?;
    let after = bench.dut.settled_snapshot()?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    bench.close_lane(&lane)?;
    let counters = counters(bench, &before);
    if counters.is_empty() {
        let kind = bench.variant().to_owned();
        return Err(Trouble::not_shown(format!(
            "the driver has no counter of {kind} frames that it receives"
        )));
    }
    let grown = counters.into_iter().filter_map(|(group, name)| {
        let (before, after) = match group {
            "link" => (&before.link, &after.link),
            "ethtool -S" => (&before.driver, &after.driver),
            _ => (&before.standard, &after.standard),
        };
        let grown = growth(before, after, &name).filter(|grown| *grown != count as i64)?;
        Some(format!("{group} {name} grew by {grown} with {count} {} frames", bench.variant()))
    });
    Ok(grown.collect())
}

/// Counters of received frames of the variant's kind, with the group they are in.
fn counters(bench: &Bench, snapshot: &Snapshot) -> Vec<(&'static str, String)> {
    let kind = bench.variant();
    let mut found = Vec::new();
    // A link without a device counts none (drivers/net/veth.c).
    if kind == "multicast" && !bench.dut.is_veth() {
        found.push(("link", "multicast".to_owned()));
    }
    let of_driver = |name: &&String| {
        let name = name.to_lowercase();
        name.contains(kind) && name.contains("rx") && !name.contains("bytes") && !name.contains("octets")
    };
    found.extend(snapshot.driver.keys().filter(of_driver).map(|name| ("ethtool -S", name.clone())));
    let standard = match kind {
        "multicast" => "eth-mac.MulticastFramesReceivedOK",
        _ => "eth-mac.BroadcastFramesReceivedOK",
    };
    found.extend(snapshot.standard.contains_key(standard).then(|| ("ethtool", standard.to_owned())));
    found
}
