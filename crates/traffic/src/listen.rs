//! The door of a TCP server: accepts connections, lets in those that prove themselves, drops and counts the others.
//!
//! One thread polls the listener and every connection that has not proved itself yet, so that a slow or silent stranger
//! holds up nobody. It goes on during the trial, asleep as long as nobody knocks.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::preamble::{self, Claim};
use crate::side::Token;
use crate::wake::Wake;

/// How long a connection may take to prove itself.
const PROOF_LIMIT_NS: u64 = 5_000_000_000;

/// Connections that may be on their way to proving themselves; a newer one pushes out the oldest.
const WAITING_MAX: usize = 256;

/// How long the door rests when accept(2) fails for want of memory or descriptors.
const ACCEPT_REST_NS: u64 = 10_000_000;

/// A connection that has proved itself.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) claim: Claim,
    pub(crate) socket: Arc<Socket>,
}

/// What the door needs.
pub(crate) struct Door {
    pub(crate) listener: Arc<Socket>,
    pub(crate) token: Token,
    /// Claims that may be made, each once.
    pub(crate) expected: Vec<Claim>,
    pub(crate) arrivals: Sender<Arrival>,
    pub(crate) strays: Arc<AtomicU64>,
    pub(crate) wake: Arc<Wake>,
}

struct Waiting {
    socket: Socket,
    deadline_ns: u64,
    bytes: [u8; preamble::LEN],
    filled: usize,
}

enum Progress {
    More,
    Proved(Claim),
    Stranger,
}

impl Door {
    /// Runs until the wake is rung.
    pub(crate) fn run(mut self) {
        let mut waiting: Vec<Waiting> = Vec::new();
        while self.serve(&mut waiting) {}
        self.count_strays(waiting.len());
    }

    /// One round of waiting; false when it is over.
    fn serve(&mut self, waiting: &mut Vec<Waiting>) -> bool {
        let mut set = PollSet::new();
        let wake = set.add(self.wake.fd(), Readiness::READ);
        let door = set.add(self.listener.as_fd(), Readiness::READ);
        let first = door + 1;
        for one in waiting.iter() {
            set.add(one.socket.as_fd(), Readiness::READ);
        }
        let next_deadline = waiting.iter().map(|w| w.deadline_ns).min();
        let timeout = next_deadline.map(|d| d.saturating_sub(clock::monotonic_ns()));
        if set.wait(timeout).is_err() || set.ready(wake).readable {
            return false;
        }
        let ready: Vec<bool> = (0..waiting.len()).map(|i| set.ready(first + i).readable).collect();
        let knocked = set.ready(door).readable;
        self.listen_to(waiting, &ready);
        if knocked {
            self.accept(waiting);
        }
        true
    }

    /// Reads from those that are ready; lets in, keeps or drops each.
    fn listen_to(&mut self, waiting: &mut Vec<Waiting>, ready: &[bool]) {
        let now = clock::monotonic_ns();
        for (mut one, &readable) in std::mem::take(waiting).into_iter().zip(ready) {
            let progress = if readable { one.read(&self.token) } else { Progress::More };
            match progress {
                Progress::More if now < one.deadline_ns => waiting.push(one),
                Progress::Proved(claim) => self.let_in(claim, one.socket),
                Progress::More | Progress::Stranger => self.count_strays(1),
            }
        }
    }

    fn let_in(&mut self, claim: Claim, socket: Socket) {
        let Some(place) = self.expected.iter().position(|&c| c == claim) else {
            self.count_strays(1);
            return;
        };
        self.expected.swap_remove(place);
        // The endpoint is gone only when it is being dropped; then the connection may go too.
        let _endpoint_gone = self.arrivals.send(Arrival { claim, socket: Arc::new(socket) });
    }

    fn accept(&mut self, waiting: &mut Vec<Waiting>) {
        let socket = match self.listener.accept() {
            Ok((socket, _)) => socket,
            Err(e)
                if matches!(
                    e.raw_os_error().map(Errno::from_raw),
                    Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS)
                ) =>
            {
                clock::sleep_until(clock::monotonic_ns() + ACCEPT_REST_NS);
                return;
            }
            // The one that knocked has gone away again.
            Err(_) => return,
        };
        if waiting.len() == WAITING_MAX {
            waiting.remove(0);
            self.count_strays(1);
        }
        let deadline_ns = clock::monotonic_ns() + PROOF_LIMIT_NS;
        waiting.push(Waiting { socket, deadline_ns, bytes: [0; preamble::LEN], filled: 0 });
    }

    fn count_strays(&self, count: usize) {
        self.strays.fetch_add(count as u64, Relaxed);
    }
}

impl Waiting {
    /// Reads what is there of the preamble, and not a byte more.
    fn read(&mut self, token: &Token) -> Progress {
        match call::recv_now(&self.socket, &mut self.bytes[self.filled..]) {
            Ok(0) => Progress::Stranger,
            Ok(count) => {
                self.filled += count;
                if self.filled < preamble::LEN {
                    return Progress::More;
                }
                preamble::decode(&self.bytes, token).map_or(Progress::Stranger, Progress::Proved)
            }
            Err(Errno::EAGAIN) => Progress::More,
            Err(_) => Progress::Stranger,
        }
    }
}
