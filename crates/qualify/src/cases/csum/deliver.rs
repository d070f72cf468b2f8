//! Packets with good and bad checksums, sent to sockets of the dut: what is delivered, and what the driver says of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use linerate_model::bench::frame::ChecksumWord;
use linerate_model::bench::socket::SocketKind;
use linerate_model::bench::{FrameIn, Handle, LinkAct, PortOptions, SocketOptions};
use linerate_model::qualification::{Evidence, ReasonCode};

use crate::bench::{Bench, Lane, Way};
use crate::frame::{Network, Packet, Sum, Transport, Udp, Version, flags, out};
use crate::must::checksum;
use crate::must::parse::parse;
use crate::station::Port;
use crate::trouble::Trouble;

/// Source port of the first UDP packet of a batch; each has its own, which tells them apart.
const FIRST_PORT: u16 = 20_000;
/// Packets that are on their way at a time: they fit in a socket's receive buffer.
const AT_ONCE: usize = 64;

/// A packet to send, and what must become of it.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) payload: Vec<u8>,
    pub(super) sum: Sum,
    /// Bytes behind the datagram.
    pub(super) behind: Vec<u8>,
}

impl Sample {
    /// The frame of `packet` with this payload, and whether its checksums are right by the software model.
    fn frame(&self, packet: &Packet) -> (Vec<u8>, bool) {
        let packet = Packet { payload: self.payload.clone(), sum: self.sum, ..packet.clone() };
        let mut frame = packet.frame();
        frame.extend(&self.behind);
        let is_good = checksum::check(&frame).is_ok();
        (frame, is_good)
    }
}

/// Payload with a good checksum and with bad ones: one bit wrong, off by one (a lost carry), zero.
pub(super) fn good_and_bad(payload: &[u8], behind: &[u8]) -> Vec<Sample> {
    [Sum::Flipped(0x0001), Sum::Flipped(0x8000), Sum::Flipped(0x0101), Sum::Value(0), Sum::Right]
        .map(|sum| Sample { payload: payload.to_vec(), sum, behind: behind.to_vec() })
        .into()
}

/// Sends datagrams to a UDP socket; gives how many good ones the driver called good.
pub(super) fn udp(bench: &mut Bench, version: Version, samples: &[Sample]) -> Result<usize, Trouble> {
    let (dut, _) = bench.addresses(version)?;
    let hosts = bench.real_hosts(Way::ToDut);
    let (socket, port) = bench.dut.open_socket(options(SocketKind::Udp, dut))?;
    let lane = bench.packet_lane(Way::ToDut)?;
    let mut marks = Marks::default();
    for batch in samples.chunks(AT_ONCE) {
        let packets = batch.iter().enumerate().map(|(index, sample)| {
            let mut packet = Packet::udp(&hosts, version, Vec::new());
            let from = FIRST_PORT + index as u16;
            packet.transport = Transport::Udp(Udp { from, to: port, wrong_length: None });
            sample.frame(&packet)
        });
        let (frames, good): (Vec<Vec<u8>>, Vec<bool>) = packets.unzip();
        let sent: Vec<_> = frames.iter().cloned().map(out).collect();
        bench.peer.send(&lane.out, &sent)?;
        let due = good.iter().filter(|good| **good).count();
        let idle = bench.patient(Duration::from_millis(200));
        let came = bench.dut.receive_socket(socket, due as u32 + 1, idle / 4, 20 * idle)?;
        let seen = bench.dut.receive_within(&lane.into, frames.len(), idle / 4, 20 * idle)?.0;
        for (index, sample) in batch.iter().enumerate() {
            let from = FIRST_PORT + index as u16;
            let delivered = came.iter().find(|one| one.from.is_some_and(|address| address.port() == from));
            let at_tap = seen.iter().find(|frame| source_port(frame) == Some(from));
            let what = format!("{} UDP of {} bytes", version.word(), sample.payload.len());
            marks.add(at_tap, good[index]);
            let evidence = Evidence {
                what: what.clone(),
                expected: Some(frames[index].clone().into()),
                got: delivered.map(|one| one.bytes.clone()),
                offset: None,
            };
            match (good[index], delivered) {
                (true, Some(one)) if one.bytes.0 != sample.payload => {
                    bench.fail_with(
                        ReasonCode::Data,
                        format!("{what} was delivered with other bytes"),
                        evidence,
                    );
                }
                (true, None) if at_tap.is_some() => {
                    let text = format!("{what} has a good checksum and was not delivered");
                    bench.fail_with(ReasonCode::CsumFalseBad, text, evidence);
                }
                (true, None) => bench.fail_with(ReasonCode::Loss, format!("{what} did not arrive"), evidence),
                (false, Some(_)) => {
                    let text = format!("{what} has a bad checksum and was delivered");
                    bench.fail_with(ReasonCode::CsumFalseOk, text, evidence);
                }
                _ => {}
            }
        }
    }
    marks.judge(bench);
    bench.close_lane(&lane)?;
    bench.dut.close(socket)?;
    Ok(marks.good_marked)
}

/// Sends segments to a TCP socket over a connection whose other end is made by hand: each bad segment stands where the next
/// good one does, so that the stream tells which was taken.
pub(super) fn tcp(bench: &mut Bench, version: Version, samples: &[Sample]) -> Result<(), Trouble> {
    let mut talker = Talker::connect(bench, version)?;
    let mut marks = Marks::default();
    let mut must = Vec::new();
    for sample in samples {
        // A bad one differs from the good one that takes its place.
        let payload = match sample.sum {
            Sum::Right => sample.payload.clone(),
            _ => sample.payload.iter().map(|byte| !byte).collect(),
        };
        let (frame, good) = Sample { payload, ..sample.clone() }.frame(&talker.packet);
        bench.peer.send(&talker.lane.out, &[out(frame)])?;
        if good && sample.sum == Sum::Right {
            talker.advance(sample.payload.len());
            must.extend(&sample.payload);
        }
        let idle = bench.patient(Duration::from_millis(5));
        let seen = bench.dut.receive_within(&talker.lane.into, 1, idle, 20 * idle)?.0;
        marks.add(seen.iter().find(|frame| source_port(frame) == Some(Talker::PORT)), good);
    }
    let idle = bench.patient(Duration::from_millis(300));
    let mut stream = Vec::new();
    while stream.len() < must.len() {
        let came = bench.dut.receive_socket(talker.socket, 64, idle, 20 * idle)?;
        if came.is_empty() {
            break;
        }
        came.into_iter().for_each(|one| stream.extend(one.bytes.0));
    }
    let what = format!("{} TCP", version.word());
    if let Some(offset) = stream.iter().zip(&must).position(|(got, must)| got != must) {
        let evidence = Evidence {
            what: what.clone(),
            expected: Some(must[offset..(offset + 64).min(must.len())].to_vec().into()),
            got: Some(stream[offset..(offset + 64).min(stream.len())].to_vec().into()),
            offset: Some(offset as u64),
        };
        let text = format!("{what}: byte {offset} of the stream is that of a segment with a bad checksum");
        bench.fail_with(ReasonCode::CsumFalseOk, text, evidence);
    } else if stream.len() != must.len() {
        let text = format!("{what}: {} of {} good bytes were delivered", stream.len(), must.len());
        bench.fail(ReasonCode::CsumFalseBad, text);
    }
    marks.judge(bench);
    talker.hang_up(bench)
}

/// What the driver said of frames.
#[derive(Debug, Default)]
struct Marks {
    good: usize,
    good_marked: usize,
    bad_marked: usize,
}

impl Marks {
    fn add(&mut self, frame: Option<&FrameIn>, good: bool) {
        let Some(frame) = frame else { return };
        let marked = frame.checksum == ChecksumWord::Valid;
        self.good += usize::from(good);
        self.good_marked += usize::from(good && marked);
        self.bad_marked += usize::from(!good && marked);
    }

    /// A bad one must never be called good. That good ones are is worth knowing: some drivers give a sum instead.
    fn judge(&self, bench: &mut Bench) {
        if self.bad_marked > 0 {
            let text =
                format!("{} packets with a bad checksum were called good by the driver", self.bad_marked);
            bench.fail(ReasonCode::CsumFalseOk, text);
        }
        let share = self.good_marked as f64 * 100.0 / self.good.max(1) as f64;
        bench.measure("good packets called good by the driver", share, "%");
    }
}

fn source_port(frame: &FrameIn) -> Option<u16> {
    let header = parse(&frame.bytes).ok()?.network?;
    let bytes = frame.bytes.get(header.transport_at..header.transport_at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// One end of a TCP connection, made of frames, at an address that the peer's kernel does not have.
struct Talker {
    lane: Lane,
    packet: Packet,
    socket: Handle,
}

impl Talker {
    const PORT: u16 = 19_999;
    const FIRST: u32 = 1000;

    fn connect(bench: &mut Bench, version: Version) -> Result<Self, Trouble> {
        let (dut, peer) = bench.addresses(version)?;
        let nobody = beside(dut, peer);
        let (link, mac) = (bench.dut.link().to_owned(), bench.peer.mac());
        bench.dut.act(LinkAct::AddNeighbour { link, address: nobody, mac })?;
        let (socket, port) = bench.dut.open_socket(options(SocketKind::Tcp, dut))?;
        let lane = bench.packet_lane(Way::ToDut)?;
        let answers = bench.peer.open_port(PortOptions::default())?;
        let mut packet = Packet::tcp(&bench.real_hosts(Way::ToDut), version, Vec::new());
        match (&mut packet.network, nobody) {
            (Network::V4(ip), IpAddr::V4(from)) => ip.from = from,
            (Network::V6(ip), IpAddr::V6(from)) => ip.from = from,
            _ => {}
        }
        if let Some(tcp) = packet.tcp_header() {
            (tcp.from, tcp.to) = (Self::PORT, port);
            (tcp.sequence, tcp.acknowledgement, tcp.flags) = (Self::FIRST, 0, flags::SYN);
        }
        bench.peer.send(&lane.out, &[packet.out()])?;
        let Some(theirs) = answer(bench, &answers)? else {
            return Err(Trouble::harness("the dut did not answer a TCP handshake by hand"));
        };
        if let Some(tcp) = packet.tcp_header() {
            (tcp.sequence, tcp.acknowledgement) = (Self::FIRST + 1, theirs.wrapping_add(1));
            tcp.flags = flags::ACK;
        }
        bench.peer.send(&lane.out, &[packet.out()])?;
        if let Some(tcp) = packet.tcp_header() {
            tcp.flags = flags::ACK | flags::PSH;
        }
        bench.peer.close(answers.handle)?;
        Ok(Self { lane, packet, socket })
    }

    fn advance(&mut self, bytes: usize) {
        if let Some(tcp) = self.packet.tcp_header() {
            tcp.sequence = tcp.sequence.wrapping_add(bytes as u32);
        }
    }

    /// A reset, so that the dut's kernel asks nobody any more.
    fn hang_up(mut self, bench: &mut Bench) -> Result<(), Trouble> {
        if let Some(tcp) = self.packet.tcp_header() {
            tcp.flags = flags::RST;
        }
        bench.peer.send(&self.lane.out, &[self.packet.out()])?;
        bench.dut.close(self.socket)?;
        bench.close_lane(&self.lane)
    }
}

/// The dut's sequence number of its SYN.
fn answer(bench: &mut Bench, port: &Port) -> Result<Option<u32>, Trouble> {
    let idle = bench.patient(Duration::from_millis(500));
    for _ in 0..20 {
        let (frames, _) = bench.peer.receive_within(port, 1, idle, 2 * idle)?;
        let Some(frame) = frames.first() else { return Ok(None) };
        let Some(header) = parse(&frame.bytes).ok().and_then(|layers| layers.network) else { continue };
        let Some(tcp) = frame.bytes.get(header.transport_at..header.transport_at + 20) else { continue };
        let is_ours = header.protocol == 6 && tcp[2..4] == Talker::PORT.to_be_bytes();
        if is_ours && tcp[13] & (flags::SYN | flags::ACK) == flags::SYN | flags::ACK {
            return Ok(Some(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])));
        }
    }
    Ok(None)
}

/// An address of the same network that neither end has.
fn beside(dut: IpAddr, peer: IpAddr) -> IpAddr {
    let free = |taken: [u8; 2]| (70..=72).find(|byte| !taken.contains(byte)).unwrap_or(73);
    match (dut, peer) {
        (IpAddr::V4(dut), IpAddr::V4(peer)) => {
            let [a, b, c, d] = dut.octets();
            Ipv4Addr::new(a, b, c, free([d, peer.octets()[3]])).into()
        }
        (IpAddr::V6(dut), other) => {
            let mut octets = dut.octets();
            let theirs = match other {
                IpAddr::V6(peer) => peer.octets()[15],
                IpAddr::V4(_) => 0,
            };
            octets[15] = free([octets[15], theirs]);
            Ipv6Addr::from(octets).into()
        }
        (dut, _) => dut,
    }
}

pub(super) fn options(kind: SocketKind, address: IpAddr) -> SocketOptions {
    SocketOptions {
        kind,
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
