//! TSO-01: segments as they must be.

use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::bench::{FrameOut, PortOptions};
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Hosts, Packet, TPID_CUSTOMER, Tcp, Version, flags, tag};
use crate::must::delivery::Rules;
use crate::must::segments::segments;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "TSO-01",
    title: "segments as they must be",
    does: "Packets to cut by the NIC: IPv4 and IPv6, segments of 33 to 1460 bytes, 1 byte to 64 KiB of \
           payload, multiples and one more or less, with options, FIN and PSH, CWR, and a VLAN tag.",
    holds: "As many segments as there must be, each with its length, sequence number, IP identification, \
           flags and checksum right; all bytes in place.",
    skipped: "Without segmentation offload the stack's own is judged instead.",
    source: "NDISTest, ksft; new",
    privilege: Privilege::Raw,
    shown_on: "veth with tso off (the stack's code), e1000, e1000e, igb, 8139, vmxnet3, virtio over a tap, \
           hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &[
            "v4",
            "v6",
            "v4_timestamps",
            "v6_timestamps",
            "v4_fin_psh",
            "v6_fin_psh",
            "v4_cwr",
            "v6_cwr",
            "v4_tagged",
            "v6_tagged",
        ],
        limit_s: 60,
        judge,
    },
};

/// Segment sizes, each with payloads around its multiples. The last is what fits the usual MTU.
const SIZES: [u16; 5] = [33, 101, 536, 1000, 1400];
/// Larger than what any IP datagram with our headers can hold is cut to fit.
const LARGEST_PAYLOAD: usize = 65_000;

/// More at once and a receiver's backlog overflows (`net.core.netdev_max_backlog`, 1000 unless changed).
const MOST_SEGMENTS: usize = 800;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    // A veth end hands the uncut packet over: only the stack's own segmentation can be judged there.
    if bench.dut.is_veth() {
        return bench.with_setting(Side::Dut, "tso", "off", |bench| {
            bench.with_setting(Side::Dut, "tx", "off", all_sizes)
        });
    }
    all_sizes(bench)
}

fn all_sizes(bench: &mut Bench) -> Result<(), Trouble> {
    let into = PortOptions { slots: 4096, ..PortOptions::default() };
    let lane = bench.lane_with(Way::ToPeer, PortOptions { offload: true, ..PortOptions::default() }, into)?;
    let hosts = bench.hosts(Way::ToPeer);
    let header = header(&hosts, bench.variant());
    for size in SIZES {
        let mut batch = Batch::default();
        for payload_bytes in payloads(usize::from(size), bench.scale()) {
            let (run, stream) = (bench.run(), bench.stream());
            let payload = probe::payload(ProbeId { run, stream, sequence: 0 }, payload_bytes);
            let packet = Packet { payload, ..header.clone() };
            if batch.expected.len() + payload_bytes / usize::from(size) > MOST_SEGMENTS {
                std::mem::take(&mut batch).exchange(bench, &lane, size)?;
            }
            batch.add(&packet, size);
        }
        batch.exchange(bench, &lane, size)?;
        if !bench.is_clean() {
            return Ok(());
        }
    }
    Ok(())
}

/// One byte, and one more, one less and exactly each of a few multiples; on a fast machine up to 64 KiB.
fn payloads(size: usize, scale: f64) -> Vec<usize> {
    let most = (LARGEST_PAYLOAD / size).min(if scale > 4.0 { 64 } else { MOST_SEGMENTS });
    let mut all = vec![1];
    for multiple in [1, 2, 3, 17, most] {
        let whole = (multiple * size).min(LARGEST_PAYLOAD);
        all.extend([whole - 1, whole, (whole + 1).min(LARGEST_PAYLOAD)]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Packets that are sent together, and the segments that must come of them.
#[derive(Default)]
struct Batch {
    frames: Vec<FrameOut>,
    expected: Vec<Vec<u8>>,
}

impl Batch {
    fn add(&mut self, packet: &Packet, size: u16) {
        // What fits one segment is never marked as one to cut: the stack refuses to.
        self.frames.push(match packet.payload.len() > usize::from(size) {
            true => packet.segments_left_to_nic(size),
            false => packet.sum_left_to_nic(),
        });
        self.expected.extend(segments(packet, size.into()).iter().map(Packet::frame));
    }

    fn exchange(self, bench: &mut Bench, lane: &Lane, size: u16) -> Result<(), Trouble> {
        let arrived = bench.try_exchange(lane, &self.frames, self.expected.len())?;
        if let Some(refusal) = arrived.sent.refused.first() {
            let bytes = self.frames.get(refusal.index as usize).map_or(0, |frame| frame.bytes.len());
            let text =
                format!("a frame of {bytes} bytes in segments of {size} was refused: {}", refusal.reason);
            bench.fail(ReasonCode::Refused, text);
            return Ok(());
        }
        if arrived.frames.len() != self.expected.len() {
            let (frames, count, must) = (self.frames.len(), arrived.frames.len(), self.expected.len());
            let text = format!("{frames} packets in segments of {size} arrived as {count}, must be {must}");
            bench.fail(ReasonCode::Seg, text);
        }
        bench.judge(lane, &self.expected, &arrived, Rules::default());
        Ok(())
    }
}

/// A packet without payload, as the variant names it.
fn header(hosts: &Hosts, variant: &str) -> Packet {
    let version = if variant.starts_with("v6") { Version::V6 } else { Version::V4 };
    let mut packet = Packet::tcp(hosts, version, Vec::new());
    let tcp = packet.tcp_header();
    match (variant.get(3..), tcp) {
        (Some("timestamps"), Some(tcp)) => tcp.options = Tcp::timestamps(0x0102_0304, 0x0506_0708),
        (Some("fin_psh"), Some(tcp)) => tcp.flags |= flags::FIN | flags::PSH,
        (Some("cwr"), Some(tcp)) => tcp.flags |= flags::CWR,
        (Some("tagged"), _) => packet.tags = vec![tag(TPID_CUSTOMER, 3, false, 100)],
        _ => {}
    }
    packet
}
