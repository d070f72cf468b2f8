//! The control connections: one for each group and host.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::uperf::master::machine::{MasterEvent, MasterMachine};
use crate::uperf::master::probe;
use crate::uperf::master::run::MasterError;
use crate::uperf::mirror::mirror;
use crate::uperf::wire::{Command, Goodbye, Layout, Order, Ports};
use crate::uperf::workorder::Group;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// One control connection.
pub(crate) struct Control {
    /// Index of its group.
    pub(crate) group: usize,
    pub(crate) host: String,
    pub(crate) address: IpAddr,
    /// The slave's ports, one record a strand.
    pub(crate) ports: Vec<Ports>,
    far: Group,
    stream: TcpStream,
    machine: MasterMachine,
}

/// How a master gets in where a slave lets nobody in who does not know a token.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Own address.
    pub(crate) from: IpAddr,
    /// The first bytes of each control connection.
    pub(crate) token: Vec<u8>,
}

fn open(address: SocketAddr, entry: Option<&Entry>) -> io::Result<TcpStream> {
    let Some(entry) = entry else { return TcpStream::connect_timeout(&address, CONNECT_LIMIT) };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(entry.from, 0).into())?;
    socket.connect_timeout(&address.into(), CONNECT_LIMIT)?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(&entry.token)?;
    Ok(stream)
}

impl Control {
    /// Connects to `host` for a group, and finds out the slave's layout unless it is given.
    pub(crate) fn connect(
        index: usize,
        group: &Group,
        host: &str,
        port: u16,
        layout: Option<Layout>,
        entry: Option<&Entry>,
    ) -> Result<Self, MasterError> {
        let fail = |cause: io::Error| MasterError::Connect { host: host.to_owned(), port, cause };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
        for address in (host, port).to_socket_addrs().map_err(fail)? {
            match open(address, entry) {
                Ok(stream) => return Self::over(stream, index, group, host, address, layout).map_err(fail),
                Err(cause) => last = cause,
            }
        }
        Err(fail(last))
    }

    fn over(
        stream: TcpStream,
        index: usize,
        group: &Group,
        host: &str,
        address: SocketAddr,
        layout: Option<Layout>,
    ) -> io::Result<Self> {
        let layout = layout.map_or_else(|| probe::layout_of(address), Ok)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            group: index,
            host: host.to_owned(),
            address: address.ip().to_canonical(),
            ports: Vec::new(),
            far: mirror(group, host),
            stream,
            machine: MasterMachine::new(layout, Order::native(), group.strands),
        })
    }

    /// P1, and its answer.
    pub(crate) fn first(&mut self) -> Result<(), MasterError> {
        let bytes = self.machine.first(&self.far);
        match self.ask(&bytes, ANSWER_LIMIT)? {
            MasterEvent::Accepted => Ok(()),
            other => Err(self.handshake_error(&other)),
        }
    }

    /// P2, and its answer; `ports` are the master's own, where it accepts.
    pub(crate) fn second(&mut self, ports: &[Ports]) -> Result<(), MasterError> {
        let far = std::mem::take(&mut self.far);
        let bytes = self.machine.second(&far, ports);
        match self.ask(&bytes, ANSWER_LIMIT)? {
            MasterEvent::Prepared(ports) => {
                self.ports = ports;
                Ok(())
            }
            other => Err(self.handshake_error(&other)),
        }
    }

    /// The end of the handshake, both ways.
    pub(crate) fn end(&mut self) -> Result<(), MasterError> {
        let bytes = self.machine.end();
        match self.ask(&bytes, ANSWER_LIMIT)? {
            MasterEvent::Ready => Ok(()),
            other => Err(self.handshake_error(&other)),
        }
    }

    fn handshake_error(&self, event: &MasterEvent) -> MasterError {
        let host = self.host.clone();
        match event {
            MasterEvent::Refused(message) => MasterError::Refused { host, message: message.clone() },
            MasterEvent::Malformed(e) => MasterError::Handshake { host, message: e.to_string() },
            other => MasterError::Handshake { host, message: format!("unexpected answer: {other:?}") },
        }
    }

    fn ask(&mut self, bytes: &[u8], limit: Duration) -> Result<MasterEvent, MasterError> {
        let fail = |host: &str, cause: &io::Error| MasterError::Handshake {
            host: host.to_owned(),
            message: cause.to_string(),
        };
        self.stream.write_all(bytes).map_err(|e| fail(&self.host, &e))?;
        self.next_event(limit).map_err(|e| fail(&self.host, &e))
    }

    fn next_event(&mut self, limit: Duration) -> io::Result<MasterEvent> {
        let end = Instant::now() + limit;
        let mut buffer = [0; 4096];
        if let Some(event) = self.machine.receive(&[]).into_iter().next() {
            return Ok(event);
        }
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed the connection")),
                Ok(count) => {
                    if let Some(event) = self.machine.receive(&buffer[..count]).into_iter().next() {
                        return Ok(event);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether the slave said something, or closed, while it should be silent.
    pub(crate) fn has_aborted(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let _blocking_again = self.stream.set_nonblocking(false);
        !matches!(peeked, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a command in one call.
    pub(crate) fn command(&mut self, command: Command) -> io::Result<()> {
        let bytes = self.machine.command(command);
        self.stream.write_all(&bytes)
    }

    /// Waits for the slave's figures.
    pub(crate) fn goodbye(&mut self, limit: Duration) -> Result<Goodbye, String> {
        for _ in 0..2 {
            match self.next_event(limit) {
                Ok(MasterEvent::Goodbye(goodbye)) => return Ok(*goodbye),
                // It was first to speak; the goodbye itself is next.
                Ok(MasterEvent::Aborted) => {}
                Ok(MasterEvent::Malformed(e)) => return Err(e.to_string()),
                Ok(other) => return Err(format!("unexpected: {other:?}")),
                Err(e) => return Err(e.to_string()),
            }
        }
        Err("no goodbye".into())
    }
}

/// Opens all connections, in order of appearance.
pub(crate) fn connect_all(
    groups: &[Arc<Group>],
    port: u16,
    layout: Option<Layout>,
    entry: Option<&Entry>,
) -> Result<Vec<Control>, MasterError> {
    let mut controls: Vec<Control> = Vec::new();
    let mut known: Vec<(String, Layout)> = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for host in group.hosts() {
            let seen = known.iter().find(|(h, _)| h.eq_ignore_ascii_case(&host)).map(|(_, l)| *l);
            let control = Control::connect(index, group, &host, port, layout.or(seen), entry)?;
            known.push((host, control.machine.layout()));
            controls.push(control);
        }
    }
    Ok(controls)
}
