//! MAC-01: hardware address.

use std::time::Duration;

use linerate_model::bench::frame::{Addressed, MacAddress};
use linerate_model::bench::{FrameIn, LinkAct, PortOptions};
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{BROADCAST, ethernet, out};
use crate::must::delivery::{Rules, probe_id};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "MAC-01",
    title: "hardware address",
    does: "A valid address set live and down, then a multicast, the zero and the broadcast address, then \
           the old one; source of frames, filter and ARP are looked at.",
    holds: "A valid one is accepted (or wants the link down), others are refused; the old one is received \
           no more; it stays over down and up and MTU changes; the permanent one does not change.",
    skipped: "",
    source: "NICDRV test10, DTS mac_filter, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Locally administered (IEEE Std 802c).
const NEW: MacAddress = [0x02, 0x4c, 0x52, 0x4e, 0x45, 0x57];
/// No link may have these: a group, none, all.
const INVALID: [(&str, MacAddress); 3] =
    [("a group", [0x01, 0x00, 0x5e, 0x00, 0x00, 0x01]), ("zero", [0; 6]), ("broadcast", BROADCAST)];
const ETHER_TYPE_ARP: u16 = 0x0806;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let old = bench.dut.mac();
    for (what, mac) in INVALID {
        if set(bench, mac)?.is_ok() {
            bench.fail(ReasonCode::Accepted, format!("{what} was accepted as the link's address"));
        }
        reads(bench, old, &format!("after {what} was tried"))?;
    }
    if let Err(live) = set(bench, NEW)? {
        // Some chips take an address only while they are stopped.
        bench.dut.set_up(false)?;
        let down = set(bench, NEW)?;
        bench.dut.set_up(true)?;
        await_link(bench)?;
        if let Err(down) = down {
            let text = format!("a valid address was refused: {live}; with the link down: {down}");
            bench.fail(ReasonCode::Refused, text);
            return Ok(());
        }
        bench.warn(format!("it is taken only with the link down: {live}"));
    }
    reads(bench, NEW, "after it was set")?;
    is_in_force(bench, old, "after it was set")?;
    bench.dut.set_up(false)?;
    bench.dut.set_up(true)?;
    await_link(bench)?;
    is_in_force(bench, old, "after down and up")?;
    if bench.dut.try_set("mtu", "1400")?.is_ok() {
        await_link(bench)?;
        is_in_force(bench, old, "after a change of MTU")?;
        bench.dut.set("mtu", "1500")?;
        await_link(bench)?;
    }
    if let Err(why) = set(bench, old)? {
        bench.dut.set_up(false)?;
        let down = set(bench, old)?;
        bench.dut.set_up(true)?;
        await_link(bench)?;
        if down.is_err() {
            bench.fail(ReasonCode::ConfigLost, format!("the old address was refused: {why}"));
        }
    }
    reads(bench, old, "after it was put back")
}

fn set(bench: &mut Bench, mac: MacAddress) -> Result<Result<(), String>, Trouble> {
    let link = bench.dut.link().to_owned();
    bench.dut.try_act(LinkAct::SetMac { link, mac })
}

fn await_link(bench: &mut Bench) -> Result<(), Trouble> {
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier: {why}"));
    }
    Ok(())
}

fn reads(bench: &mut Bench, mac: MacAddress, when: &str) -> Result<(), Trouble> {
    let now = bench.dut.link_now()?.and_then(|link| link.mac);
    let must = words(mac);
    if now.as_deref() != Some(must.as_str()) {
        bench.fail(ReasonCode::Readback, format!("the address reads {now:?} {when}, must be {must}"));
    }
    Ok(())
}

/// Frames to the new address are received, those to the old one are another host's or not seen, and ARP tells the new one.
fn is_in_force(bench: &mut Bench, old: MacAddress, when: &str) -> Result<(), Trouble> {
    const FRAMES: usize = 20;
    let lane = bench.lane(Way::ToDut)?;
    let mut hosts = bench.hosts(Way::ToDut);
    hosts.to_mac = NEW;
    let to_new = bench.probes(&hosts, &[100; FRAMES]);
    let frames: Vec<_> = to_new.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &to_new, &arrived, Rules::default());
    hosts.to_mac = old;
    let to_old = bench.probes(&hosts, &[100; FRAMES]);
    let frames: Vec<_> = to_old.iter().cloned().map(out).collect();
    let arrived = bench.try_exchange(&lane, &frames, 0)?;
    let mine = arrived
        .frames
        .iter()
        .filter(|frame| frame.addressed == Addressed::Host && probe_id(&frame.bytes).is_some());
    let count = mine.count();
    if count > 0 {
        let text = format!("{count} of {FRAMES} frames to the old address were received {when}");
        bench.fail(ReasonCode::FilterLeak, text);
    }
    bench.close_lane(&lane)?;
    arp_tells(bench, when)
}

/// Asks for the dut's IPv4 address; the answer and its frame must come from the new address (RFC 826).
fn arp_tells(bench: &mut Bench, when: &str) -> Result<(), Trouble> {
    let (Some(dut), Some(peer)) = (bench.dut.ipv4(), bench.peer.ipv4()) else { return Ok(()) };
    let mac = bench.peer.mac();
    let mut request = vec![0, 1, 0x08, 0, 6, 4, 0, 1];
    request.extend(mac);
    request.extend(peer.octets());
    request.extend([0; 6]);
    request.extend(dut.octets());
    request.resize(46, 0);
    let answers = PortOptions { ether_type: ETHER_TYPE_ARP, ..PortOptions::default() };
    let into = bench.peer.open_port(answers)?;
    let port = bench.peer.open_port(PortOptions { send_only: true, ..PortOptions::default() })?;
    bench.peer.send(&port, &[out(ethernet(BROADCAST, mac, &[], ETHER_TYPE_ARP, &request))])?;
    let (idle, limit) = (bench.patient(Duration::from_millis(300)), bench.patient(Duration::from_secs(2)));
    let (frames, _) = bench.peer.receive_within(&into, 1, idle, limit)?;
    bench.peer.close(port.handle)?;
    bench.peer.close(into.handle)?;
    let is_answer = |frame: &&FrameIn| frame.bytes.get(20..22) == Some(&[0, 2]) && frame.bytes.len() >= 28;
    match frames.iter().find(is_answer) {
        None => bench.fail(ReasonCode::Loss, format!("ARP was not answered {when}")),
        Some(frame) if frame.bytes[6..12] != NEW || frame.bytes[22..28] != NEW => {
            bench.fail(ReasonCode::Data, format!("ARP tells another address {when}"));
        }
        Some(_) => {}
    }
    Ok(())
}

fn words(mac: MacAddress) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
