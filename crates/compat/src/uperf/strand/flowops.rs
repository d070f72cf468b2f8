//! Executes flowops.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_sys::{clock, memfd};
use nix::errno::Errno;

use super::connection::{self, Connections, Failure, Link, is_pause, wait_for_input};
use super::gate::{Counters, Gate};
use super::pace::Pace;
use super::{Remote, Side, Strand};
use crate::uperf::workorder::{Flowop, Kind, flag};

/// Bounds of a strand's buffer: a transfer larger than that takes several calls.
const LEAST_BUFFER: usize = 8192;
const MOST_BUFFER: usize = 1 << 20;

/// Longest sleep before a stop is looked for again.
const STEP_NS: u64 = 20_000_000;

/// Folders deeper than this are not searched for files to send.
const DEEPEST: usize = 16;
const MOST_FILES: usize = 100_000;

/// Why a flowop did not come to its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// It was told to end.
    Stopped,
    /// The other end closed: the transaction is over, and that's no failure.
    Closed,
    /// It failed.
    Failed(Failure),
}

/// What a strand works with.
pub(super) struct Hands<'a> {
    strand: &'a Strand,
    gate: &'a Gate,
    counters: &'a Counters,
    connections: Connections,
    zeros: Vec<u8>,
    buffer: Vec<u8>,
    files: Vec<PathBuf>,
    random: u64,
    pace: Pace,
    pub(super) warnings: Vec<String>,
}

impl<'a> Hands<'a> {
    pub(super) fn new(strand: &'a Strand) -> Self {
        let largest = |of: fn(Kind) -> bool| {
            let sizes = strand.group.flowops().filter(|f| of(f.kind)).map(|f| f.largest() as usize);
            sizes.max().map_or(0, |size| size.clamp(LEAST_BUFFER, MOST_BUFFER))
        };
        Self {
            strand,
            gate: &strand.gate,
            counters: &strand.gate.counters[strand.index],
            connections: Connections::default(),
            zeros: vec![0; largest(Kind::sends)],
            buffer: vec![0; largest(Kind::receives)],
            files: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15 ^ (strand.index as u64 + 1),
            pace: Pace::new(strand.bits_per_second),
            warnings: Vec::new(),
        }
    }

    /// Executes a flowop once and counts it.
    pub(super) fn execute(&mut self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        match self.perform(flowop, transaction) {
            Err(Halt::Failed(_)) if flowop.has(flag::CAN_FAIL) => {}
            Err(Halt::Failed(cause)) => {
                return Err(Halt::Failed(format!("{}: {cause}", flowop.kind.name())));
            }
            other => other?,
        }
        self.counters.add_operation();
        Ok(())
    }

    fn perform(&mut self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        match flowop.kind {
            Kind::Connect => {
                let remote = self.remote(flowop)?;
                let port = remote.ports[flowop.protocol as usize];
                if port == 0 {
                    let host = &flowop.remote_host;
                    return Err(Halt::Failed(format!("{host} told no {} port", flowop.protocol.name())));
                }
                let link =
                    connection::connect(flowop, remote.address, port, remote.from).map_err(Halt::Failed)?;
                self.opened(flowop, link);
            }
            Kind::Accept => {
                let remote = self.remote(flowop)?;
                let listener = self.strand.listeners.iter().find(|l| l.protocol() == flowop.protocol);
                let listener =
                    listener.ok_or_else(|| Halt::Failed(connection::not_offered(flowop.protocol)))?;
                let gate = self.gate;
                let stop = move || gate.stops_blocked(transaction);
                let link = listener.accept(flowop, remote.address, &stop).map_err(Halt::Failed)?;
                let link = link.ok_or(Halt::Stopped)?;
                self.opened(flowop, link);
            }
            Kind::Disconnect => {
                if !self.connections.close(flowop.connection) {
                    return Err(no_connection(flowop));
                }
            }
            Kind::Nop => {}
            Kind::Think => self.think(flowop, transaction)?,
            Kind::Read | Kind::Recv => self.receive(flowop, transaction)?,
            Kind::Write | Kind::Send => self.send(flowop, transaction)?,
            Kind::Sendfile => self.send_file(flowop, transaction)?,
            Kind::Sendfilev => return Err(Halt::Failed("Linux has no such call".into())),
        }
        Ok(())
    }

    fn opened(&mut self, flowop: &Flowop, link: Link) {
        for warning in connection::window_warnings(&link, flowop) {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        self.connections.open(flowop.connection, link);
    }

    /// A slave's one remote is its master; a master's is the one that the flowop names.
    fn remote(&self, flowop: &Flowop) -> Result<&'a Remote, Halt> {
        let named = |r: &&Remote| r.host.eq_ignore_ascii_case(&flowop.remote_host);
        let found = match self.strand.side {
            Side::Slave => self.strand.remotes.first(),
            Side::Master => self.strand.remotes.iter().find(named),
        };
        found.ok_or_else(|| Halt::Failed(format!("no control connection to {}", flowop.remote_host)))
    }

    /// Sleeps until then, or until told to end.
    pub(super) fn sleep_until(&self, due_ns: u64, transaction: u32) -> Result<(), Halt> {
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= due_ns {
                return Ok(());
            }
            if self.gate.stops_softly(transaction) {
                return Err(Halt::Stopped);
            }
            clock::sleep_until(due_ns.min(now_ns + STEP_NS));
        }
    }

    fn think(&self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        let due_ns = clock::monotonic_ns().saturating_add(flowop.duration_ns);
        if !flowop.has(flag::BUSY) {
            return self.sleep_until(due_ns, transaction);
        }
        while clock::monotonic_ns() < due_ns {
            if self.gate.stops_softly(transaction) {
                return Err(Halt::Stopped);
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn draw(&mut self, (least, most): (u32, u32)) -> usize {
        // Xorshift (Marsaglia, 2003): enough for sizes.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let span = u64::from(most.saturating_sub(least)) + 1;
        (u64::from(least) + self.random % span) as usize
    }

    fn receive(&mut self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        let (gate, counters) = (self.gate, self.counters);
        let stop = || gate.stops_blocked(transaction);
        let random = flowop.has(flag::RANDOM_SIZE);
        let link = self.connections.find(flowop.connection).ok_or_else(|| no_connection(flowop))?;
        let non_blocking = flowop.has(flag::NON_BLOCKING);
        for _ in 0..flowop.repeat.max(1) {
            let mut left = flowop.largest() as usize;
            while left > 0 {
                if flowop.timeout_ns > 0 {
                    let limit = Duration::from_nanos(flowop.timeout_ns);
                    if !wait_for_input(link, limit, &stop) {
                        return Err(if stop() { Halt::Stopped } else { Halt::Failed("timeout".into()) });
                    }
                }
                let room = left.min(self.buffer.len());
                match receive_some(link, &mut self.buffer[..room]) {
                    Ok(Some(0)) if matches!(link, Link::Stream(_)) => return Err(Halt::Closed),
                    Ok(Some(count)) => {
                        counters.add_received(count);
                        left = if random { 0 } else { left - count };
                    }
                    // A stranger's datagram.
                    Ok(None) => {}
                    // Between two messages or in the midst of one: what comes from now on is not ours.
                    Err(e) if is_pause(&e) && !non_blocking => {
                        if stop() {
                            return Err(Halt::Stopped);
                        }
                    }
                    Err(e) if was_refused(&e, link) => {}
                    Err(e) => return Err(self.ended(e)),
                }
                if left > 0 && gate.is_killed() {
                    return Err(Halt::Stopped);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        let size =
            if flowop.has(flag::RANDOM_SIZE) { self.draw(flowop.random) } else { flowop.size as usize };
        let (gate, counters) = (self.gate, self.counters);
        let link = self.connections.find(flowop.connection).ok_or_else(|| no_connection(flowop))?;
        let non_blocking = flowop.has(flag::NON_BLOCKING);
        for _ in 0..flowop.repeat.max(1) {
            let begun_ns = clock_if(flowop.timeout_ns > 0);
            let mut left = size;
            while left > 0 {
                if !self.pace.wait(gate, transaction) {
                    return Err(Halt::Stopped);
                }
                match send_some(link, &self.zeros[..left.min(self.zeros.len())]) {
                    Ok(count) => {
                        counters.add_sent(count);
                        self.pace.sent(count);
                        left -= count;
                    }
                    Err(e) if is_pause(&e) && !non_blocking => {
                        if flowop.timeout_ns > 0 && clock::monotonic_ns() - begun_ns > flowop.timeout_ns {
                            return Err(Halt::Failed("timeout".into()));
                        }
                    }
                    // The other end's port is closed by now: UDP loses.
                    Err(e) if was_refused(&e, link) => left = 0,
                    Err(e) => return Err(self.ended(e)),
                }
                if left > 0 && gate.stops_blocked(transaction) {
                    return Err(Halt::Stopped);
                }
            }
        }
        Ok(())
    }

    fn send_file(&mut self, flowop: &Flowop, transaction: u32) -> Result<(), Halt> {
        if self.files.is_empty() {
            collect_files(Path::new(&flowop.folder), 0, &mut self.files)
                .map_err(|e| Halt::Failed(format!("{}: {e}", flowop.folder)))?;
        }
        if self.files.is_empty() {
            return Err(Halt::Failed(format!("{}: no file in it", flowop.folder)));
        }
        let at = self.draw((0, self.files.len() as u32 - 1));
        let path = &self.files[at];
        let say = |e: io::Error| Halt::Failed(format!("{}: {e}", path.display()));
        let file = File::open(path).map_err(say)?;
        let length = file.metadata().map_err(say)?.len();
        let chunk = if flowop.size == 0 { usize::MAX } else { flowop.size as usize };
        let link = self.connections.find(flowop.connection).ok_or_else(|| no_connection(flowop))?;
        let Link::Stream(stream) = link else {
            return Err(Halt::Failed("only over TCP".into()));
        };
        let mut offset = 0;
        while offset < length {
            let count = chunk.min(usize::try_from(length - offset).unwrap_or(usize::MAX));
            if !self.pace.wait(self.gate, transaction) {
                return Err(Halt::Stopped);
            }
            match memfd::send_file(stream, &file, offset, count) {
                Ok(0) => break,
                Ok(count) => {
                    self.counters.add_sent(count);
                    self.pace.sent(count);
                    offset += count as u64;
                }
                Err(e) if is_pause(&e) => {}
                Err(e) => return Err(self.ended(e)),
            }
            if offset < length && self.gate.stops_blocked(transaction) {
                return Err(Halt::Stopped);
            }
        }
        Ok(())
    }

    /// A slave whose master closed has nothing to complain about.
    fn ended(&self, cause: io::Error) -> Halt {
        let closed = [Errno::EPIPE, Errno::ECONNRESET].map(|e| Some(e as i32));
        if self.strand.side == Side::Slave && closed.contains(&cause.raw_os_error()) {
            return Halt::Closed;
        }
        Halt::Failed(cause.to_string())
    }
}

fn clock_if(wanted: bool) -> u64 {
    if wanted { clock::monotonic_ns() } else { 0 }
}

fn no_connection(flowop: &Flowop) -> Halt {
    Halt::Failed(format!("No such connection {}", flowop.connection))
}

fn was_refused(error: &io::Error, link: &Link) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused && !matches!(link, Link::Stream(_))
}

/// Bytes received; none for a stranger's datagram.
fn receive_some(link: &Link, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match link {
        Link::Stream(stream) => (&*stream).read(buffer).map(Some),
        Link::Datagram(socket) => socket.recv(buffer).map(Some),
        Link::Accepted(socket, peer) => {
            let (count, from) = UdpSocket::recv_from(socket, buffer)?;
            Ok((from == *peer).then_some(count))
        }
    }
}

fn send_some(link: &Link, bytes: &[u8]) -> io::Result<usize> {
    match link {
        Link::Stream(stream) => (&*stream).write(bytes),
        Link::Datagram(socket) => socket.send(bytes),
        Link::Accepted(socket, peer) => socket.send_to(bytes, peer),
    }
}

/// All regular files in a folder and below.
fn collect_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if files.len() >= MOST_FILES {
            return Ok(());
        }
        if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() && depth < DEEPEST {
            collect_files(&entry.path(), depth + 1, files)?;
        }
    }
    Ok(())
}
