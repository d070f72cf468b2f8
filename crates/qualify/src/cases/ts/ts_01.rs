//! TS-01: time stamps.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::bench::socket::SocketKind;
use linerate_model::bench::{Received, SocketOptions};
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "TS-01",
    title: "time stamps",
    does: "Stamps of what is sent and received, every filter, 1000 frames.",
    holds: "Each frame sent has one stamp, in order; received ones have one, not in the future; filters \
           read back.",
    skipped: "Without stamps of the NIC the stack's are judged.",
    source: "ksft nic_timestamp",
    privilege: Privilege::Admin,
    shown_on: "veth (software), e1000e, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["v4", "v6"], limit_s: 60, judge },
};

const DATAGRAMS: usize = 1000;
/// On their way at a time: fewer than a socket's buffer holds.
const AT_ONCE: usize = 20;
/// As PTP's (IEEE Std 1588 section 13).
const PAYLOAD_BYTES: usize = 44;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let version = if bench.variant() == "v6" { Version::V6 } else { Version::V4 };
    let (dut, peer) = bench.addresses(version)?;
    let (from, _) = bench.dut.open_socket(stamped(dut))?;
    let (to, port) = bench.peer.open_socket(stamped(peer))?;
    let destination = SocketAddr::new(peer, port);
    let (idle, limit) = (bench.patient(Duration::from_millis(300)), bench.patient(Duration::from_secs(5)));
    let (mut sent_stamps, mut arrived) = (Vec::new(), Vec::new());
    let count = bench.count(DATAGRAMS, 100) / AT_ONCE * AT_ONCE;
    for first in (0..count).step_by(AT_ONCE) {
        for number in first..first + AT_ONCE {
            let mut payload = (number as u32).to_be_bytes().to_vec();
            payload.resize(PAYLOAD_BYTES, 0x5c);
            let report = bench.dut.send_socket(from, payload, Some(destination))?;
            if let Some(refusal) = report.refused.first() {
                bench.fail(ReasonCode::Refused, format!("datagram {number}: {}", refusal.reason));
            }
        }
        arrived.extend(bench.peer.receive_socket(to, AT_ONCE as u32, idle, limit)?);
        // Stamps of the NIC come beside those of the stack.
        let most = AT_ONCE as u32;
        let mut seen = bench.dut.receive_socket(from, most, idle, limit)?;
        seen.retain(|one| one.stamp_of.is_some());
        sent_stamps.extend(seen);
    }
    sent_stamps.extend(bench.dut.receive_socket(from, u32::MAX, idle, limit)?);
    bench.dut.close(from)?;
    bench.peer.close(to)?;
    let sent = judge_sent(bench, &sent_stamps, count);
    judge_received(bench, &arrived, &sent, count);
    Ok(())
}

fn stamped(address: IpAddr) -> SocketOptions {
    SocketOptions {
        kind: SocketKind::Udp,
        bind: SocketAddr::new(address, 0),
        connect: None,
        link: None,
        gro: false,
        segment_bytes: 0,
        no_checksum: false,
        groups: Vec::new(),
        dont_fragment: false,
        timestamps: true,
    }
}

/// One software stamp for each datagram, in the order sent; so for the NIC's, where there are any. Gives them by number.
fn judge_sent(bench: &mut Bench, stamps: &[Received], count: usize) -> BTreeMap<u32, u64> {
    let of = |pick: fn(&Received) -> Option<u64>| -> Vec<(u32, u64)> {
        stamps.iter().filter_map(|one| Some((one.stamp_of?, pick(one)?))).collect()
    };
    let software = of(|one| one.software_ns);
    let hardware = of(|one| one.hardware_ns.filter(|ns| *ns > 0));
    if software.is_empty() {
        bench.fail(
            ReasonCode::Count,
            "nothing that was sent has a stamp: the driver does not call skb_tx_timestamp",
        );
        return BTreeMap::new();
    }
    bench.measure("stamps of the stack", software.len() as f64, "");
    bench.measure("stamps of the NIC", hardware.len() as f64, "");
    for (whose, list) in [("stack", &software), ("NIC", &hardware)] {
        if list.is_empty() {
            continue;
        }
        let by_number: BTreeMap<u32, u64> = list.iter().copied().collect();
        if by_number.len() != list.len() {
            bench.fail(
                ReasonCode::Dup,
                format!("{} datagrams have two stamps of the {whose}", list.len() - by_number.len()),
            );
        }
        if by_number.len() != count {
            let text = format!("{} of {count} datagrams have a stamp of the {whose}", by_number.len());
            bench.fail(ReasonCode::Loss, text);
        }
        let values: Vec<u64> = by_number.values().copied().collect();
        if let Some(at) = values.windows(2).position(|pair| pair[0] > pair[1]) {
            let text =
                format!("the {whose}'s stamp of datagram {} is before the one of datagram {at}", at + 1);
            bench.fail(ReasonCode::Reorder, text);
        }
    }
    software.into_iter().collect()
}

/// One stamp for each datagram received, in order. Where both ends share a clock, not before it was sent.
fn judge_received(bench: &mut Bench, arrived: &[Received], sent: &BTreeMap<u32, u64>, count: usize) {
    if arrived.len() != count {
        bench.fail(ReasonCode::Loss, format!("{} of {count} datagrams arrived", arrived.len()));
    }
    let without = arrived.iter().filter(|one| one.software_ns.is_none()).count();
    if without > 0 {
        bench.fail(
            ReasonCode::Count,
            format!("{without} of {} datagrams received have no stamp", arrived.len()),
        );
    }
    let mut before = 0;
    for one in arrived {
        let (Some(stamp), Some(number)) = (one.software_ns, one.bytes.first_chunk::<4>()) else { continue };
        let number = u32::from_be_bytes(*number);
        if stamp < before {
            bench.fail(ReasonCode::Reorder, format!("the stamp of received datagram {number} goes back"));
        }
        before = stamp;
        if bench.dut.is_veth() && sent.get(&number).is_some_and(|sent| *sent > stamp) {
            bench.fail(ReasonCode::Data, format!("datagram {number} was received before it was sent"));
        }
    }
}
