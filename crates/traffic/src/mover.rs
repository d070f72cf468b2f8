//! What whoever times a trial needs of whatever moves its bytes.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::trial::Side;
use linerate_sys::tcp_info::TcpInfo;

use crate::control::Phase;
use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::result::{SideResult, Snapshot, ThreadInfo};
use crate::side::TrialSide;

/// One side of one trial, whose bytes this crate ([`Endpoint`]) or another one moves. The methods are those of
/// [`Endpoint`], with the same order of calls; dropping it ends all traffic.
pub trait Mover: Send + fmt::Debug {
    /// Ports that the client is to connect to; empty on the client's side.
    fn ports(&self) -> Vec<u16>;

    /// Waits until the trial's connections stand.
    ///
    /// # Errors
    /// They do not within `timeout`.
    fn wait_ready(&mut self, timeout: Duration) -> Result<()>;

    /// Lets traffic begin at this instant of CLOCK_MONOTONIC, nanoseconds.
    fn start(&mut self, at_ns: u64);

    /// Enters a phase.
    fn enter_phase(&self, phase: Phase);

    /// What has been moved since the start.
    fn snapshot(&self) -> Snapshot;

    /// The traffic threads.
    fn threads(&self) -> Vec<ThreadInfo>;

    /// The kernel's state of each TCP connection, by stream; empty where it is not asked.
    ///
    /// # Errors
    /// Names the socket that could not be read.
    fn tcp_info(&self) -> Result<Vec<Vec<TcpInfo>>>;

    /// Streams that have failed so far, each with its error.
    fn failures(&self) -> Vec<(u32, String)>;

    /// Whether this side can tell when all that was asked has moved.
    fn has_authority(&self) -> bool;

    /// Waits for the end of a trial that ends by itself; gives its instant, nanoseconds of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The first stream's error, if one has failed.
    fn wait_done(&self, timeout: Duration) -> Result<Option<u64>>;

    /// Stops what this side sends by itself.
    fn stop(&self);

    /// Ends the traffic and gives what was found.
    fn finish(self: Box<Self>, expect_sent: Option<&[u64]>) -> SideResult;
}

/// Opens a side of a profile's trial: the peer's, or the dut's towards the peer's address and ports.
pub type OpenProfile = fn(&TrialSide, Side, Option<(SocketAddr, &[u16])>) -> Result<Box<dyn Mover>>;

impl Mover for Endpoint {
    fn ports(&self) -> Vec<u16> {
        self.ports().to_vec()
    }

    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        self.wait_ready(timeout)
    }

    fn start(&mut self, at_ns: u64) {
        self.start(at_ns);
    }

    fn enter_phase(&self, phase: Phase) {
        self.enter_phase(phase);
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot()
    }

    fn threads(&self) -> Vec<ThreadInfo> {
        self.threads()
    }

    fn tcp_info(&self) -> Result<Vec<Vec<TcpInfo>>> {
        self.tcp_info()
    }

    fn failures(&self) -> Vec<(u32, String)> {
        self.failures()
    }

    fn has_authority(&self) -> bool {
        self.has_authority()
    }

    fn wait_done(&self, timeout: Duration) -> Result<Option<u64>> {
        self.wait_done(timeout)
    }

    fn stop(&self) {
        self.stop();
    }

    fn finish(self: Box<Self>, expect_sent: Option<&[u64]>) -> SideResult {
        (*self).finish(expect_sent)
    }
}
