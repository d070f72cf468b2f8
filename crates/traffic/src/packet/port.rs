//! A port: frames that a case made go out of a link, and what arrives is taken with all that the driver said of it.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::bench::frame::{Addressed, ChecksumWord, SendRefusal, Tag};
use linerate_model::bench::{FrameIn, FrameOut, PortOptions, SendReport};
use linerate_sys::packet::{
    ALL_PROTOCOLS, Captured, FrameSender, Membership, OFFLOAD_HEADER_BYTES, PacketSocket, Ring, RingSize,
};
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::{clock, sockopt};

use super::offload;
use super::{PacketError, Result};

const DEFAULT_FRAME_BYTES: u32 = 2048;
const DEFAULT_SLOTS: u32 = 4096;
/// Memory for a ring of the default number of slots.
const DEFAULT_RING_BYTES: u64 = 32 << 20;
/// Memory for a ring at most.
const MOST_RING_BYTES: u64 = 256 << 20;
/// A frame is never longer: 20 bits are more than any kernel merges.
const MOST_FRAME_BYTES: u32 = 1 << 20;
/// Frames in one system call.
const BATCH: usize = 64;
/// How long a frame waits for room in the socket before it is refused, and what the others of the same call then wait.
const ROOM_LIMIT_MS: u32 = 1000;
const IMPATIENT_MS: u32 = 1;
/// Bytes of frames in one answer: base64 and what is said of each must fit in a message.
const ANSWER_BYTES: usize = 24 << 20;
const ANSWER_FRAMES: usize = 1 << 16;
/// Longest wait before it is asked whether to give up.
const LONGEST_WAIT_NS: u64 = 50_000_000;

/// An open packet socket on a link. Its memberships end when it is dropped.
pub struct Port {
    pub(super) socket: PacketSocket,
    ring: Option<Ring>,
    sender: FrameSender,
    offload: bool,
}

/// What [`Port::receive`] took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// In order of arrival.
    pub frames: Vec<FrameIn>,
    /// Frames that the ring had no room for since the last call.
    pub dropped: u64,
}

impl Port {
    /// Opens a port.
    ///
    /// # Errors
    /// No such link, no permission, a ring that is too large, the kernel's refusal of an option.
    pub fn open(options: &PortOptions) -> Result<Self> {
        let socket = PacketSocket::open(&options.link)?;
        let sender = FrameSender::new(&socket, options.offload);
        if options.offload {
            socket.set_offload()?;
        }
        if !options.see_outgoing {
            socket.set_ignore_outgoing()?;
        }
        if options.bypass_qdisc {
            socket.set_bypass_qdisc()?;
        }
        if options.own_fcs {
            socket.set_own_fcs()?;
        }
        socket.set_send_timeout(ROOM_LIMIT_MS)?;
        let ring = if options.send_only { None } else { Some(socket.ring(ring_size(options)?)?) };
        join(&socket, options)?;
        if options.ether_type != 0 {
            socket.filter_ether_type(options.ether_type)?;
        }
        socket.bind(if options.send_only { 0 } else { ALL_PROTOCOLS })?;
        Ok(Self { socket, ring, sender, offload: options.offload })
    }

    /// Sends frames in order, with a pause between two; a refused frame does not keep the others back. Told to give up, it
    /// leaves out the rest.
    ///
    /// # Errors
    /// A frame with work for the NIC on a port without `offload`; then none is sent.
    pub fn send(&mut self, frames: &[FrameOut], gap_ns: u64, give_up: &AtomicBool) -> Result<SendReport> {
        if !self.offload && frames.iter().any(|frame| frame.offload.is_some()) {
            let what = format!("send on {}", self.socket.link());
            return Err(PacketError::invalid(
                what,
                "a frame has work for the NIC, but the port no 'offload'",
            ));
        }
        // What happened to the link earlier is not the first frame's fault.
        let _ = sockopt::take_error(&self.socket);
        let headers: Vec<_> = frames.iter().map(|frame| offload::encode(frame.offload.as_ref())).collect();
        let bytes: Vec<&[u8]> = frames.iter().map(|frame| &*frame.bytes).collect();
        let batch = if gap_ns == 0 { BATCH } else { 1 };
        let mut report = SendReport::default();
        let mut impatient = false;
        let mut first = 0;
        while first < frames.len() && !give_up.load(Ordering::Relaxed) {
            let end = (first + batch).min(frames.len());
            match self.sender.send(&self.socket, &headers[first..end], &bytes[first..end]) {
                Ok(sent) => {
                    report.sent += sent as u64;
                    first += sent;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    if error.kind() == std::io::ErrorKind::WouldBlock && !impatient {
                        impatient = true;
                        self.socket.set_send_timeout(IMPATIENT_MS)?;
                    }
                    let errno = error.raw_os_error().unwrap_or_default();
                    let index = u32::try_from(first).unwrap_or(u32::MAX);
                    report.refused.push(SendRefusal { index, errno, reason: error.to_string() });
                    first += 1;
                }
            }
            if gap_ns > 0 && first < frames.len() {
                rest(gap_ns, give_up);
            }
        }
        if impatient {
            self.socket.set_send_timeout(ROOM_LIMIT_MS)?;
        }
        Ok(report)
    }

    /// Takes captured frames until `most` are there, nothing came for `idle_ns`, or `limit_ns` is over; fewer where they
    /// would not fit in one answer, or once it is told to give up.
    ///
    /// # Errors
    /// A port that only sends.
    pub fn receive(
        &mut self,
        most: u32,
        idle_ns: u64,
        limit_ns: u64,
        give_up: &AtomicBool,
    ) -> Result<Received> {
        if self.ring.is_none() {
            let what = format!("receive on {}", self.socket.link());
            return Err(PacketError::invalid(what, "the port only sends"));
        }
        let most = (most as usize).min(ANSWER_FRAMES);
        let end_ns = clock::monotonic_ns().saturating_add(limit_ns);
        let mut received = Received::default();
        let mut bytes = 0;
        let mut idle_from = clock::monotonic_ns();
        while received.frames.len() < most && bytes < ANSWER_BYTES {
            if let Some(frame) = self.next(frame_in) {
                idle_from = clock::monotonic_ns();
                bytes += frame.bytes.len();
                received.frames.push(frame);
                continue;
            }
            let until_ns = end_ns.min(idle_from.saturating_add(idle_ns));
            let now = clock::monotonic_ns();
            if now >= until_ns || give_up.load(Ordering::Relaxed) {
                break;
            }
            self.wait((until_ns - now).min(LONGEST_WAIT_NS))?;
        }
        received.dropped = self.socket.take_drops()?.into();
        Ok(received)
    }

    /// The next captured frame, if there is one.
    pub(super) fn next<T>(&mut self, take: impl FnOnce(Captured<'_>, bool) -> T) -> Option<T> {
        let offload = self.offload;
        self.ring.as_mut()?.next(|frame| take(frame, offload))
    }

    /// Waits until a frame is there, but no longer than `limit_ns`.
    pub(super) fn wait(&self, limit_ns: u64) -> Result<()> {
        const BREATH_NS: u64 = 50_000;
        let mut poll = PollSet::new();
        poll.add(self.socket.as_fd(), Readiness::READ);
        let ready = poll.wait(Some(limit_ns)).map_err(|cause| {
            PacketError::System(linerate_sys::SysError::new("wait for frames", self.socket.link(), cause))
        })?;
        // A link that goes down is an error on the socket, which stays until it is read; frames come again once it is up.
        if ready > 0 && sockopt::take_error(&self.socket)?.is_some() {
            clock::sleep_until(clock::monotonic_ns() + BREATH_NS);
        }
        Ok(())
    }

    /// Frames that the ring had no room for since the last call.
    pub(super) fn take_drops(&self) -> Result<u64> {
        Ok(self.socket.take_drops()?.into())
    }

    /// Sends generated frames in order; returns how many the kernel took.
    pub(super) fn send_batch(&mut self, frames: &[Vec<u8>]) -> std::io::Result<usize> {
        const NOTHING_TO_DO: [[u8; OFFLOAD_HEADER_BYTES]; BATCH] = [[0; OFFLOAD_HEADER_BYTES]; BATCH];
        let frames = &frames[..frames.len().min(BATCH)];
        self.sender.send(&self.socket, &NOTHING_TO_DO, frames)
    }
}

fn rest(ns: u64, give_up: &AtomicBool) {
    let end_ns = clock::monotonic_ns().saturating_add(ns);
    while clock::monotonic_ns() < end_ns && !give_up.load(Ordering::Relaxed) {
        clock::sleep_until(end_ns.min(clock::monotonic_ns() + LONGEST_WAIT_NS));
    }
}

fn ring_size(options: &PortOptions) -> Result<RingSize> {
    let bytes = if options.largest_bytes == 0 { DEFAULT_FRAME_BYTES } else { options.largest_bytes };
    let bytes = bytes.min(MOST_FRAME_BYTES);
    let size = match options.slots {
        0 => RingSize::fitting(bytes, DEFAULT_SLOTS, DEFAULT_RING_BYTES),
        slots => RingSize::new(bytes, slots, MOST_RING_BYTES),
    };
    size.ok_or_else(|| {
        let what = format!("a ring of {} frames of {bytes} bytes on {}", options.slots, options.link);
        PacketError::invalid(what, format!("more than {} MiB", MOST_RING_BYTES >> 20))
    })
}

fn join(socket: &PacketSocket, options: &PortOptions) -> Result<()> {
    if options.promiscuous {
        socket.join(Membership::Promiscuous)?;
    }
    if options.all_multicast {
        socket.join(Membership::AllMulticast)?;
    }
    let groups = options.groups.iter().map(|group| Membership::Group(*group));
    let unicast = options.unicast.iter().map(|address| Membership::Unicast(*address));
    groups.chain(unicast).try_for_each(|membership| Ok(socket.join(membership)?))
}

pub(super) fn frame_in(frame: Captured<'_>, offload: bool) -> FrameIn {
    FrameIn {
        bytes: frame.bytes.to_vec().into(),
        length_bytes: frame.length,
        time_ns: frame.time_ns,
        tag: frame.tag.map(|(protocol, control)| Tag { protocol, control }),
        checksum: match (frame.checksum_not_ready, frame.checksum_valid) {
            (true, _) => ChecksumWord::NotReady,
            (false, true) => ChecksumWord::Valid,
            (false, false) => ChecksumWord::None,
        },
        addressed: match frame.packet_type {
            0 => Addressed::Host,
            1 => Addressed::Broadcast,
            2 => Addressed::Multicast,
            4 => Addressed::Outgoing,
            _ => Addressed::OtherHost,
        },
        offload: if offload { offload::decode(&frame.offload) } else { None },
    }
}
