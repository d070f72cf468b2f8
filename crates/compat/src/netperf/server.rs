//! The server's side of a control connection, without I/O or clock: bytes and time in, actions out.

use std::collections::VecDeque;

use super::reply::{Response, Results};
use super::request::{Request, RequestError};
use super::wire::{
    Assembler, CPU_CALIBRATE, DEBUG_OFF, DEBUG_OK, DEBUG_ON, MESSAGE_BYTES, Message, OLD_MESSAGE_BYTES,
    PASSPHRASE, SYSINFO, SYSINFO_RESPONSE, UNKNOWN_REQUEST,
};

/// How long a client may take for its passphrase.
const PASSPHRASE_LIMIT_NS: u64 = 20_000_000_000;

/// How long a message may stay incomplete.
const PARTIAL_LIMIT_NS: u64 = 10_000_000_000;

/// Most messages that a client may send ahead while a test runs.
const BACKLOG: usize = 16;

/// Error that a client sees for a request that is known but not offered (`EOPNOTSUPP`).
const NOT_OFFERED: i32 = 95;

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send these bytes on the control connection.
    Send(Message),
    /// Open the data socket for this test, then call [`ServerSession::opened`].
    Open(Box<Request>),
    /// Move the data of the test that was opened, then call [`ServerSession::finished`].
    Run,
    /// End whatever runs and close the control connection.
    Close(Ended),
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The client closed.
    #[error("the client closed")]
    ByClient,
    /// No passphrase in time, or not the right one.
    #[error("wrong passphrase, or none")]
    Passphrase,
    /// A message stopped in the middle.
    #[error("a message stopped after {0} of 656 bytes")]
    Partial(usize),
    /// The client speaks the protocol of netperf 2.5.0 and older.
    #[error("the client sends 256-byte messages: netperf 2.5.0 or older, which is not offered")]
    OldClient,
    /// Too much sent ahead.
    #[error("more than {BACKLOG} messages sent ahead")]
    Flood,
    /// A test could not be opened or failed; the client was told this error number.
    #[error("told the client error {0}")]
    TestFailed(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AwaitPassphrase,
    Idle,
    Opening,
    Running,
    Over,
}

/// One client's control connection.
#[derive(Debug)]
pub struct ServerSession {
    assembler: Assembler,
    passphrase: Option<String>,
    state: State,
    began_ns: u64,
    partial_since_ns: Option<u64>,
    layout: super::request::Layout,
    actions: VecDeque<Action>,
    cpus: i32,
}

impl ServerSession {
    /// A session that began at `now_ns`; with a passphrase the client's first message must carry it.
    pub fn new(passphrase: Option<String>, now_ns: u64) -> Self {
        Self {
            assembler: Assembler::default(),
            state: if passphrase.is_some() { State::AwaitPassphrase } else { State::Idle },
            passphrase,
            began_ns: now_ns,
            partial_since_ns: None,
            layout: super::request::Layout::Omni,
            actions: VecDeque::new(),
            cpus: 0,
        }
    }

    /// Number of CPUs to tell a client that calibrates.
    pub fn set_cpus(&mut self, cpus: usize) {
        self.cpus = i32::try_from(cpus).unwrap_or(i32::MAX);
    }

    /// Bytes from the client.
    pub fn bytes(&mut self, bytes: &[u8], now_ns: u64) {
        if self.state == State::Over {
            return;
        }
        self.assembler.push(bytes);
        if self.assembler.pending_bytes() > BACKLOG * MESSAGE_BYTES {
            self.close(Ended::Flood);
        }
        self.proceed();
        self.partial_since_ns = match self.assembler.pending_bytes() % MESSAGE_BYTES {
            0 => None,
            _ => self.partial_since_ns.or(Some(now_ns)),
        };
    }

    /// The client closed its way.
    pub fn closed(&mut self) {
        match self.assembler.pending_bytes() {
            OLD_MESSAGE_BYTES => self.close(Ended::OldClient),
            _ => self.close(Ended::ByClient),
        }
    }

    /// The data socket is open, or it failed with an error number.
    pub fn opened(&mut self, outcome: Result<&Response, i32>) {
        if self.state != State::Opening {
            return;
        }
        match outcome {
            Ok(response) => {
                self.send(response.encode(self.layout));
                self.actions.push_back(Action::Run);
                self.state = State::Running;
            }
            Err(errno) => self.fail(errno),
        }
    }

    /// The test is over, or failed with an error number.
    pub fn finished(&mut self, outcome: Result<&Results, i32>) {
        if self.state != State::Running {
            return;
        }
        match outcome {
            Ok(results) => {
                self.send(results.encode(self.layout));
                self.state = State::Idle;
                self.proceed();
            }
            Err(errno) => self.fail(errno),
        }
    }

    /// When [`ServerSession::timeout`] must be called, at the latest.
    pub fn deadline_ns(&self) -> Option<u64> {
        let passphrase =
            (self.state == State::AwaitPassphrase).then_some(self.began_ns + PASSPHRASE_LIMIT_NS);
        let partial = self.partial_since_ns.map(|since| since + PARTIAL_LIMIT_NS);
        passphrase.into_iter().chain(partial).min()
    }

    /// Time has passed.
    pub fn timeout(&mut self, now_ns: u64) {
        if self.state == State::AwaitPassphrase && now_ns >= self.began_ns + PASSPHRASE_LIMIT_NS {
            self.close(Ended::Passphrase);
        }
        if self.partial_since_ns.is_some_and(|since| now_ns >= since + PARTIAL_LIMIT_NS) {
            match self.assembler.pending_bytes() {
                OLD_MESSAGE_BYTES => self.close(Ended::OldClient),
                count => self.close(Ended::Partial(count)),
            }
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn proceed(&mut self) {
        while matches!(self.state, State::AwaitPassphrase | State::Idle) {
            let Some(message) = self.assembler.take() else { return };
            self.take(&message);
        }
    }

    fn take(&mut self, message: &Message) {
        if self.state == State::AwaitPassphrase {
            let given = (message.kind() == PASSPHRASE).then(|| message.text(8, MESSAGE_BYTES - 8));
            if given.is_some() && given == self.passphrase {
                self.state = State::Idle;
            } else {
                self.close(Ended::Passphrase);
            }
            return;
        }
        match message.kind() {
            PASSPHRASE => {}
            DEBUG_ON | DEBUG_OFF => self.send(Message::new(DEBUG_OK, 0)),
            CPU_CALIBRATE => {
                let mut reply = Message::new(CPU_CALIBRATE, 0);
                reply.put_f32(8, 100.0);
                reply.put_i32(12, self.cpus);
                self.send(reply);
            }
            SYSINFO => {
                let mut reply = Message::new(SYSINFO_RESPONSE, 0);
                reply.put_text(8, 64, ",Deprecated,Deprecated,Deprecated,Deprecated");
                self.send(reply);
            }
            kind => match Request::decode(message) {
                Ok(request) => {
                    self.layout = request.layout;
                    self.state = State::Opening;
                    self.actions.push_back(Action::Open(Box::new(request)));
                }
                Err(RequestError::UnknownType(_)) => self.send(Message::new(kind, UNKNOWN_REQUEST)),
                Err(RequestError::Unsupported { .. }) => self.send(Message::new(kind + 1, NOT_OFFERED)),
            },
        }
    }

    fn send(&mut self, message: Message) {
        self.actions.push_back(Action::Send(message));
    }

    /// As netserver does, tells the error and hangs up.
    fn fail(&mut self, errno: i32) {
        self.send(Message::new(self.layout.kind() + 1, errno.max(1)));
        self.close(Ended::TestFailed(errno));
    }

    fn close(&mut self, why: Ended) {
        if self.state != State::Over {
            self.state = State::Over;
            self.actions.push_back(Action::Close(why));
        }
    }
}
