//! Moves frames between both TAP links, through the card and the wire.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_link::LinkError;
use linerate_link::receive_filter::{FilterReader, ReceiveFilter};
use linerate_sys::SysError;
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::tun::Tap;

use super::faults::{Act, Fault};
use super::nic::{Nic, Quirk};
use super::vnet::Header;
use super::wire::{self, Change, Memory, Way};

/// Frames taken from one link before the other has its turn.
const BATCH: usize = 64;
/// A frame that the filter takes is believed this long; one that it does not take is never refused on old knowledge.
const FILTER_AGE: Duration = Duration::from_micros(200);
/// How often the link is looked at when nothing comes: going down must be seen.
const LOOK: Duration = Duration::from_millis(1);
/// A held frame goes out when nothing follows for so long.
const HOLD: Duration = Duration::from_millis(5);

pub(super) struct Relay {
    dut: Tap,
    peer: Tap,
    stop: Arc<AtomicBool>,
    armed: Arc<AtomicBool>,
    changes: Vec<(Option<Way>, u64, Change)>,
    quirks: Vec<Quirk>,
    delays: bool,
    nic: Nic,
    was_armed: bool,
    memory: [Memory; 2],
    /// Frames that are kept back.
    waiting: VecDeque<(Instant, Way, Vec<u8>)>,
    last_frame: Instant,
}

impl Relay {
    pub(super) fn new(
        dut: Tap,
        peer: Tap,
        faults: &[&'static Fault],
        stop: Arc<AtomicBool>,
        armed: Arc<AtomicBool>,
    ) -> Self {
        let changes = faults.iter().filter_map(|fault| match fault.act {
            Act::Wire(way, every, change) => Some((way, every, change)),
            _ => None,
        });
        let quirks = faults.iter().filter_map(|fault| match fault.act {
            Act::Card(quirk) => Some(quirk),
            _ => None,
        });
        Self {
            dut,
            peer,
            stop,
            armed,
            changes: changes.collect(),
            quirks: quirks.collect(),
            delays: faults.iter().any(|fault| matches!(fault.act, Act::Delay)),
            nic: Nic::new(),
            was_armed: false,
            memory: Default::default(),
            waiting: VecDeque::new(),
            last_frame: Instant::now(),
        }
    }

    /// Relays until it is told to stop. The calling thread must be in the dut's namespace.
    pub(super) fn run(mut self, link: &str) -> Result<(), LinkError> {
        let mut filter = Filter::open(link)?;
        let mut buffer = vec![0; 80_000];
        let mut batch = Vec::new();
        while !self.stop.load(Ordering::SeqCst) {
            self.wait()?;
            self.arm(&mut filter)?;
            if filter.read_at.elapsed() > LOOK {
                filter.refresh(&mut self.nic)?;
            }
            for _ in 0..BATCH {
                let Some(length) = taken(&self.dut, &mut buffer)? else { break };
                let Some((header, frame)) = Header::split(&buffer[..length]) else { continue };
                for frame in self.nic.transmit(header, frame) {
                    self.on_wire(Way::ToPeer, frame, &mut batch);
                }
            }
            for _ in 0..BATCH {
                let Some(length) = taken(&self.peer, &mut buffer)? else { break };
                let mut frame = buffer[..length].to_vec();
                // The peer's card pads, as every card does.
                frame.resize(frame.len().max(60), 0);
                self.on_wire(Way::ToDut, frame, &mut batch);
            }
            self.let_go(&mut batch);
            self.deliver(&mut batch, &mut filter)?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), LinkError> {
        let mut set = PollSet::new();
        for tap in [&self.dut, &self.peer] {
            set.add(tap.as_fd(), Readiness::READ);
        }
        let waited = set.wait(Some(LOOK.as_nanos() as u64));
        match waited {
            Err(cause) if cause.kind() != ErrorKind::Interrupted => {
                Err(SysError::new("wait for", "the injector's links", cause).into())
            }
            _ => Ok(()),
        }
    }

    fn arm(&mut self, filter: &mut Filter) -> Result<(), LinkError> {
        let armed = self.armed.load(Ordering::SeqCst);
        if armed != self.was_armed {
            self.was_armed = armed;
            self.nic.set_quirks(if armed { &self.quirks } else { &[] });
            for memory in &mut self.memory {
                memory.count = 0;
            }
            filter.refresh(&mut self.nic)?;
        }
        if self.quirks.contains(&Quirk::FlapsCarrier) {
            // Off for 20 ms of each 500.
            let phase = filter.opened_at.elapsed().as_millis() % 500;
            self.dut.set_carrier(!(armed && phase < 20))?;
        }
        Ok(())
    }

    fn on_wire(&mut self, way: Way, frame: Vec<u8>, out: &mut Vec<(Way, Vec<u8>)>) {
        self.last_frame = Instant::now();
        if !self.was_armed {
            out.push((way, frame));
            return;
        }
        if self.delays {
            self.waiting.push_back((Instant::now() + wire::DELAY, way, frame));
            return;
        }
        let memory = &mut self.memory[way as usize];
        memory.count += 1;
        let overtaken = memory.held.take();
        let before = frame.clone();
        let mut frames = vec![frame];
        for (only, every, change) in &self.changes {
            if only.is_none_or(|only| only == way) && memory.count.is_multiple_of(*every) {
                frames = frames.into_iter().flat_map(|frame| change(frame, memory)).collect();
            }
        }
        memory.before = before;
        frames.extend(overtaken);
        out.extend(frames.into_iter().map(|frame| (way, frame)));
    }

    /// What was held back long enough.
    fn let_go(&mut self, out: &mut Vec<(Way, Vec<u8>)>) {
        let now = Instant::now();
        while let Some((_, way, frame)) = self.waiting.pop_front_if(|(at, ..)| *at <= now || !self.was_armed)
        {
            out.push((way, frame));
        }
        if self.last_frame.elapsed() > HOLD {
            for way in [Way::ToPeer, Way::ToDut] {
                out.extend(self.memory[way as usize].held.take().map(|frame| (way, frame)));
            }
        }
    }

    fn deliver(&mut self, batch: &mut Vec<(Way, Vec<u8>)>, filter: &mut Filter) -> Result<(), LinkError> {
        let mut received = Vec::new();
        for (way, frame) in batch.drain(..) {
            match way {
                Way::ToPeer => drop(self.peer.write(&frame)),
                Way::ToDut if filter.takes(&frame, &mut self.nic)? => {
                    received.extend(self.nic.receive(frame));
                }
                Way::ToDut => {}
            }
        }
        for (header, frame) in self.nic.merged(received) {
            let whole = [header.bytes().as_slice(), &frame].concat();
            match self.dut.write(&whole) {
                // The link is down: a card that is off receives nothing.
                Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => self.nic.saw_down(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The length of the next frame of a link, where there is one.
fn taken(tap: &Tap, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
    match tap.read(buffer) {
        Ok(length) => Ok(Some(length)),
        // EIO: the link is down.
        Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
                || error.raw_os_error() == Some(nix::libc::EIO) =>
        {
            Ok(None)
        }
        Err(cause) => Err(SysError::new("read from", "an injector's link", cause).into()),
    }
}

/// The receive filter, and how old it is.
struct Filter {
    reader: FilterReader,
    known: ReceiveFilter,
    read_at: Instant,
    opened_at: Instant,
}

impl Filter {
    fn open(link: &str) -> Result<Self, LinkError> {
        let mut reader = FilterReader::open(link)?;
        let known = reader.read()?;
        Ok(Self { reader, known, read_at: Instant::now(), opened_at: Instant::now() })
    }

    fn refresh(&mut self, nic: &mut Nic) -> Result<(), LinkError> {
        self.known = self.reader.read()?;
        self.read_at = Instant::now();
        nic.saw_filter(&self.known);
        Ok(())
    }

    fn takes(&mut self, frame: &[u8], nic: &mut Nic) -> Result<bool, LinkError> {
        if self.read_at.elapsed() > FILTER_AGE {
            self.refresh(nic)?;
        }
        if nic.accepts(frame, &self.known) {
            return Ok(true);
        }
        self.refresh(nic)?;
        Ok(nic.accepts(frame, &self.known))
    }
}
