//! FILT-06: filters that stay.

use std::time::Duration;

use linerate_model::bench::frame::MacAddress;
use linerate_model::bench::{LinkAct, PortOptions};
use linerate_model::qualification::{Level, ReasonCode};

use super::{count_arrivals, needs_filter};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-06",
    title: "filters that stay",
    does: "Groups, VLAN ids and addresses over down and up, changes of rings, MTU and queues, and resets.",
    holds: "What was received before is received after.",
    skipped: "The link has no receive filter (veth).",
    source: "DTS port_restart, ksft",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["groups", "addresses"], limit_s: 120, judge },
};

const GROUPS: u8 = 24;
/// More addresses of the link; few, so that no filter overflows and takes everything.
const ADDRESSES: u8 = 3;
/// How long the link is down.
const DOWN: Duration = Duration::from_millis(200);
/// Settings whose change makes drivers stop and start the card.
const RESETS: [&str; 4] = ["mtu", "ring-rx", "ring-tx", "channels-combined"];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    needs_filter(bench)?;
    let link = bench.dut.link().to_owned();
    // Apart: a card without a filter for more addresses takes everything meanwhile, and would hide lost groups.
    let mut all = vec![bench.dut.mac()];
    let port = if bench.variant() == "groups" {
        for n in 0..GROUPS {
            let mac = [0x01, 0x00, 0x5e, 0x4d, n * 5, n * 11];
            bench.dut.act(LinkAct::JoinGroup { link: link.clone(), mac })?;
            all.push(mac);
        }
        None
    } else {
        let unicast: Vec<MacAddress> = (0..ADDRESSES).map(|n| [0x02, 0x4c, 0x52, 0x02, n, n * 3]).collect();
        all.extend(&unicast);
        Some(bench.dut.open_port(PortOptions { unicast, ..PortOptions::default() })?)
    };
    if !all_received(bench, &all, "before anything was done")? {
        return Ok(());
    }
    bench.dut.set_up(false)?;
    bench.sleep(DOWN)?;
    bench.dut.set_up(true)?;
    all_received(bench, &all, "after down and up")?;
    for key in RESETS {
        let Some(before) = bench.dut.setting(key)? else { continue };
        let Ok(number) = before.parse::<u64>() else { continue };
        let other = if key == "mtu" { number.saturating_sub(100) } else { (number / 2).max(1) };
        if other == number || bench.dut.try_set(key, &other.to_string())?.is_err() {
            continue;
        }
        all_received(bench, &all, &format!("after {key} went to {other}"))?;
        bench.dut.set(key, &before)?;
        all_received(bench, &all, &format!("after {key} went back to {before}"))?;
    }
    bench.dut.act(LinkAct::SetPromiscuous { link: link.clone(), on: true })?;
    bench.dut.act(LinkAct::SetPromiscuous { link, on: false })?;
    all_received(bench, &all, "after promiscuous mode")?;
    port.map_or(Ok(()), |port| bench.dut.close(port.handle))
}

fn all_received(bench: &mut Bench, all: &[MacAddress], when: &str) -> Result<bool, Trouble> {
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier {when}: {why}"));
        return Ok(false);
    }
    let came = count_arrivals(bench, all)?;
    let missed: Vec<String> = all
        .iter()
        .zip(&came)
        .filter(|(_, came)| !**came)
        .map(|(mac, _)| mac.map(|byte| format!("{byte:02x}")).join(":"))
        .collect();
    if !missed.is_empty() {
        let text = format!(
            "{} of {} addresses are not received {when}: {}",
            missed.len(),
            all.len(),
            missed.join(" ")
        );
        bench.fail(ReasonCode::FilterMiss, text);
    }
    Ok(missed.is_empty())
}
