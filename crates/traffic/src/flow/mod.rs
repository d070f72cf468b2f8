//! Integrity flows: one side of TCP or UDP traffic whose every byte is compared with what its place says it must be.
//!
//! Everything runs on threads of its own, at most two a connection, which end when the [`Flow`] is dropped.

mod send;
mod shared;
mod tcp;
mod udp;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use linerate_model::bench::flow::{FlowMethod, FlowReport, FlowRole, FlowSpec, FlowTransport};
use linerate_sys::SysError;
use linerate_sys::error::Result;

use self::shared::Shared;

/// Most connections of a flow.
pub const MOST_CONNECTIONS: u32 = 64;
/// Most bytes of one write.
pub const LARGEST_WRITE_BYTES: u32 = 16 << 20;
/// Most bytes of a datagram over IPv4; a link that takes fewer refuses.
const LARGEST_DATAGRAM_BYTES: u32 = 65507;
/// How long a blocked call may take to see that it is over.
const TICK: Duration = Duration::from_millis(20);
const POLL: Duration = Duration::from_millis(2);

/// One side of a flow, at work.
#[derive(Debug)]
pub struct Flow {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    port: u16,
}

impl Flow {
    /// Starts a side: binds and listens, or begins to connect. Connections that can't be made are in the report.
    ///
    /// # Errors
    /// A spec that makes no sense (EINVAL, the object says why), or an address that can't be bound.
    pub fn start(spec: &FlowSpec) -> Result<Self> {
        check(spec)?;
        let shared = Arc::new(Shared::new(spec.clone()));
        let mut flow = Self { shared: shared.clone(), threads: Vec::new(), port: 0 };
        flow.port = match spec.transport {
            FlowTransport::Tcp => tcp::start(&shared, &mut flow.threads)?,
            FlowTransport::Udp => udp::start(&shared, &mut flow.threads)?,
        };
        Ok(flow)
    }

    /// The port that it listens on, or the local one of a single UDP socket; 0 where there is none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How it stands.
    pub fn look(&self) -> FlowReport {
        self.shared.report()
    }

    /// Tells it to come to its end: a sender stops, a receiver reads to the end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
    }

    /// Ends it: a sender stops, a receiver reads to the end. What is not over within `limit` is cut off and reported as
    /// broken.
    pub fn finish(self, limit: Duration) -> FlowReport {
        self.finish_unless(limit, &AtomicBool::new(false))
    }

    /// [`Self::finish`], cut off at once when it is told to give up.
    pub fn finish_unless(mut self, limit: Duration, give_up: &AtomicBool) -> FlowReport {
        self.stop();
        let end = Instant::now() + limit;
        while !self.shared.is_over() && Instant::now() < end && !give_up.load(Relaxed) {
            thread::sleep(POLL);
        }
        self.end();
        self.shared.report()
    }

    fn end(&mut self) {
        self.shared.abort();
        for thread in self.threads.drain(..) {
            // A panic of it was printed by the panic hook, and its connection is not among the finished.
            let _panicked = thread.join();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

fn check(spec: &FlowSpec) -> Result<()> {
    let udp = spec.transport == FlowTransport::Udp;
    let (least, most) =
        if udp { (udp::HEADER_BYTES as u32, LARGEST_DATAGRAM_BYTES) } else { (1, LARGEST_WRITE_BYTES) };
    let why = if !(1..=MOST_CONNECTIONS).contains(&spec.connections) {
        format!("connections are 1 to {MOST_CONNECTIONS}")
    } else if !spec.sends && !spec.receives {
        "a side sends, receives, or both".to_owned()
    } else if spec.sends && spec.write_bytes.is_empty() {
        "a side that sends needs sizes of its writes".to_owned()
    } else if let Some(size) = spec.write_bytes.iter().find(|size| !(least..=most).contains(*size)) {
        format!("a write of {size} bytes: {least} to {most} are possible")
    } else if udp && matches!(spec.method, FlowMethod::Sendfile | FlowMethod::Splice) {
        "datagrams are sent by write, writev or zero copy".to_owned()
    } else if udp && spec.method == FlowMethod::ZeroCopy && matches!(spec.role, FlowRole::Listen(_)) {
        "datagrams are sent without a copy by the side that connects".to_owned()
    } else {
        return Ok(());
    };
    Err(SysError::new("start flow", why, io::Error::from_raw_os_error(nix::libc::EINVAL)))
}

fn spawn(
    threads: &mut Vec<JoinHandle<()>>,
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let started = thread::Builder::new().name(name.clone()).spawn(work);
    threads.push(started.map_err(|error| SysError::new("start thread", name, error))?);
    Ok(())
}

#[cfg(test)]
mod tests;
