//! FRAG-01: fragments and ping sizes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::bench::socket::SocketKind;
use linerate_model::bench::{EchoSpec, Handle, Received, SocketOptions};
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{PORTS, Packet, Transport, Udp, Version, out};
use crate::station::nanoseconds;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FRAG-01",
    title: "fragments and ping sizes",
    does: "Pings of every payload up to 3000 bytes and many up to 65507, both ways, IPv4 and IPv6; UDP of \
           the same sizes; fragments in reverse and overlapping.",
    holds: "Every echo is equal, none is lost, 65508 is refused.",
    skipped: "",
    source: "NICDRV test02",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["v4", "v6", "v4_fragments"], limit_s: 60, judge },
};

/// Every payload up to here, then each 61st.
const EVERY: u32 = 3000;
/// The largest payload of an IPv4 echo.
const LARGEST: u32 = 65_507;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    match bench.variant() {
        "v4" => pings(bench, Version::V4),
        "v6" => pings(bench, Version::V6),
        _ => fragments(bench),
    }
}

fn pings(bench: &mut Bench, version: Version) -> Result<(), Trouble> {
    let step = bench.scale().ceil() as usize;
    let mut payloads: Vec<u32> = (0..=EVERY).step_by(step).collect();
    payloads.extend((EVERY..LARGEST).step_by(61 * step));
    payloads.push(LARGEST);
    let (dut, peer) = bench.addresses(version)?;
    for (side, to) in [(Side::Dut, peer), (Side::Peer, dut)] {
        let spec = EchoSpec {
            to,
            link: None,
            payloads_bytes: payloads.clone(),
            rounds: 1,
            in_flight: 4,
            gap_ns: 0,
            timeout_ns: nanoseconds(bench.patient(Duration::from_secs(2))),
            dont_fragment: false,
            seed: bench.seed(),
        };
        let beyond = EchoSpec { payloads_bytes: vec![LARGEST + 1], ..spec.clone() };
        let station = bench.station(side);
        let (name, report) = (station.name(), station.echo(spec)?);
        let refused = match version {
            Version::V4 => station.echo(beyond)?.refused,
            Version::V6 => vec![(LARGEST + 1, 0)],
        };
        bench.measure(format!("pings of the {name}"), report.answered as f64, "answers");
        if report.lost > 0 {
            let text = format!(
                "{name}: {} of {} pings unanswered (bytes {:?})",
                report.lost, report.sent, report.lost_bytes
            );
            bench.fail(ReasonCode::Loss, text);
        }
        if report.wrong > 0 || report.duplicates > 0 {
            let (wrong, twice) = (report.wrong, report.duplicates);
            let text =
                format!("{name}: {wrong} answers wrong (first {:?}), {twice} came twice", report.first_wrong);
            bench.fail(ReasonCode::Data, text);
        }
        if let Some((bytes, errno)) = report.refused.first() {
            bench.fail(ReasonCode::Refused, format!("{name}: a ping of {bytes} bytes: errno {errno}"));
        }
        if refused.is_empty() {
            bench.fail(ReasonCode::Accepted, format!("{name}: a ping of {} bytes was sent", LARGEST + 1));
        }
    }
    Ok(())
}

/// A datagram in fragments, the last first, is delivered whole; one whose fragments overlap is never delivered wrong.
fn fragments(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    // The forged datagram is thrown away for its checksum.
    bench.allow_growth(&["dut.protocols.*InCsumErrors"]);
    let hosts = bench.real_hosts(Way::ToDut);
    let (dut, _) = bench.addresses(Version::V4)?;
    let (socket, port) = bench.dut.open_socket(udp_socket(dut))?;
    let lane = bench.packet_lane(Way::ToDut)?;
    let payload = bench.rng().bytes(6000);
    let mut packet = Packet::udp(&hosts, Version::V4, payload.clone());
    packet.transport = Transport::Udp(Udp { from: PORTS.0, to: port, wrong_length: None });
    let mut whole = cut(&packet, 0x4c52, 1024);
    whole.reverse();
    send(bench, &lane, &whole)?;
    let came = received(bench, socket)?;
    if came.first().map(|one| &one.bytes.0) != Some(&payload) {
        bench.fail(ReasonCode::Loss, format!("a datagram in reversed fragments: {} came", came.len()));
    }
    // The same once more with one fragment twice, its bytes changed: RFC 5722's attack, over IPv4.
    let mut overlapping = cut(&packet, 0x4c53, 1024);
    let mut forged = overlapping[1].clone();
    let last = forged.len() - 1;
    forged[last] ^= 0xff;
    overlapping.insert(1, forged);
    send(bench, &lane, &overlapping)?;
    for one in received(bench, socket)? {
        if one.bytes.0 != payload {
            bench.fail(
                ReasonCode::Data,
                "a datagram with overlapping fragments was delivered with wrong bytes",
            );
        }
    }
    Ok(())
}

fn send(bench: &mut Bench, lane: &Lane, frames: &[Vec<u8>]) -> Result<(), Trouble> {
    let frames: Vec<_> = frames.iter().cloned().map(out).collect();
    bench.peer.send(&lane.out, &frames).map(drop)
}

fn received(bench: &mut Bench, socket: Handle) -> Result<Vec<Received>, Trouble> {
    let idle = bench.patient(Duration::from_millis(300));
    bench.dut.receive_socket(socket, 10, idle, 10 * idle)
}

/// The frames of a packet's fragments, each of so many bytes (a multiple of 8) of its IP payload.
fn cut(packet: &Packet, id: u16, each: usize) -> Vec<Vec<u8>> {
    let frame = packet.frame();
    let payload = &frame[packet.transport_at()..];
    let count = payload.len().div_ceil(each);
    let fragment = |(index, part): (usize, &[u8])| {
        let mut fragment =
            Packet { payload: part.to_vec(), transport: Transport::Bare(17), ..packet.clone() };
        if let Some(ip) = fragment.v4() {
            ip.id = id;
            ip.dont_fragment = false;
            ip.more_fragments = index + 1 < count;
            ip.fragment_offset = (index * each / 8) as u16;
        }
        fragment.frame()
    };
    payload.chunks(each).enumerate().map(fragment).collect()
}

fn udp_socket(address: IpAddr) -> SocketOptions {
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
        timestamps: false,
    }
}
