//! ICMP echoes whose every byte is compared (RFC 792, RFC 4443 section 4), from a raw socket (raw(7); CAP_NET_RAW).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use linerate_model::bench::echo::{EchoReport, EchoSpec};
use linerate_sys::error::Result;
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::{SysError, clock, sockopt};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::place::Key;

/// Type, code, checksum, identifier, sequence.
const HEADER_BYTES: usize = 8;
const ECHO_REPLY_4: u8 = 0;
const ECHO_4: u8 = 8;
const ECHO_6: u8 = 128;
const ECHO_REPLY_6: u8 = 129;
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;
const LARGEST_BYTES: usize = 65536;
/// Longest wait before it is looked at again whether to stop.
const TICK_NS: u64 = 20_000_000;
/// Lost and refused lengths that are kept.
const MOST_EXAMPLES: usize = 32;
/// Round trips that are kept for the median; later ones only count for the smallest and largest.
const MOST_TIMES: usize = 1 << 20;
/// Sequence numbers have 16 bits; half of them may be on their way.
const MOST_IN_FLIGHT: u32 = 1 << 15;

/// Sends the echoes of `spec` and judges the replies; returns when all are answered or given up, or early when `stop` is set.
///
/// # Errors
/// A raw socket is not allowed (EPERM), or the link or an option is refused. A payload that can't be sent is in the report.
pub fn run(spec: &EchoSpec, stop: &AtomicBool) -> Result<EchoReport> {
    let mut echo = Echo::open(spec)?;
    let all = u64::from(spec.rounds) * spec.payloads_bytes.len() as u64;
    let in_flight = spec.in_flight.clamp(1, MOST_IN_FLIGHT) as usize;
    let (mut number, mut due_ns) = (0, clock::monotonic_ns());
    while (number < all || !echo.pending.is_empty()) && !stop.load(Relaxed) {
        let now = clock::monotonic_ns();
        echo.give_up(now);
        if number < all && echo.pending.len() < in_flight && now >= due_ns {
            echo.send(number)?;
            number += 1;
            due_ns = now + spec.gap_ns;
            echo.take_all()?;
            continue;
        }
        let next_send = if number < all && echo.pending.len() < in_flight { due_ns } else { u64::MAX };
        echo.wait(next_send.min(now + TICK_NS).saturating_sub(now))?;
        echo.take_all()?;
    }
    Ok(echo.report())
}

struct Sent {
    number: u64,
    at_ns: u64,
}

struct Echo<'a> {
    spec: &'a EchoSpec,
    socket: Socket,
    to: SockAddr,
    identifier: u16,
    /// Without an answer, by number.
    pending: BTreeMap<u64, Sent>,
    /// Number of the last echo of each sequence number that was answered.
    answered: Vec<Option<u64>>,
    /// Number of the last echo of each sequence number.
    last: Vec<Option<u64>>,
    times_ns: Vec<u64>,
    largest_ns: u64,
    smallest_ns: u64,
    buffer: Vec<u8>,
    report: EchoReport,
}

impl<'a> Echo<'a> {
    fn open(spec: &'a EchoSpec) -> Result<Self> {
        let failed = |operation| move |error| SysError::new(operation, format!("echo to {}", spec.to), error);
        let (domain, protocol) = match spec.to {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket =
            Socket::new(domain, Type::RAW, Some(protocol)).map_err(failed("open a raw socket for"))?;
        let mut scope = 0;
        if let Some(link) = &spec.link {
            socket.bind_device(Some(link.as_bytes())).map_err(failed("set SO_BINDTODEVICE for"))?;
            scope = nix::net::if_::if_nametoindex(link.as_str())
                .map_err(|error| SysError::new("find link", link.clone(), error.into()))?;
        }
        sockopt::set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        // One datagram may be of 64 KiB, and its truesize more.
        sockopt::set_send_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        match (spec.dont_fragment, spec.to) {
            (false, _) => {}
            (true, IpAddr::V4(_)) => sockopt::set_dont_fragment(&socket)?,
            (true, IpAddr::V6(_)) => sockopt::set_dont_fragment_v6(&socket)?,
        }
        let to = match spec.to {
            IpAddr::V4(address) => SocketAddr::from((address, 0)),
            IpAddr::V6(address) => SocketAddrV6::new(address, 0, 0, scope).into(),
        };
        let mut identifier = [0; 2];
        getrandom::fill(&mut identifier)
            .map_err(|error| SysError::new("draw random bytes", "", io::Error::other(error)))?;
        Ok(Self {
            spec,
            socket,
            to: to.into(),
            identifier: u16::from_ne_bytes(identifier),
            pending: BTreeMap::new(),
            answered: vec![None; 1 << 16],
            last: vec![None; 1 << 16],
            times_ns: Vec::new(),
            largest_ns: 0,
            smallest_ns: u64::MAX,
            buffer: vec![0; LARGEST_BYTES],
            report: EchoReport::default(),
        })
    }

    fn length(&self, number: u64) -> u32 {
        let all = &self.spec.payloads_bytes;
        all[(number % all.len() as u64) as usize]
    }

    fn key(&self, number: u64) -> Key {
        Key::of(&[self.spec.seed, self.identifier.into(), number])
    }

    fn send(&mut self, number: u64) -> Result<()> {
        let length = self.length(number);
        let ours = if self.spec.to.is_ipv4() { ECHO_4 } else { ECHO_6 };
        let mut packet = vec![0; HEADER_BYTES + length as usize];
        packet[0] = ours;
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&(number as u16).to_be_bytes());
        self.key(number).fill(0, &mut packet[HEADER_BYTES..]);
        // The kernel fills in that of ICMPv6, which covers addresses.
        if self.spec.to.is_ipv4() {
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let at_ns = clock::monotonic_ns();
        let given_up_ns = at_ns.saturating_add(self.spec.timeout_ns);
        loop {
            match self.socket.send_to(&packet, &self.to) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The queue is full: it empties.
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                    if clock::monotonic_ns() >= given_up_ns {
                        self.refused(length, &error);
                        return Ok(());
                    }
                    self.wait(1_000_000)?;
                    self.take_all()?;
                }
                Err(error) => {
                    self.refused(length, &error);
                    return Ok(());
                }
            }
        }
        self.report.sent += 1;
        self.last[usize::from(number as u16)] = Some(number);
        self.pending.insert(number, Sent { number, at_ns });
        Ok(())
    }

    fn refused(&mut self, length: u32, error: &io::Error) {
        if self.report.refused.len() < MOST_EXAMPLES {
            self.report.refused.push((length, error.raw_os_error().unwrap_or(0)));
        }
    }

    fn give_up(&mut self, now: u64) {
        while let Some(entry) = self.pending.first_entry() {
            if now.saturating_sub(entry.get().at_ns) < self.spec.timeout_ns {
                return;
            }
            let number = entry.remove().number;
            self.report.lost += 1;
            if self.report.lost_bytes.len() < MOST_EXAMPLES {
                self.report.lost_bytes.push(self.length(number));
            }
        }
    }

    fn wait(&self, limit_ns: u64) -> Result<()> {
        let mut set = PollSet::new();
        set.add(self.socket.as_fd(), Readiness::READ);
        match set.wait(Some(limit_ns)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                Err(SysError::new("wait for echoes", "", error))
            }
            _ => Ok(()),
        }
    }

    /// Takes every reply that is there.
    fn take_all(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let taken = loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(count) => self.take(&buffer[..count]),
                Err(nix::errno::Errno::EAGAIN) => break Ok(()),
                Err(nix::errno::Errno::EINTR) => {}
                // What an ICMP error says of an echo shows by its missing answer.
                Err(nix::errno::Errno::EHOSTUNREACH | nix::errno::Errno::ECONNREFUSED) => {}
                Err(error) => break Err(SysError::new("receive echoes", "", error.into())),
            }
        };
        self.buffer = buffer;
        taken
    }

    fn take(&mut self, packet: &[u8]) {
        let now = clock::monotonic_ns();
        let (expected, message) = if self.spec.to.is_ipv4() {
            let header = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
            (ECHO_REPLY_4, packet.get(header..).unwrap_or_default())
        } else {
            (ECHO_REPLY_6, packet)
        };
        let Some((head, content)) = message.split_first_chunk::<HEADER_BYTES>() else { return };
        let identifier = u16::from_be_bytes([head[4], head[5]]);
        if head[0] != expected || identifier != self.identifier {
            return;
        }
        let sequence = u16::from_be_bytes([head[6], head[7]]);
        let Some(number) = self.last[usize::from(sequence)] else { return };
        if self.answered[usize::from(sequence)] == Some(number) {
            self.report.duplicates += 1;
            return;
        }
        // One that was given up and comes late was lost.
        let Some(sent) = self.pending.remove(&number) else { return };
        self.answered[usize::from(sequence)] = Some(number);
        self.timed(now - sent.at_ns);
        let length = self.length(number);
        let wrong = match self.key(number).compare(0, content) {
            Some(difference) => Some(difference.offset as u32),
            None if content.len() != length as usize => Some(length.min(content.len() as u32)),
            // A raw socket is given what the checksum says is damaged, too.
            None if self.spec.to.is_ipv4() && checksum(message) != 0 => Some(0),
            None => None,
        };
        match wrong {
            None => self.report.answered += 1,
            Some(place) => {
                self.report.wrong += 1;
                self.report.first_wrong.get_or_insert((length, place));
            }
        }
    }

    fn timed(&mut self, time_ns: u64) {
        self.smallest_ns = self.smallest_ns.min(time_ns);
        self.largest_ns = self.largest_ns.max(time_ns);
        if self.times_ns.len() < MOST_TIMES {
            self.times_ns.push(time_ns);
        }
    }

    fn report(mut self) -> EchoReport {
        self.times_ns.sort_unstable();
        let median = self.times_ns.get(self.times_ns.len() / 2);
        self.report.round_trip_ns = median.map(|median| [self.smallest_ns, *median, self.largest_ns]);
        self.report
    }
}

/// The Internet checksum (RFC 1071); 0 over a message that has its own right.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u64 = 0;
    let (words, rest) = bytes.as_chunks::<2>();
    for word in words {
        sum += u64::from(u16::from_be_bytes(*word));
    }
    if let [last] = rest {
        sum += u64::from(u16::from_be_bytes([*last, 0]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use linerate_testkit::need;

    use super::*;

    fn spec(to: &str) -> EchoSpec {
        EchoSpec {
            to: to.parse().unwrap(),
            link: None,
            payloads_bytes: vec![0, 1, 17, 56, 1472, 9000, 65_000],
            rounds: 3,
            in_flight: 5,
            gap_ns: 0,
            timeout_ns: 5_000_000_000,
            dont_fragment: false,
            seed: 3,
        }
    }

    #[test]
    fn every_length_is_answered_with_the_same_bytes() {
        need!(root());
        for to in ["127.0.0.1", "::1"] {
            let report = run(&spec(to), &AtomicBool::new(false)).unwrap();
            assert_eq!((report.sent, report.answered, report.lost), (21, 21, 0), "{to} {report:?}");
            assert_eq!((report.wrong, report.duplicates), (0, 0), "{to} {report:?}");
            let [smallest, median, largest] = report.round_trip_ns.unwrap();
            assert!(0 < smallest && smallest <= median && median <= largest);
        }
    }

    #[test]
    fn what_is_too_large_is_refused_and_what_nobody_answers_is_lost() {
        need!(root());
        let mut large = spec("127.0.0.1");
        (large.payloads_bytes, large.rounds) = (vec![65_507, 65_508, 70_000], 1);
        let report = run(&large, &AtomicBool::new(false)).unwrap();
        assert_eq!(report.answered, 1, "{report:?}");
        let refused = vec![(65_508, nix::libc::EMSGSIZE), (70_000, nix::libc::EMSGSIZE)];
        assert_eq!(report.refused, refused);
        let mut nobody = spec("127.0.0.1");
        // Under way too long: each is given up at once.
        nobody.timeout_ns = 0;
        let report = run(&nobody, &AtomicBool::new(false)).unwrap();
        assert_eq!(report.answered + report.lost, 21, "{report:?}");
        let stopped = run(&spec("127.0.0.1"), &AtomicBool::new(true)).unwrap();
        assert_eq!(stopped.sent, 0);
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff]), 0x00ff);
    }
}
