//! CSUM-01: transmit checksums.

use linerate_model::bench::FrameOut;
use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::qualification::Level;
use linerate_model::trial::Side;

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Extension, Hosts, Packet, TPID_CUSTOMER, Version, tag};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-01",
    title: "transmit checksums",
    does: "Packets whose checksum is left to the NIC: TCP and UDP over IPv4 and IPv6, payloads of 0 to 200 bytes and \
           on to the MTU, with IPv4 options, IPv6 extension headers and a VLAN tag.",
    holds: "The peer finds each checksum right and each byte as sent; padding is in no sum.",
    skipped: "Without a fixed transmit checksum the stack's own is judged instead.",
    source: "ksft csum, DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "veth with tx off (the stack's code), all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &[
            "v4_udp",
            "v4_tcp",
            "v6_udp",
            "v6_tcp",
            "v4_options",
            "v6_extensions",
            "v4_tagged",
            "v6_tagged",
        ],
        limit_s: 30,
        judge,
    },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    // No checksum is ever filled in between two veth ends: only the stack's own can be judged there.
    if bench.dut.is_veth() {
        return bench.with_setting(Side::Dut, "tx", "off", all_lengths);
    }
    all_lengths(bench)
}

pub(super) fn all_lengths(bench: &mut Bench) -> Result<(), Trouble> {
    let lane = bench.packet_lane(Way::ToPeer)?;
    let hosts = bench.hosts(Way::ToPeer);
    for header in headers(&hosts, bench.variant()) {
        let overhead = header.payload_at() - header.network_at();
        let most = (bench.dut.mtu().min(bench.peer.mtu()) as usize).saturating_sub(overhead);
        let lengths = (0..=200).chain((200..most).step_by(97)).chain([most]).filter(|length| *length <= most);
        let (run, stream) = (bench.run(), bench.stream());
        let packets: Vec<Packet> = lengths
            .enumerate()
            .map(|(n, length)| {
                let payload = probe::payload(ProbeId { run, stream, sequence: n as u64 }, length);
                Packet { payload, ..header.clone() }
            })
            .collect();
        send_and_judge(bench, &lane, &packets)?;
    }
    Ok(())
}

fn send_and_judge(bench: &mut Bench, lane: &Lane, packets: &[Packet]) -> Result<(), Trouble> {
    let frames: Vec<FrameOut> = packets.iter().map(Packet::sum_left_to_nic).collect();
    let expected: Vec<Vec<u8>> = packets.iter().map(Packet::frame).collect();
    let arrived = bench.exchange(lane, &frames)?;
    bench.judge(lane, &expected, &arrived, Rules::default());
    Ok(())
}

/// Packets without payload, of all kinds that the variant names.
fn headers(hosts: &Hosts, variant: &str) -> Vec<Packet> {
    let version = if variant.starts_with("v6") { Version::V6 } else { Version::V4 };
    let both = || vec![Packet::udp(hosts, version, Vec::new()), Packet::tcp(hosts, version, Vec::new())];
    let with = |change: &dyn Fn(&mut Packet)| {
        let mut packets = both();
        packets.iter_mut().for_each(change);
        packets
    };
    match variant {
        "v4_udp" | "v6_udp" => both().drain(..1).collect(),
        "v4_tcp" | "v6_tcp" => both().drain(1..).collect(),
        "v4_options" => [4, 8, 20, 40]
            .into_iter()
            .flat_map(|bytes| {
                with(&|packet: &mut Packet| {
                    packet.v4().into_iter().for_each(|ip| ip.options = vec![1; bytes]);
                })
            })
            .collect(),
        "v6_extensions" => [8, 16, 64]
            .into_iter()
            .flat_map(|bytes| {
                with(&|packet: &mut Packet| {
                    packet
                        .v6()
                        .into_iter()
                        .for_each(|ip| ip.extensions = vec![Extension::padding(60, bytes)]);
                })
            })
            .collect(),
        _ => with(&|packet: &mut Packet| packet.tags = vec![tag(TPID_CUSTOMER, 3, false, 100)]),
    }
}
