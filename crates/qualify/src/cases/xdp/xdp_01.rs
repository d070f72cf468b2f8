//! XDP-01: XDP programs.

use std::time::Duration;

use linerate_model::bench::act::LinkKind;
use linerate_model::bench::{LinkAct, PortOptions, XdpAction, XdpMode, XdpSpec, probe};
use linerate_model::qualification::{Level, ReasonCode};

use super::{attach, pass, wake_veth};
use crate::bench::{Bench, FlowAsk, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, SHORTEST_BYTES, Version, out};
use crate::must::delivery::Rules;
use crate::station::Port;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "XDP-01",
    title: "XDP programs",
    does: "Native, then generic: pass, drop, transmit, abort, redirect, each with frames of every length.",
    holds: "Counts are exact, bytes equal, nothing leaks, attaching and detaching under traffic loses no \
           more than a reset.",
    skipped: "The driver has no native XDP.",
    source: "ksft xdp, LNST",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio native; all generic; hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &[
            "native_pass",
            "native_drop",
            "native_aborted",
            "native_transmit",
            "native_redirect",
            "native_under_traffic",
            "generic_pass",
            "generic_drop",
            "generic_aborted",
            "generic_transmit",
            "generic_redirect",
            "generic_under_traffic",
        ],
        limit_s: 30,
        judge,
    },
};

/// The kernel's own frames are counted as well: a round that they disturbed is done again.
const ROUNDS: usize = 4;
/// Where redirected frames go, and come out.
const ASIDE: [&str; 2] = ["lr-xdp0", "lr-xdp1"];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    bench.neutral_peer()?;
    let variant = bench.variant().to_owned();
    let action = variant.split_once('_').map_or("", |(_, action)| action);
    if action == "under_traffic" {
        return under_traffic(bench);
    }
    if action == "redirect" {
        make_aside(bench)?;
    }
    for left in (0..ROUNDS).rev() {
        let wrong = round(bench, action)?;
        match wrong {
            Some(text) if left == 0 || !bench.is_clean() => bench.fail(ReasonCode::Count, text),
            Some(_) => continue,
            None => {}
        }
        break;
    }
    Ok(())
}

/// Sends frames of every length to the dut; gives what is wrong with the program's count.
fn round(bench: &mut Bench, action: &str) -> Result<Option<String>, Trouble> {
    let action_of = |action: &str| match action {
        "drop" => XdpAction::Drop,
        "aborted" => XdpAction::Aborted,
        "transmit" => XdpAction::Transmit,
        "redirect" => XdpAction::Redirect(ASIDE[0].to_owned()),
        _ => XdpAction::Pass,
    };
    let program = attach(bench, XdpSpec { action: action_of(action), ..pass(bench) })?;
    let awake = wake_veth(bench)?;
    let lane = bench.lane(Way::ToDut)?;
    let seen = open_where_seen(bench, action, &lane)?;
    let longest = bench.dut.mtu().min(bench.peer.mtu()) as usize + ETHERNET_BYTES;
    let lengths = bench.lengths(SHORTEST_BYTES, longest);
    let hosts = bench.hosts(Way::ToDut);
    let probes = bench.probes(&hosts, &lengths);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let before = bench.dut.count_xdp(program)?;
    let mut passed = bench.try_exchange(&lane, &frames, if action == "pass" { frames.len() } else { 0 })?;
    let after = bench.dut.count_xdp(program)?;
    let expected = match action {
        "pass" => probes,
        "transmit" => probes.iter().map(|frame| swapped(frame)).collect(),
        "redirect" => probes,
        _ => Vec::new(),
    };
    if let Some(port) = seen {
        if !passed.frames.is_empty() {
            bench.judge(&lane, &[], &passed, Rules::default());
        }
        let (limit, idle) =
            (bench.patient(Duration::from_secs(5)), bench.patient(Duration::from_millis(250)));
        let station = bench.station(port.side);
        passed.frames = station.receive_within(&port, expected.len(), idle, limit)?.0;
        station.close(port.handle)?;
    }
    bench.judge(&lane, &expected, &passed, Rules::default());
    bench.close_lane(&lane)?;
    bench.dut.close(program)?;
    awake.map(|program| bench.peer.close(program)).transpose()?;
    let bytes: u64 = lengths.iter().map(|length| *length as u64).sum();
    let (grown, counted) = (after.frames - before.frames, after.bytes - before.bytes);
    let is_exact = grown == frames.len() as u64 && counted == bytes;
    Ok((!is_exact)
        .then(|| format!("{} frames of {bytes} bytes were counted as {grown} of {counted}", frames.len())))
}

/// The port at which frames show that are sent on rather than passed.
fn open_where_seen(bench: &mut Bench, action: &str, lane: &Lane) -> Result<Option<Port>, Trouble> {
    let probes = PortOptions { ether_type: probe::ETHER_TYPE, ..PortOptions::default() };
    match action {
        "transmit" => bench.ends(lane.way).0.open_port(probes).map(Some),
        "redirect" => {
            let options = PortOptions { link: ASIDE[1].to_owned(), promiscuous: true, ..probes };
            bench.dut.open_port(options).map(Some)
        }
        _ => Ok(None),
    }
}

/// A pair of virtual links at the dut, whose far end takes frames of XDP.
fn make_aside(bench: &mut Bench) -> Result<(), Trouble> {
    let [near, far] = ASIDE.map(str::to_owned);
    bench.dut.act(LinkAct::Make { name: near.clone(), kind: LinkKind::Veth { other: far.clone() } })?;
    for link in [near, far.clone()] {
        bench.dut.act(LinkAct::SetUp { link, up: true })?;
    }
    let awake = XdpSpec { link: far, mode: XdpMode::Native, ..pass(bench) };
    bench.dut.attach_xdp(awake)?.map(drop).map_err(Trouble::harness)
}

/// Programs come and go while every byte of a connection is compared.
fn under_traffic(bench: &mut Bench) -> Result<(), Trouble> {
    let times = bench.count(10, 3);
    let flow = bench.start_flow(&FlowAsk { reconnect: false, ..FlowAsk::tcp(Version::V4) })?;
    for _ in 0..times {
        let spec = pass(bench);
        let program = attach(bench, spec)?;
        bench.sleep(Duration::from_millis(100))?;
        let count = bench.dut.count_xdp(program)?;
        if count.frames == 0 {
            bench.fail(ReasonCode::StuckRx, "the program saw no frame of running traffic in 100 ms");
        }
        bench.dut.close(program)?;
        bench.sleep(Duration::from_millis(50))?;
    }
    bench.finish_flow(&flow, Duration::from_secs(10)).map(drop)
}

/// With both addresses in each other's place.
fn swapped(frame: &[u8]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    bytes[..12].rotate_left(6);
    bytes
}
