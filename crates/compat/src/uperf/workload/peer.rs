//! The peer's side: a slave that lets in who knows the trial's token.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::profile::Profile;
use linerate_sys::tcp_info::TcpInfo;
use linerate_traffic::{
    Mover, Phase, Result, SideResult, Snapshot, ThreadInfo, Token, TrafficError, TrialSide,
};

use super::{Gates, failed};
use crate::uperf::slave::{Limits, serve_watched};
use crate::uperf::strand::Gate;

/// How long a control connection has to prove itself.
const PROOF_LIMIT: Duration = Duration::from_secs(2);
/// How often the door looks whether it is to close.
const LOOK: Duration = Duration::from_millis(10);
/// How long the master may take to take down, once the window is closed.
const END_LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Peer {
    streams: u32,
    groups: usize,
    port: u16,
    gates: Gates,
    shared: Arc<Shared>,
    door: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    token: Token,
    most_strands: u32,
    closing: AtomicBool,
    strays: AtomicU64,
    failures: Mutex<Vec<String>>,
}

impl Peer {
    /// Listens on the address under test.
    pub(super) fn open(side: &TrialSide, profile: &Profile) -> Result<Self> {
        let address = SocketAddr::new(side.local.ip(), 0);
        let say = |e: io::Error| failed(format!("listen on {address}: {e}"));
        let listener = TcpListener::bind(address).map_err(say)?;
        listener.set_nonblocking(true).map_err(say)?;
        let port = listener.local_addr().map_err(say)?.port();
        let shared = Arc::new(Shared {
            token: side.token,
            most_strands: side.trial.streams,
            closing: AtomicBool::new(false),
            strays: AtomicU64::new(0),
            failures: Mutex::default(),
        });
        let gates = Gates::default();
        let (its, its_gates) = (shared.clone(), gates.clone());
        let door = thread::Builder::new().name("lr-slave-door".to_owned());
        let door = door.spawn(move || keep_door(&listener, &its, &its_gates));
        let door = door.map_err(|e| failed(format!("start thread lr-slave-door: {e}")))?;
        let groups = profile.groups.iter().filter(|g| !g.hosts().is_empty()).count();
        Ok(Self { streams: side.trial.streams, groups, port, gates, shared, door: Some(door) })
    }

    fn close(&mut self) {
        self.shared.closing.store(true, Relaxed);
        if let Some(door) = self.door.take() {
            // It holds no result; a panic of it was printed by the panic hook.
            let _panicked = door.join();
        }
    }
}

/// Accepts control connections, one a group, until it is to close; then waits for their ends.
fn keep_door(listener: &TcpListener, shared: &Arc<Shared>, gates: &Gates) {
    let mut slaves: Vec<JoinHandle<()>> = Vec::new();
    while !shared.closing.load(Relaxed) {
        slaves.retain(|s| !s.is_finished());
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(LOOK);
            continue;
        };
        // A master opens its connections one after the other; so many at once are strangers.
        if slaves.len() > shared.most_strands as usize {
            shared.strays.fetch_add(1, Relaxed);
            continue;
        }
        let (shared, gates) = (shared.clone(), gates.clone());
        let serve = move || be_slave(stream, &shared, &gates);
        // Where the thread can't be started the stream is dropped with the closure, and the master sees the end.
        slaves.extend(thread::Builder::new().name("lr-slave".to_owned()).spawn(serve));
    }
    slaves.into_iter().for_each(|s| drop(s.join()));
}

fn be_slave(mut stream: TcpStream, shared: &Shared, gates: &Gates) {
    if !proves_itself(&mut stream, &shared.token) {
        shared.strays.fetch_add(1, Relaxed);
        return;
    }
    let limits = Limits { most_strands: shared.most_strands, max_duration: None, max_bits_per_second: None };
    let watch = |gate: &Arc<Gate>| gates.add(gate);
    let failure = match serve_watched(&stream, &limits, &shared.closing, Some(&watch)) {
        Ok(summary) => summary.failure,
        Err(error) => Some(format!("control connection: {error}")),
    };
    if let Some(failure) = failure.filter(|_| !shared.closing.load(Relaxed)) {
        shared.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

fn proves_itself(stream: &mut TcpStream, token: &Token) -> bool {
    let deadline = Instant::now() + PROOF_LIMIT;
    let mut proof = [0; Token::LEN];
    let mut filled = 0;
    let set = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PROOF_LIMIT)));
    while set.is_ok() && filled < proof.len() && Instant::now() < deadline {
        match stream.read(&mut proof[filled..]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => filled += count,
        }
    }
    filled == proof.len() && token.matches(&proof)
}

impl Mover for Peer {
    fn ports(&self) -> Vec<u16> {
        vec![self.port]
    }

    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        while self.gates.all().len() < self.groups {
            if Instant::now() > deadline {
                let missing = self.groups - self.gates.all().len();
                return Err(TrafficError::NotReady {
                    missing,
                    needed: self.groups,
                    seconds: timeout.as_secs(),
                });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn start(&mut self, _at_ns: u64) {}

    fn enter_phase(&self, _phase: Phase) {}

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.gates.snapshot(self.streams);
        // Transactions are the asking side's.
        snapshot.streams.iter_mut().for_each(|s| s.transactions = 0);
        snapshot
    }

    fn threads(&self) -> Vec<ThreadInfo> {
        self.gates.infos()
    }

    fn tcp_info(&self) -> Result<Vec<Vec<TcpInfo>>> {
        Ok(vec![Vec::new(); self.streams as usize])
    }

    fn failures(&self) -> Vec<(u32, String)> {
        let failures = self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.iter().map(|text| (0, text.clone())).collect()
    }

    fn has_authority(&self) -> bool {
        false
    }

    fn wait_done(&self, _timeout: Duration) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The master leads: what it still has to do comes to its end.
    fn stop(&self) {}

    fn finish(mut self: Box<Self>, _expect_sent: Option<&[u64]>) -> SideResult {
        let deadline = Instant::now() + END_LIMIT;
        while !self.gates.all_over() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        self.close();
        SideResult {
            streams: self.gates.results(self.streams),
            threads: self.gates.threads(),
            strays: self.shared.strays.load(Relaxed),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.close();
    }
}
