//! What a qualification asks of a node ([`linerate_model::bench`]), carried out within a session: what is opened has a
//! handle, works on threads of its own, and ends with the session.

mod ask;
mod files;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_link::LinkError;
use linerate_meter::MeterError;
use linerate_model::bench::{BenchReply, BenchRequest, Handle};
use linerate_sys::SysError;
use linerate_traffic::packet::{Generator, PacketError, Port, TallyRun};
use linerate_traffic::xdp::Xdp;

use crate::changes::NodeChanges;
use crate::protocol::{Refusal, Reply};

/// Longest that one request may wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Most that a session may have open.
const MOST_OPEN: usize = 4096;

/// Why a request could not be met.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    Meter(#[from] MeterError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    System(#[from] SysError),
    #[error("{operation} {path}: {cause}")]
    File { operation: &'static str, path: String, cause: std::io::Error },
    #[error("{what}: {why}")]
    Invalid { what: String, why: String },
}

impl BenchError {
    fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }

    fn kind(&self) -> Refusal {
        match self {
            Self::Invalid { .. }
            | Self::Packet(PacketError::Invalid { .. })
            | Self::Link(LinkError::Invalid { .. }) => return Refusal::Usage,
            Self::Link(error) if error.is_forbidden() => return Refusal::Permission,
            _ => {}
        }
        let errno = match self {
            Self::Packet(error) => error.raw_os_error(),
            Self::Meter(MeterError::System(error)) => error.raw_os_error(),
            Self::Meter(MeterError::Netlink(error)) => error.raw_os_error(),
            Self::System(error) => error.raw_os_error(),
            Self::File { cause, .. } => cause.raw_os_error(),
            _ => None,
        };
        match errno {
            Some(nix::libc::EPERM | nix::libc::EACCES) => Refusal::Permission,
            _ => Refusal::Network,
        }
    }

    fn into_reply(self) -> Reply {
        Reply::Refused { kind: self.kind(), reason: self.to_string() }
    }
}

type Result<T> = std::result::Result<T, BenchError>;

/// What a session has open.
pub(crate) struct Bench {
    changes: NodeChanges,
    /// The controller is gone: whatever waits gives up.
    lost: Arc<AtomicBool>,
    open: BTreeMap<Handle, Open>,
    last: Handle,
}

enum Open {
    Port(Box<Port>),
    Generator(Generator),
    Tally(TallyRun),
    Xdp(Xdp),
}

impl Open {
    fn name(&self) -> &'static str {
        match self {
            Self::Port(_) => "port",
            Self::Generator(_) => "generator",
            Self::Tally(_) => "tally",
            Self::Xdp(_) => "XDP program",
        }
    }
}

impl Bench {
    pub(crate) fn new(changes: NodeChanges, lost: Arc<AtomicBool>) -> Self {
        Self { changes, lost, open: BTreeMap::new(), last: 0 }
    }

    /// Carries out a request.
    pub(crate) fn answer(&mut self, request: BenchRequest) -> Reply {
        let answered = self.carry_out(request);
        answered.map_or_else(BenchError::into_reply, |reply| Reply::Bench(Box::new(reply)))
    }

    fn carry_out(&mut self, request: BenchRequest) -> Result<BenchReply> {
        check_wait(&request)?;
        match request {
            BenchRequest::OpenPort(options) => self.keep(|| Ok(Open::Port(Box::new(Port::open(&options)?)))),
            BenchRequest::Send { port, frames, gap_ns } => {
                let lost = Arc::clone(&self.lost);
                Ok(BenchReply::Sent(self.port(port)?.send(&frames, gap_ns, &lost)?))
            }
            BenchRequest::Receive { port, most, idle_ns, limit_ns } => {
                let lost = Arc::clone(&self.lost);
                let received = self.port(port)?.receive(most, idle_ns, limit_ns, &lost)?;
                Ok(BenchReply::Frames { frames: received.frames, dropped: received.dropped })
            }
            BenchRequest::Generate(spec) => self.keep(|| Ok(Open::Generator(Generator::start(spec)?))),
            BenchRequest::FinishGenerate { generator, wait_ns } => match self.take(generator)? {
                Open::Generator(run) => Ok(BenchReply::Generated(run.finish(wait_ns, &self.lost)?)),
                other => Err(self.put_again(generator, other, "generator")),
            },
            BenchRequest::Tally(spec) => self.keep(|| Ok(Open::Tally(TallyRun::start(spec)?))),
            BenchRequest::FinishTally { tally, idle_ns, limit_ns } => match self.take(tally)? {
                Open::Tally(run) => {
                    Ok(BenchReply::Tallied(Box::new(run.finish(idle_ns, limit_ns, &self.lost)?)))
                }
                other => Err(self.put_again(tally, other, "tally")),
            },
            BenchRequest::AttachXdp(spec) => self.keep(|| Ok(Open::Xdp(Xdp::attach(&spec)?))),
            BenchRequest::CountXdp { program } => match self.open.get(&program) {
                Some(Open::Xdp(xdp)) => Ok(BenchReply::XdpCounted(xdp.count()?)),
                Some(other) => Err(another(program, other, "XDP program")),
                None => Err(unknown(program)),
            },
            BenchRequest::Close { handle } => self.take(handle).map(|_| BenchReply::Done),
            BenchRequest::Snapshot { link } => {
                Ok(BenchReply::Snapshot(Box::new(linerate_meter::snapshot(&link)?)))
            }
            BenchRequest::Log { from } => {
                let log = linerate_meter::kernel_log(from)?;
                Ok(BenchReply::Log { lines: log.lines, next: log.next, lost: log.lost })
            }
            BenchRequest::Set { link, key, value } => {
                self.changes.set(&link, &key, &value)?;
                Ok(BenchReply::Done)
            }
            BenchRequest::Link(act) => {
                self.changes.act(&act)?;
                Ok(BenchReply::Done)
            }
            BenchRequest::ReadFile { path } => files::read(&path).map(BenchReply::Text),
            BenchRequest::WriteFile { path, text } => files::write(&path, &text).map(|()| BenchReply::Done),
            BenchRequest::Reset => self.reset(),
            BenchRequest::StartFlow(_)
            | BenchRequest::LookAtFlow { .. }
            | BenchRequest::FinishFlow { .. }
            | BenchRequest::OpenSocket(_)
            | BenchRequest::SendSocket { .. }
            | BenchRequest::ReceiveSocket { .. }
            | BenchRequest::Echo(_)
            | BenchRequest::Device(_) => {
                Err(BenchError::invalid("flows, sockets, echoes, devices", "not offered"))
            }
        }
    }

    fn reset(&mut self) -> Result<BenchReply> {
        self.open.clear();
        let report = self.changes.restore()?;
        match report.not_back.first() {
            None => Ok(BenchReply::Done),
            Some(first) => {
                let why = first.to_string();
                Err(LinkError::Invalid { what: "put back".to_owned(), why }.into())
            }
        }
    }

    /// Opens something and gives it a handle.
    fn keep(&mut self, open: impl FnOnce() -> Result<Open>) -> Result<BenchReply> {
        if self.open.len() >= MOST_OPEN {
            return Err(BenchError::invalid("open one more", format!("{MOST_OPEN} are open already")));
        }
        let opened = open()?;
        self.last += 1;
        self.open.insert(self.last, opened);
        Ok(BenchReply::Opened(self.last))
    }

    fn take(&mut self, handle: Handle) -> Result<Open> {
        self.open.remove(&handle).ok_or_else(|| unknown(handle))
    }

    fn put_again(&mut self, handle: Handle, open: Open, wanted: &str) -> BenchError {
        let error = another(handle, &open, wanted);
        self.open.insert(handle, open);
        error
    }

    fn port(&mut self, handle: Handle) -> Result<&mut Port> {
        match self.open.get_mut(&handle) {
            Some(Open::Port(port)) => Ok(port),
            Some(other) => Err(another(handle, other, "port")),
            None => Err(unknown(handle)),
        }
    }
}

fn unknown(handle: Handle) -> BenchError {
    BenchError::invalid(format!("handle {handle}"), "nothing of this number is open")
}

fn another(handle: Handle, open: &Open, wanted: &str) -> BenchError {
    BenchError::invalid(format!("handle {handle}"), format!("it is a {}, not a {wanted}", open.name()))
}

/// Refuses a request that would wait longer than a session may.
fn check_wait(request: &BenchRequest) -> Result<()> {
    let wait = ask::longest(request);
    if wait <= LONGEST_WAIT {
        return Ok(());
    }
    Err(BenchError::invalid(
        ask::operation(request),
        format!("to wait {wait:?} is more than {LONGEST_WAIT:?}"),
    ))
}

#[cfg(test)]
mod tests;
