//! VLAN-05: VLAN, MTU and offloads.

use linerate_model::bench::FrameOut;
use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{
    ETHERNET_BYTES, Hosts, Packet, TAG_BYTES, TPID_CUSTOMER, Version, on_the_wire, out, tag, tagged_probe,
};
use crate::must::delivery::Rules;
use crate::must::parse::parse;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "VLAN-05",
    title: "VLAN, MTU and offloads",
    does: "Full payload behind a tag both ways with each setting of insertion and stripping; checksums \
           and segments behind a tag.",
    holds: "Frames of 1518 and 1522 bytes pass whole.",
    skipped: "",
    source: "NICDRV, LNST",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["as_it_is", "rxvlan_off", "txvlan_off", "both_off"], limit_s: 30, judge },
};

/// Payload of each segment.
const SEGMENT_BYTES: u16 = 1000;
/// Payload of the packets that are cut into segments: exact multiples, and one more or less.
const SUPER_BYTES: [usize; 4] = [2000, 2001, 7999, 15_000];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    let variant = bench.variant().to_owned();
    // As it is, with either off, with both off.
    match variant.as_str() {
        "as_it_is" => all(bench),
        "rxvlan_off" | "txvlan_off" => {
            bench.with_setting(Side::Dut, variant.trim_end_matches("_off"), "off", all)
        }
        _ => bench.with_setting(Side::Dut, "rxvlan", "off", |bench| {
            bench.with_setting(Side::Dut, "txvlan", "off", all)
        }),
    }
}

fn all(bench: &mut Bench) -> Result<(), Trouble> {
    for way in Way::BOTH {
        full_frames(bench, way)?;
    }
    // No checksum is ever filled in, and nothing cut, between two veth ends: the stack's own work is judged there.
    if bench.dut.is_veth() {
        return bench.with_setting(Side::Dut, "tso", "off", |bench| {
            bench.with_setting(Side::Dut, "tx", "off", offloads)
        });
    }
    offloads(bench)
}

/// Full payload behind a tag, and a few bytes less: 1518 bytes without FCS at an MTU of 1500.
fn full_frames(bench: &mut Bench, way: Way) -> Result<(), Trouble> {
    let lane = bench.packet_lane(way)?;
    let hosts = bench.hosts(way);
    let longest = bench.dut.mtu().min(bench.peer.mtu()) as usize + ETHERNET_BYTES + TAG_BYTES;
    let (run, stream) = (bench.run(), bench.stream());
    let probe = |n: usize| {
        let id = ProbeId { run, stream, sequence: n as u64 };
        tagged_probe(&hosts, &[one_tag(n)], id, longest - n % 16)
    };
    let expected: Vec<Vec<u8>> = (0..64).map(probe).collect();
    let frames: Vec<FrameOut> = expected.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &expected, &arrived, Rules::default());
    bench.close_lane(&lane)
}

/// Checksums and segments that are left to the NIC, behind a tag.
fn offloads(bench: &mut Bench) -> Result<(), Trouble> {
    let lane = bench.packet_lane(Way::ToPeer)?;
    let hosts = bench.hosts(Way::ToPeer);
    for version in [Version::V4, Version::V6] {
        let packets: Vec<Packet> = [0, 1, 17, 18, 100, 999, 1400]
            .into_iter()
            .flat_map(|bytes| {
                [packet(bench, &hosts, version, false, bytes), packet(bench, &hosts, version, true, bytes)]
            })
            .collect();
        let frames: Vec<FrameOut> = packets.iter().map(Packet::sum_left_to_nic).collect();
        let expected: Vec<Vec<u8>> = packets.iter().map(Packet::frame).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &expected, &arrived, Rules::default());
        for bytes in SUPER_BYTES {
            let whole = packet(bench, &hosts, version, true, bytes);
            segments(bench, &lane, &whole)?;
        }
    }
    bench.close_lane(&lane)
}

/// One packet that is to be cut: each segment has its tag, a right checksum and its part of the bytes.
fn segments(bench: &mut Bench, lane: &crate::bench::Lane, whole: &Packet) -> Result<(), Trouble> {
    let count = whole.payload.len().div_ceil(usize::from(SEGMENT_BYTES));
    let what =
        format!("{} bytes over IP{} in segments of {SEGMENT_BYTES}", whole.payload.len(), version(whole));
    let arrived = bench.try_exchange(lane, &[whole.segments_left_to_nic(SEGMENT_BYTES)], count)?;
    if let Some(refusal) = arrived.sent.refused.first() {
        bench.fail(ReasonCode::Refused, format!("{what}: {}", refusal.reason));
        return Ok(());
    }
    let mut payload: Vec<u8> = Vec::new();
    for frame in &arrived.frames {
        let bytes = on_the_wire(frame);
        let Ok(layers) = parse(&bytes) else {
            bench.fail(ReasonCode::Seg, format!("{what}: a segment's headers cannot be read"));
            return Ok(());
        };
        let tags = layers.tags;
        if tags != whole.tags {
            bench.fail(
                ReasonCode::Tag,
                format!("{what}: a segment has the tags {tags:x?}, not {:x?}", whole.tags),
            );
            return Ok(());
        }
        if let Err(error) = crate::must::checksum::check(&bytes) {
            bench.fail(ReasonCode::CsumTx, format!("{what}: {error}"));
            return Ok(());
        }
        // Padding is not payload.
        let end = layers.network.map_or(bytes.len(), |header| header.end);
        payload.extend(bytes.get(whole.payload_at()..end).unwrap_or_default());
    }
    if arrived.frames.len() != count {
        bench.fail(ReasonCode::Seg, format!("{what}: {} segments, must be {count}", arrived.frames.len()));
    } else if payload != whole.payload {
        bench.fail(ReasonCode::Data, format!("{what}: the bytes of all segments are not those sent"));
    }
    Ok(())
}

fn packet(bench: &mut Bench, hosts: &Hosts, version: Version, is_tcp: bool, bytes: usize) -> Packet {
    let (run, stream) = (bench.run(), bench.stream());
    let payload = probe::payload(ProbeId { run, stream, sequence: 0 }, bytes);
    let packet =
        if is_tcp { Packet::tcp(hosts, version, payload) } else { Packet::udp(hosts, version, payload) };
    Packet { tags: vec![one_tag(bytes)], ..packet }
}

fn version(packet: &Packet) -> &'static str {
    if packet.network.ether_type() == crate::frame::ETHER_TYPE_IPV4 { "v4" } else { "v6" }
}

fn one_tag(n: usize) -> linerate_model::bench::frame::Tag {
    tag(TPID_CUSTOMER, n as u8 % 8, n % 2 == 1, 1 + (n * 61 % 4094) as u16)
}
