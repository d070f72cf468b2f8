//! BOND-01: links on top.

use std::time::Duration;

use linerate_model::bench::LinkAct;
use linerate_model::bench::act::LinkKind;
use linerate_model::bench::frame::MacAddress;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::out;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "BOND-01",
    title: "links on top",
    does: "Bond, bridge, macvlan over the link, added and removed 50 times under traffic.",
    holds: "Traffic is right, the address goes back, nothing stays promiscuous.",
    skipped: "The kernel has none of them.",
    source: "NICDRV test09, LNST, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["bond", "bridge", "macvlan"], limit_s: 120, judge },
};

/// The link on top.
const TOP: &str = "lr-top";
const ROUNDS: usize = 50;
const MACVLAN: MacAddress = [0x02, 0x4c, 0x52, 0x42, 0x4f, 0x01];
const FOREIGN: MacAddress = [0x02, 0x4c, 0x52, 0x42, 0x4f, 0x99];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    let kind = match bench.variant() {
        "bond" => LinkKind::Bond,
        "bridge" => LinkKind::Bridge,
        _ => LinkKind::Macvlan { link: bench.dut.link().to_owned(), mac: MACVLAN },
    };
    let mac = bench.dut.link_now()?.and_then(|link| link.mac);
    let (leaked_before, _) = foreign(bench)?;
    for round in 0..bench.count(ROUNDS, 5) {
        let make = LinkAct::Make { name: TOP.to_owned(), kind: kind.clone() };
        if let Err(why) = bench.dut.try_act(make)? {
            if round == 0 {
                return Err(Trouble::not_shown(format!("the kernel makes no {}: {why}", bench.variant())));
            }
            bench.fail(ReasonCode::Refused, format!("round {round}: {} was refused: {why}", bench.variant()));
            return Ok(());
        }
        let under = !matches!(kind, LinkKind::Macvlan { .. });
        if under {
            enter(bench, Some(TOP))?;
        }
        bench.dut.act(LinkAct::SetUp { link: TOP.to_owned(), up: true })?;
        probes(bench, &format!("under it, round {round}"))?;
        if under {
            enter(bench, None)?;
        }
        bench.dut.act(LinkAct::Remove { name: TOP.to_owned() })?;
        bench.dut.set_up(true)?;
        probes(bench, &format!("after it was removed, round {round}"))?;
        let now = bench.dut.link_now()?.and_then(|link| link.mac);
        if now != mac {
            bench.fail(ReasonCode::ConfigLost, format!("the address is {now:?} afterwards, was {mac:?}"));
        }
        if !bench.is_clean() {
            return Ok(());
        }
    }
    let (leaked, of) = foreign(bench)?;
    if leaked_before == 0 && leaked > 0 {
        bench.fail(
            ReasonCode::FilterLeak,
            format!("{leaked} of {of} foreign frames are received afterwards: promiscuous"),
        );
    }
    Ok(())
}

/// A bond takes only links that are down (bond_enslave in drivers/net/bonding/bond_main.c).
fn enter(bench: &mut Bench, master: Option<&str>) -> Result<(), Trouble> {
    let link = bench.dut.link().to_owned();
    let is_bond = bench.variant() == "bond";
    if is_bond && master.is_some() {
        bench.dut.set_up(false)?;
    }
    bench.dut.act(LinkAct::SetMaster { link, master: master.map(str::to_owned) })?;
    if is_bond && master.is_some() {
        bench.dut.set_up(true)?;
    }
    Ok(())
}

/// Probes both ways over the link itself: what is on top takes received frames only behind the packet socket.
fn probes(bench: &mut Bench, when: &str) -> Result<(), Trouble> {
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier {when}: {why}"));
        return Ok(());
    }
    for way in Way::BOTH {
        let lane = bench.packet_lane(way)?;
        let hosts = bench.hosts(way);
        let probes = bench.probes(&hosts, &[60, 61, 64, 509, 1000, 1023, 1513, 1514]);
        let frames: Vec<_> = probes.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}

/// Frames to an address that nobody has: how many of how many come through the filter.
fn foreign(bench: &mut Bench) -> Result<(usize, usize), Trouble> {
    const FRAMES: usize = 20;
    let lane = bench.lane(Way::ToDut)?;
    let mut hosts = bench.hosts(Way::ToDut);
    hosts.to_mac = FOREIGN;
    let frames: Vec<_> = bench.probes(&hosts, &[60; FRAMES]).into_iter().map(out).collect();
    let arrived = bench.try_exchange(&lane, &frames, 0)?;
    bench.close_lane(&lane)?;
    Ok((arrived.frames.len(), FRAMES))
}
