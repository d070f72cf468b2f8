//! CSUM-04: checksums of zero.

use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use super::deliver::{self, Sample};
use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Hosts, Packet, Sum, Version};
use crate::must::checksum;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-04",
    title: "checksums of zero",
    does: "Data whose checksum comes to zero, TCP and UDP over both IP versions; UDP over IPv4 without a \
           checksum, over IPv6 with zero.",
    holds: "UDP is sent with 0xffff; without a checksum it is delivered over IPv4 and dropped over IPv6.",
    skipped: "",
    source: "ksft csum",
    privilege: Privilege::Raw,
    shown_on: "veth with tx off, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &["tx_v4_udp", "tx_v6_udp", "tx_v4_tcp", "tx_v6_tcp", "rx_v4", "rx_v6"],
        limit_s: 30,
        judge,
    },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let variant = bench.variant().to_owned();
    let version = if variant.contains("v6") { Version::V6 } else { Version::V4 };
    if variant.starts_with("rx") {
        bench.unmerged_dut()?;
        bench.allow_growth(&["dut.protocols.*InCsumErrors", "dut.driver.*csum_err*", "dut.driver.*_errors"]);
        let samples: Vec<Sample> = (0..64)
            .map(|length| Sample {
                payload: bench.rng().bytes(length),
                sum: Sum::Value(0),
                behind: Vec::new(),
            })
            .collect();
        return deliver::udp(bench, version, &samples).map(drop);
    }
    bench.neutral_peer()?;
    if bench.dut.is_veth() {
        return bench.with_setting(Side::Dut, "tx", "off", |bench| transmit(bench, version));
    }
    transmit(bench, version)
}

/// UDP's checksum of zero means that there is none, so that the other form is sent (RFC 768, RFC 8200 section 8.1).
fn transmit(bench: &mut Bench, version: Version) -> Result<(), Trouble> {
    let lane = bench.packet_lane(Way::ToPeer)?;
    let hosts = bench.hosts(Way::ToPeer);
    let is_udp = bench.variant().ends_with("udp");
    let packets: Vec<Packet> = (2..200)
        .step_by(2)
        .map(|length| {
            let payload = bench.rng().bytes(length);
            zero_summed(&hosts, version, is_udp, payload)
        })
        .collect();
    let frames: Vec<_> = packets.iter().map(Packet::sum_left_to_nic).collect();
    let expected: Vec<Vec<u8>> = packets.iter().map(Packet::frame).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    // TCP's zero has two forms, which the model takes for one.
    let rules = Rules::default();
    if is_udp {
        bench.judge(&lane, &expected, &arrived, rules);
        return Ok(());
    }
    let wrong = arrived.on_the_wire().iter().filter(|frame| checksum::check(frame).is_err()).count();
    if wrong > 0 || arrived.frames.len() != expected.len() {
        let (came, sent) = (arrived.frames.len(), expected.len());
        let text = format!("{came} of {sent} segments came, {wrong} of them with a wrong checksum");
        bench.fail(ReasonCode::CsumTx, text);
    }
    Ok(())
}

/// A packet whose payload ends in the word that makes its sum come to zero.
fn zero_summed(hosts: &Hosts, version: Version, is_udp: bool, mut payload: Vec<u8>) -> Packet {
    let end = payload.len();
    payload[end - 2..].fill(0);
    let new = if is_udp { Packet::udp } else { Packet::tcp };
    let mut packet = new(hosts, version, payload);
    let frame = packet.frame();
    let at = packet.transport_at() + packet.transport.sum_offset().unwrap_or(0);
    packet.payload[end - 2..].copy_from_slice(&frame[at..at + 2]);
    packet
}
