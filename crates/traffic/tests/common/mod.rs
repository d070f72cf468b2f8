//! Builds trials and runs both sides of them on loopback.

#![expect(dead_code, reason = "each test file uses its part")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::trial::{Amount, Family, Pinning, Trial};
use linerate_model::units::{ByteCount, Rate};
use linerate_model::workload::{
    SendMethod, TcpBidir, TcpCrr, TcpOptions, TcpRr, TcpStream, UdpOptions, UdpRr, UdpStream, Workload,
};
use linerate_sys::clock;
use linerate_traffic::{Endpoint, Phase, SideResult, Snapshot, Token, TrialSide};

pub(crate) const WINDOW: Duration = Duration::from_millis(200);

pub(crate) fn stream(size: u64) -> TcpStream {
    TcpStream { size: ByteCount(size), send: SendMethod::Write, rate: None, socket: TcpOptions::default() }
}

pub(crate) fn bidir(size: u64, one_connection: bool) -> Workload {
    Workload::TcpBidir(TcpBidir { stream: stream(size), one_connection })
}

pub(crate) fn rr(request: u64, response: u64, in_flight: Option<u32>, rate: Option<Rate>) -> Workload {
    let socket = TcpOptions { nodelay: true, ..TcpOptions::default() };
    Workload::TcpRr(TcpRr {
        request: ByteCount(request),
        response: ByteCount(response),
        in_flight,
        rate,
        socket,
    })
}

pub(crate) fn crr(request: u64, response: u64) -> Workload {
    let socket = TcpOptions::default();
    Workload::TcpCrr(TcpCrr {
        request: ByteCount(request),
        response: ByteCount(response),
        rate: None,
        socket,
    })
}

pub(crate) fn udp(size: u64, rate: Option<Rate>) -> Workload {
    let socket = UdpOptions { buffer_bytes: Some(ByteCount(4 << 20)), tos: None };
    Workload::UdpStream(UdpStream { size: ByteCount(size), rate, socket })
}

pub(crate) fn udp_rr(request: u64, response: u64, in_flight: Option<u32>, rate: Option<Rate>) -> Workload {
    Workload::UdpRr(UdpRr {
        request: ByteCount(request),
        response: ByteCount(response),
        in_flight,
        rate,
        timeout_ns: 200_000_000,
        socket: UdpOptions::default(),
    })
}

pub(crate) fn trial(workload: Workload) -> Trial {
    let trial = Trial {
        workload,
        family: Family::V4,
        peers: 1,
        streams: 1,
        amount: Amount::DurationNs(WINDOW.as_nanos() as u64),
        warmup_ns: 0,
        interval_ns: None,
        verify_seed: None,
        settings: Vec::new(),
        pin: Pinning::default(),
        repeat: 0,
    };
    trial.check().unwrap();
    trial
}

/// Both sides of a trial, ready to start.
pub(crate) struct Pair {
    pub(crate) dut: Endpoint,
    pub(crate) peer: Endpoint,
}

/// What both sides saw.
pub(crate) struct Seen {
    pub(crate) dut: SideResult,
    pub(crate) peer: SideResult,
    pub(crate) dut_window: Snapshot,
    pub(crate) peer_window: Snapshot,
}

pub(crate) fn sides(trial: &Trial) -> (TrialSide, TrialSide) {
    let address = if trial.family == Family::V6 { "[::1]:0" } else { "127.0.0.1:0" };
    let local: SocketAddr = address.parse().unwrap();
    let side = TrialSide { trial: trial.clone(), token: Token::random().unwrap(), local };
    (side.clone(), side)
}

impl Pair {
    pub(crate) fn open(trial: &Trial) -> Self {
        let (dut, peer) = sides(trial);
        let mut peer = Endpoint::listen(&peer).unwrap();
        let dut = Endpoint::connect(&dut, dut.local, peer.ports()).unwrap();
        peer.wait_ready(Duration::from_secs(5)).unwrap();
        Self { dut, peer }
    }

    pub(crate) fn start(&mut self) {
        let now = clock::monotonic_ns();
        self.peer.start(now);
        self.dut.start(now);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.peer.enter_phase(phase);
        self.dut.enter_phase(phase);
    }

    /// Runs warm-up, window and tail of a trial that lasts a given time.
    pub(crate) fn run(mut self) -> Seen {
        self.start();
        std::thread::sleep(Duration::from_millis(50));
        self.enter(Phase::Window);
        let (dut_before, peer_before) = (self.dut.snapshot(), self.peer.snapshot());
        std::thread::sleep(WINDOW);
        let (dut_after, peer_after) = (self.dut.snapshot(), self.peer.snapshot());
        self.enter(Phase::Tail);
        let (dut, peer) = self.finish();
        Seen {
            dut,
            peer,
            dut_window: difference(&dut_after, &dut_before),
            peer_window: difference(&peer_after, &peer_before),
        }
    }

    /// Runs a trial that is limited by bytes or transactions.
    pub(crate) fn run_counted(mut self) -> (SideResult, SideResult) {
        self.enter(Phase::Window);
        self.start();
        let limit = Duration::from_secs(20);
        for end in [&self.dut, &self.peer] {
            if end.has_authority() {
                assert!(end.wait_done(limit).unwrap().unwrap() <= clock::monotonic_ns());
            }
        }
        assert!(self.dut.has_authority() || self.peer.has_authority());
        self.finish()
    }

    pub(crate) fn finish(self) -> (SideResult, SideResult) {
        self.dut.stop();
        self.peer.stop();
        let dut = self.dut.finish(None);
        let sent: Option<Vec<u64>> = dut.streams.iter().map(|s| s.udp.map(|u| u.sent)).collect();
        let peer = self.peer.finish(sent.as_deref());
        (dut, peer)
    }
}

fn difference(after: &Snapshot, before: &Snapshot) -> Snapshot {
    let streams = after.streams.iter().zip(&before.streams).map(|(a, b)| a.since(b)).collect();
    Snapshot { at_ns: after.at_ns - before.at_ns, streams }
}

pub(crate) fn no_errors(result: &SideResult) {
    for stream in &result.streams {
        assert_eq!(stream.error, None);
    }
}
