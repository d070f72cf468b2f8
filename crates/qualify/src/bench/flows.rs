//! Integrity flows between both ends.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::bench::flow::{FlowMethod, FlowRole, FlowTransport};
use linerate_model::bench::{FlowReport, FlowSpec, Handle};
use linerate_model::qualification::{Evidence, ReasonCode};
use linerate_model::trial::Side;

use super::Bench;
use crate::frame::Version;
use crate::station::nanoseconds;
use crate::trouble::Trouble;

/// A flow between both ends; the dut connects.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowAsk {
    /// IP version.
    pub version: Version,
    /// TCP or UDP.
    pub transport: FlowTransport,
    /// The dut sends.
    pub dut_sends: bool,
    /// The peer sends.
    pub peer_sends: bool,
    /// Connections.
    pub connections: u32,
    /// Bytes of each write, used in turn.
    pub write_bytes: Vec<u32>,
    /// How bytes are handed to the kernel.
    pub method: FlowMethod,
    /// Most bits a second each way; 0 is no limit.
    pub bits_per_second: u64,
    /// Bytes of each connection each way; `None` is until the flow is ended.
    pub bytes_per_connection: Option<u64>,
    /// Ends by itself after so long; zero is never.
    pub duration: Duration,
    /// `TCP_MAXSEG`; 0 leaves it to the kernel.
    pub mss_bytes: u32,
    /// Connects again when a connection breaks.
    pub reconnect: bool,
}

impl FlowAsk {
    /// One TCP connection, both ways at once, until it is ended.
    pub fn tcp(version: Version) -> Self {
        Self {
            version,
            transport: FlowTransport::Tcp,
            dut_sends: true,
            peer_sends: true,
            connections: 1,
            write_bytes: vec![16_384],
            method: FlowMethod::Write,
            bits_per_second: 0,
            bytes_per_connection: None,
            duration: Duration::ZERO,
            mss_bytes: 0,
            reconnect: false,
        }
    }

    /// One UDP flow both ways, at 20 Mbit/s each, until it is ended.
    pub fn udp(version: Version) -> Self {
        Self {
            transport: FlowTransport::Udp,
            write_bytes: vec![1200],
            bits_per_second: 20_000_000,
            ..Self::tcp(version)
        }
    }
}

/// Both sides of a running flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowPair {
    /// What was asked for.
    pub ask: FlowAsk,
    /// At the dut.
    pub dut: Handle,
    /// At the peer.
    pub peer: Handle,
}

impl Bench {
    /// Starts a flow between both ends.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`]; a skip where the links have no addresses of this version.
    pub fn start_flow(&mut self, ask: &FlowAsk) -> Result<FlowPair, Trouble> {
        let (dut, peer) = self.addresses(ask.version)?;
        let seed = self.rng().draw();
        let side = |role, bind, sends, receives| FlowSpec {
            transport: ask.transport,
            role,
            bind,
            sends,
            receives,
            connections: ask.connections,
            write_bytes: ask.write_bytes.clone(),
            method: ask.method,
            bits_per_second: ask.bits_per_second,
            bytes_per_connection: ask.bytes_per_connection,
            duration_ns: nanoseconds(ask.duration),
            seed,
            mss_bytes: ask.mss_bytes,
            reconnect: ask.reconnect,
        };
        let listen = FlowRole::Listen(SocketAddr::new(peer, 0));
        let (at_peer, port) = self.peer.start_flow(side(listen, None, ask.peer_sends, ask.dut_sends))?;
        let connect = FlowRole::Connect(SocketAddr::new(peer, port));
        let bind = Some(SocketAddr::new(dut, 0));
        let (at_dut, _) = self.dut.start_flow(side(connect, bind, ask.dut_sends, ask.peer_sends))?;
        Ok(FlowPair { ask: ask.clone(), dut: at_dut, peer: at_peer })
    }

    /// Ends a flow; gives the dut's and the peer's report. Bytes that are not those sent are faults; so are broken
    /// connections, unless the flow connects again, and a flow that does not end.
    ///
    /// # Errors
    /// As [`crate::station::Station::ask`].
    pub fn finish_flow(
        &mut self,
        pair: &FlowPair,
        limit: Duration,
    ) -> Result<(FlowReport, FlowReport), Trouble> {
        let limit = self.patient(limit);
        // Both stop before either is waited for: each reads until the other has sent its last byte.
        self.dut.stop_flow(pair.dut)?;
        self.peer.stop_flow(pair.peer)?;
        let dut = self.dut.finish_flow(pair.dut, limit)?;
        let peer = self.peer.finish_flow(pair.peer, limit)?;
        self.judge_flow(&pair.ask, Side::Dut, &dut);
        self.judge_flow(&pair.ask, Side::Peer, &peer);
        Ok((dut, peer))
    }

    /// Runs a flow from its beginning to its end.
    ///
    /// # Errors
    /// As [`Bench::start_flow`] and [`Bench::finish_flow`].
    pub fn run_flow(&mut self, ask: &FlowAsk) -> Result<(FlowReport, FlowReport), Trouble> {
        let pair = self.start_flow(ask)?;
        self.sleep(ask.duration)?;
        self.finish_flow(&pair, Duration::from_secs(10))
    }

    fn judge_flow(&mut self, ask: &FlowAsk, side: Side, report: &FlowReport) {
        let (name, sends) = match side {
            Side::Dut => ("dut", ask.peer_sends),
            Side::Peer => ("peer", ask.dut_sends),
        };
        let what = format!("{:?} flow over IP{} at the {name}", ask.transport, ask.version.word());
        if let Some(wrong) = report.first_wrong {
            let text = format!(
                "{what}: {} wrong bytes; the first on connection {} at {}: {:#04x}, was sent as {:#04x}",
                report.wrong_bytes, wrong.connection, wrong.offset, wrong.got, wrong.expected
            );
            let evidence = Evidence {
                what: format!("{what}, connection {}", wrong.connection),
                expected: Some(vec![wrong.expected].into()),
                got: Some(vec![wrong.got].into()),
                offset: Some(wrong.offset),
            };
            self.fail_with(ReasonCode::Data, text, evidence);
        }
        if let Some(why) = report.broken.first().filter(|_| !ask.reconnect) {
            self.fail(ReasonCode::Loss, format!("{what}: {} connections broke: {why}", report.broken.len()));
        }
        if !report.over {
            self.fail(ReasonCode::StuckRx, format!("{what} did not come to its end"));
        }
        if sends && report.received_bytes == 0 {
            self.fail(ReasonCode::Loss, format!("{what}: nothing was received"));
        }
    }
}
