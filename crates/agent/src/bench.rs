//! What a qualification asks of a node ([`linerate_model::bench`]), carried out within a session: what is opened has a
//! handle, works on threads of its own, and ends with the session.

mod ask;
mod error;
mod files;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_link::{LinkError, device};
use linerate_model::bench::{BenchReply, BenchRequest, DeviceAct, EchoReport, EchoSpec};
use linerate_traffic::echo;
use linerate_traffic::flow::Flow;
use linerate_traffic::open_socket::OpenSocket;
use linerate_traffic::packet::{Generator, Port, TallyRun};
use linerate_traffic::xdp::Xdp;

use crate::changes::NodeChanges;
use crate::protocol::Reply;
use error::{BenchError, Result};
use table::Table;

/// Longest that one request may wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// What a session has open and changed.
pub(crate) struct Bench {
    changes: NodeChanges,
    /// The controller is gone: whatever waits gives up.
    lost: Arc<AtomicBool>,
    table: Table,
}

impl Bench {
    pub(crate) fn new(changes: NodeChanges, lost: Arc<AtomicBool>) -> Self {
        Self { changes, lost, table: Table::default() }
    }

    /// Carries out a request.
    pub(crate) fn answer(&mut self, request: BenchRequest) -> Reply {
        let answered = check_wait(&request).and_then(|()| self.carry_out(request));
        answered.map_or_else(BenchError::into_reply, |reply| Reply::Bench(Box::new(reply)))
    }

    fn carry_out(&mut self, request: BenchRequest) -> Result<BenchReply> {
        let Self { changes, lost, table } = self;
        Ok(match request {
            BenchRequest::OpenPort(options) => {
                table.check_room()?;
                BenchReply::Opened(table.keep(Box::new(Port::open(&options)?)))
            }
            BenchRequest::Send { port, frames, gap_ns } => {
                BenchReply::Sent(table.borrow::<Box<Port>>(port)?.send(&frames, gap_ns, lost)?)
            }
            BenchRequest::Receive { port, most, idle_ns, limit_ns } => {
                let received = table.borrow::<Box<Port>>(port)?.receive(most, idle_ns, limit_ns, lost)?;
                BenchReply::Frames { frames: received.frames, dropped: received.dropped }
            }
            BenchRequest::Generate(spec) => {
                table.check_room()?;
                BenchReply::Opened(table.keep(Generator::start(spec)?))
            }
            BenchRequest::FinishGenerate { generator, wait_ns } => {
                BenchReply::Generated(table.take::<Generator>(generator)?.finish(wait_ns, lost)?)
            }
            BenchRequest::Tally(spec) => {
                table.check_room()?;
                BenchReply::Opened(table.keep(TallyRun::start(spec)?))
            }
            BenchRequest::FinishTally { tally, idle_ns, limit_ns } => {
                let tally = table.take::<TallyRun>(tally)?.finish(idle_ns, limit_ns, lost)?;
                BenchReply::Tallied(Box::new(tally))
            }
            BenchRequest::StartFlow(spec) => {
                table.check_room()?;
                let flow = Flow::start(&spec)?;
                let port = flow.port();
                BenchReply::FlowOpened { handle: table.keep(flow), port }
            }
            BenchRequest::LookAtFlow { flow } => {
                BenchReply::Flow(Box::new(table.borrow::<Flow>(flow)?.look()))
            }
            BenchRequest::StopFlow { flow } => {
                table.borrow::<Flow>(flow)?.stop();
                BenchReply::Done
            }
            BenchRequest::FinishFlow { flow, limit_ns } => {
                let limit = Duration::from_nanos(limit_ns);
                BenchReply::Flow(Box::new(table.take::<Flow>(flow)?.finish_unless(limit, lost)))
            }
            BenchRequest::OpenSocket(options) => {
                table.check_room()?;
                let socket = OpenSocket::open(&options)?;
                let port = socket.port();
                BenchReply::FlowOpened { handle: table.keep(Box::new(socket)), port }
            }
            BenchRequest::SendSocket { socket, bytes, to } => {
                BenchReply::Sent(table.borrow::<Box<OpenSocket>>(socket)?.send(&bytes, to))
            }
            BenchRequest::ReceiveSocket { socket, most, idle_ns, limit_ns } => {
                let (idle, limit) = (Duration::from_nanos(idle_ns), Duration::from_nanos(limit_ns));
                let socket = table.borrow::<Box<OpenSocket>>(socket)?;
                BenchReply::Received(socket.receive_unless(most as usize, idle, limit, lost)?)
            }
            BenchRequest::Echo(spec) => BenchReply::Echoes(send_echoes(&spec, lost)?),
            BenchRequest::AttachXdp(spec) => {
                table.check_room()?;
                BenchReply::Opened(table.keep(Xdp::attach(&spec)?))
            }
            BenchRequest::CountXdp { program } => {
                BenchReply::XdpCounted(table.borrow::<Xdp>(program)?.count()?)
            }
            BenchRequest::Close { handle } => table.close(handle).map(|()| BenchReply::Done)?,
            BenchRequest::Snapshot { link } => {
                BenchReply::Snapshot(Box::new(linerate_meter::snapshot(&link)?))
            }
            BenchRequest::Log { from } => {
                let log = linerate_meter::kernel_log(from)?;
                BenchReply::Log { lines: log.lines, next: log.next, lost: log.lost }
            }
            BenchRequest::Set { link, key, value } => {
                changes.set(&link, &key, &value).map(|()| BenchReply::Done)?
            }
            BenchRequest::Link(act) => changes.act(&act, lost).map(|()| BenchReply::Done)?,
            BenchRequest::Device(act) => act_on_device(&act)?,
            BenchRequest::Identity { link } => BenchReply::Facts(linerate_link::device::identity(&link)?),
            BenchRequest::ReadFile { path } => BenchReply::Text(files::read(&path)?),
            BenchRequest::WriteFile { path, text } => {
                files::write(&path, &text).map(|()| BenchReply::Done)?
            }
            BenchRequest::CloseAll => {
                table.clear();
                BenchReply::Done
            }
            BenchRequest::Reset => {
                table.clear();
                put_back(changes).map(|()| BenchReply::Done)?
            }
        })
    }
}

/// Refuses a request that would wait longer than one may.
fn check_wait(request: &BenchRequest) -> Result<()> {
    let wait = ask::longest(request);
    if wait <= LONGEST_WAIT {
        return Ok(());
    }
    let why = format!("to wait {wait:?} is more than {LONGEST_WAIT:?}");
    Err(BenchError::invalid(ask::operation(request), why))
}

/// Sends echoes until all are judged, but no longer than a request may take.
fn send_echoes(spec: &EchoSpec, lost: &AtomicBool) -> Result<EchoReport> {
    const TICK: Duration = Duration::from_millis(20);
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let end = Instant::now() + LONGEST_WAIT;
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                if lost.load(Ordering::Relaxed) || Instant::now() >= end {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let report = echo::run(spec, &stop);
        over.store(true, Ordering::Relaxed);
        report
    });
    Ok(report?)
}

fn act_on_device(act: &DeviceAct) -> Result<BenchReply> {
    Ok(match device::act(act)? {
        Some(test) => BenchReply::SelfTested { passed: test.passed, results: test.results },
        None => BenchReply::Done,
    })
}

fn put_back(changes: &NodeChanges) -> Result<()> {
    let report = changes.restore()?;
    let Some(first) = report.not_back.first() else { return Ok(()) };
    // Not a fault of the request, but of the node.
    let cause = std::io::Error::other(first.to_string());
    Err(LinkError::from(linerate_sys::SysError::new("put everything back", "", cause)).into())
}

#[cfg(test)]
mod tests;
