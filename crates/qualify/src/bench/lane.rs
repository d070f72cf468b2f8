//! One way over the link: a port that sends and a port that captures.

use std::time::Duration;

use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::bench::{FrameIn, FrameOut, PortOptions, SendReport};
use linerate_model::qualification::ReasonCode;

use super::{Bench, Way};
use crate::frame::{self, Hosts, on_the_wire};
use crate::must::delivery::{self, Rules, probe_id};
use crate::must::parse::parse;
use crate::station::Port;
use crate::trouble::Trouble;

/// Frames that are on their way at a time: they fit in the capturing ring.
const AT_ONCE: usize = 1024;
/// Nothing came for so long: nothing will, on a fast machine.
const IDLE: Duration = Duration::from_millis(250);
/// What comes after all that was expected would be a duplicate.
const AFTER: Duration = Duration::from_millis(20);

/// A port that sends at one end, and one that captures at the other.
#[derive(Debug, Clone, Copy)]
pub struct Lane {
    /// Which way.
    pub way: Way,
    /// Sends.
    pub out: Port,
    /// Captures.
    pub into: Port,
}

/// What came of frames that were sent over a lane.
#[derive(Debug, Clone, Default)]
pub struct Arrived {
    /// What the sender's kernel said.
    pub sent: SendReport,
    /// Captured frames that are ours, in order of arrival.
    pub frames: Vec<FrameIn>,
}

impl Arrived {
    /// The captured frames as they were on the wire.
    pub fn on_the_wire(&self) -> Vec<Vec<u8>> {
        self.frames.iter().map(on_the_wire).collect()
    }
}

impl Bench {
    /// Opens a lane for bare probes.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn lane(&mut self, way: Way) -> Result<Lane, Trouble> {
        let into = PortOptions { ether_type: probe::ETHER_TYPE, ..PortOptions::default() };
        self.lane_with(way, PortOptions::default(), into)
    }

    /// Opens a lane for any frame that the suite sends; the sending port can leave checksums and segmentation to the NIC.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn packet_lane(&mut self, way: Way) -> Result<Lane, Trouble> {
        let out = PortOptions { offload: true, ..PortOptions::default() };
        self.lane_with(way, out, PortOptions { largest_bytes: 1 << 16, slots: 512, ..PortOptions::default() })
    }

    /// Opens a lane with ports as given; the sending one captures nothing.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn lane_with(&mut self, way: Way, out: PortOptions, into: PortOptions) -> Result<Lane, Trouble> {
        let (sender, receiver) = self.ends(way);
        // A neutral observer sees all: a filter of the peer's own (of VLAN ids, in virtio-net) must not hide what came.
        let into = PortOptions { promiscuous: into.promiscuous || way == Way::ToPeer, ..into };
        // The capture first, so that nothing sent is missed.
        let into = receiver.open_port(into)?;
        let out = sender.open_port(PortOptions { send_only: true, ..out })?;
        Ok(Lane { way, out, into })
    }

    /// Closes both ports of a lane.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn close_lane(&mut self, lane: &Lane) -> Result<(), Trouble> {
        let (sender, receiver) = self.ends(lane.way);
        sender.close(lane.out.handle)?;
        receiver.close(lane.into.handle)
    }

    /// Sends frames as fast as it goes and gives what arrived of ours. A frame that the sender's kernel refuses is a fault.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`]; a harness fault where the capture had no room.
    pub fn exchange(&mut self, lane: &Lane, frames: &[FrameOut]) -> Result<Arrived, Trouble> {
        let arrived = self.try_exchange(lane, frames, frames.len())?;
        self.fault_refused(lane, frames, &arrived.sent);
        Ok(arrived)
    }

    /// The same where the sender's kernel may refuse, and `expected` frames are to arrive: returns early once they did.
    ///
    /// # Errors
    /// As [`Bench::exchange`].
    pub fn try_exchange(
        &mut self,
        lane: &Lane,
        frames: &[FrameOut],
        expected: usize,
    ) -> Result<Arrived, Trouble> {
        let mut arrived = Arrived::default();
        for (number, part) in frames.chunks(AT_ONCE).enumerate() {
            let sent = self.ends(lane.way).0.send(&lane.out, part)?;
            arrived.sent.sent += sent.sent;
            arrived.sent.refused.extend(sent.refused.into_iter().map(|mut refusal| {
                refusal.index += (number * AT_ONCE) as u32;
                refusal
            }));
            let sent_so_far = ((number + 1) * AT_ONCE).min(frames.len());
            let due = expected * sent_so_far / frames.len().max(1);
            self.collect(lane, due, &mut arrived)?;
        }
        self.drain(lane, &mut arrived)?;
        Ok(arrived)
    }

    /// Sends one frame after the other, each only when the one before arrived or was given up.
    ///
    /// # Errors
    /// As [`Bench::exchange`].
    pub fn lock_step(&mut self, lane: &Lane, frames: &[FrameOut]) -> Result<Arrived, Trouble> {
        let mut arrived = Arrived::default();
        for (index, frame) in frames.iter().enumerate() {
            let sent = self.ends(lane.way).0.send(&lane.out, std::slice::from_ref(frame))?;
            self.fault_refused(lane, std::slice::from_ref(frame), &sent);
            arrived.sent.sent += sent.sent;
            if sent.refused.is_empty() {
                let due = arrived.frames.len() + 1;
                self.collect(lane, due, &mut arrived)?;
            }
            // A link that carries nothing is judged by the first frames: each that is lost costs the whole wait.
            const HOPELESS: usize = 8;
            if index + 1 >= HOPELESS && arrived.frames.len() * 2 < index + 1 {
                break;
            }
        }
        self.drain(lane, &mut arrived)?;
        Ok(arrived)
    }

    /// Takes captured frames until `due` of ours are there, or nothing comes any more.
    fn collect(&mut self, lane: &Lane, due: usize, arrived: &mut Arrived) -> Result<(), Trouble> {
        let idle = self.patient(IDLE);
        while arrived.frames.len() < due {
            let most = (due - arrived.frames.len()).min(AT_ONCE / 4);
            let new = self.take(lane, most, idle, 20 * idle)?;
            if new.is_empty() {
                break;
            }
            arrived.frames.extend(new.into_iter().filter(is_ours));
        }
        Ok(())
    }

    fn drain(&mut self, lane: &Lane, arrived: &mut Arrived) -> Result<(), Trouble> {
        let after = self.patient(AFTER);
        loop {
            let new = self.take(lane, AT_ONCE / 4, after, 20 * after)?;
            if new.is_empty() {
                return Ok(());
            }
            let ours: Vec<FrameIn> = new.into_iter().filter(is_ours).collect();
            if ours.is_empty() {
                return Ok(());
            }
            arrived.frames.extend(ours);
        }
    }

    fn take(
        &mut self,
        lane: &Lane,
        most: usize,
        idle: Duration,
        limit: Duration,
    ) -> Result<Vec<FrameIn>, Trouble> {
        let receiver = self.ends(lane.way).1;
        let (frames, dropped) = receiver.receive_within(&lane.into, most, idle, limit)?;
        if dropped > 0 {
            let name = receiver.name();
            return Err(Trouble::harness(format!("{name}: the capture had no room for {dropped} frames")));
        }
        Ok(frames)
    }

    fn fault_refused(&mut self, lane: &Lane, frames: &[FrameOut], sent: &SendReport) {
        for refusal in &sent.refused {
            let length = frames.get(refusal.index as usize).map_or(0, |frame| frame.bytes.len());
            let words = format!(
                "{}: the kernel refused frame {} of {length} bytes: {}",
                lane.way.words(),
                refusal.index,
                refusal.reason
            );
            self.fail(ReasonCode::Refused, words);
        }
    }

    /// Judges what arrived against the frames that must, as they are on the wire; faults are added to the case.
    pub fn judge(&mut self, lane: &Lane, expected: &[Vec<u8>], arrived: &Arrived, rules: Rules) {
        let words = lane.way.words();
        let findings = delivery::judge(expected, &arrived.frames, rules).into_iter().map(|mut finding| {
            finding.text = format!("{words}: {}", finding.text);
            if let Some(evidence) = &mut finding.evidence {
                evidence.what = format!("{words}: {}", evidence.what);
            }
            finding
        });
        self.add(findings);
    }

    /// Bare probe frames of these lengths (without FCS), numbered within a new stream, to send and to expect.
    pub fn probes(&mut self, hosts: &Hosts, lengths_bytes: &[usize]) -> Vec<Vec<u8>> {
        let (run, stream) = (self.run(), self.stream());
        let id = |sequence: usize| ProbeId { run, stream, sequence: sequence as u64 };
        lengths_bytes.iter().enumerate().map(|(n, length)| frame::probe(hosts, id(n), *length)).collect()
    }
}

/// A frame that the suite sent: a probe, something that carries one, or a packet between addresses that nobody has.
fn is_ours(frame: &FrameIn) -> bool {
    let bytes = &frame.bytes;
    if probe_id(bytes).is_some() {
        return true;
    }
    let Ok(layers) = parse(bytes) else {
        // Cut or mangled so that it can't be read: it may have been ours, and is told.
        return bytes.len() < 14
            || bytes.get(12..14) == Some(&probe::ETHER_TYPE.to_be_bytes())
            || is_nobody(bytes);
    };
    layers.ether_type == probe::ETHER_TYPE || (layers.network.is_some() && is_nobody(bytes))
}

fn is_nobody(bytes: &[u8]) -> bool {
    let hosts = Hosts::nobody([0; 6], [0; 6]);
    let has = |address: &[u8]| bytes.windows(address.len()).any(|window| window == address);
    has(&hosts.from_v4.octets()) || has(&hosts.from_v6.octets())
}
