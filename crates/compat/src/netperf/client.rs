//! The client's side of a control connection, without I/O or clock: bytes and time in, events out.

use super::reply::{Response, Results};
use super::request::{Layout, Length, Request};
use super::wire::{Assembler, CPU_CALIBRATE, MESSAGE_BYTES, Message};

/// How long the server may take to answer a request.
const RESPONSE_LIMIT_NS: u64 = 120_000_000_000;

/// How long after a test's length its results may come: an old netserver ends some tests four seconds late.
const RESULTS_GRACE_NS: u64 = 30_000_000_000;

/// What the server said.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It is ready for data.
    Ready(Response),
    /// It is done.
    Done(Results),
    /// Its answer to a calibration: rate and number of CPUs.
    Calibrated(f32, i32),
}

/// What went wrong on the control connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The server's error number, for what was asked.
    #[error("remote error {code} ({text}) on the {step}", text = describe(*.code))]
    Remote {
        /// Number.
        code: i32,
        /// "request" or "results".
        step: &'static str,
    },
    /// It closed.
    #[error("the server closed the control connection {when}, after {partial} bytes of an answer{hint}")]
    Closed {
        /// In which step.
        when: &'static str,
        /// Bytes of the unfinished answer.
        partial: usize,
        /// What that may mean.
        hint: &'static str,
    },
    /// Nothing came in time.
    #[error("no answer {when} within {seconds} s ({partial} bytes of {MESSAGE_BYTES} came)")]
    Silent {
        /// In which step.
        when: &'static str,
        /// How long was waited.
        seconds: u64,
        /// Bytes of the unfinished answer.
        partial: usize,
    },
    /// It answered though nothing was asked.
    #[error("the server sent a message that nothing asked for")]
    Unasked,
}

fn describe(code: i32) -> String {
    match code {
        998 => "request of a type that the server does not know".to_owned(),
        992 | 99 => "a send of the server failed".to_owned(),
        code => std::io::Error::from_raw_os_error(code).to_string(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    AwaitReady(Layout),
    Moving(Layout),
    AwaitCalibration,
}

/// One control connection.
#[derive(Debug)]
pub struct ClientSession {
    assembler: Assembler,
    state: State,
    deadline_ns: u64,
    limit_ns: u64,
    length: Length,
}

impl ClientSession {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self {
            assembler: Assembler::default(),
            state: State::Idle,
            deadline_ns: u64::MAX,
            limit_ns: 0,
            length: Length::Unlimited,
        }
    }

    /// Asks for a test; returns what to send.
    pub fn ask(&mut self, request: &Request, now_ns: u64) -> Message {
        self.state = State::AwaitReady(request.layout);
        self.length = request.length;
        self.wait(RESPONSE_LIMIT_NS, now_ns);
        request.encode()
    }

    /// Asks for rate and number of CPUs; returns what to send.
    pub fn calibrate(&mut self, now_ns: u64) -> Message {
        self.state = State::AwaitCalibration;
        self.wait(RESPONSE_LIMIT_NS, now_ns);
        Message::new(CPU_CALIBRATE, 0)
    }

    /// The client has moved its data, and waits for the results from now on.
    pub fn moved(&mut self, now_ns: u64) {
        let length_ns = match self.length {
            Length::Seconds(seconds) => u64::from(seconds) * 1_000_000_000,
            _ => 0,
        };
        self.wait(length_ns + RESULTS_GRACE_NS, now_ns);
    }

    fn wait(&mut self, limit_ns: u64, now_ns: u64) {
        self.limit_ns = limit_ns;
        self.deadline_ns = now_ns.saturating_add(limit_ns);
    }

    /// Bytes from the server.
    ///
    /// # Errors
    /// The server reports an error, or sends what nothing asked for.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<Option<Event>, ClientError> {
        self.assembler.push(bytes);
        self.poll()
    }

    /// The next event from bytes that came before.
    ///
    /// # Errors
    /// As [`ClientSession::bytes`].
    pub fn poll(&mut self) -> Result<Option<Event>, ClientError> {
        let Some(message) = self.assembler.take() else { return Ok(None) };
        let step = if matches!(self.state, State::Moving(_)) { "results" } else { "request" };
        // The type word of an answer says nothing: netserver reverses it in results.
        if message.second() != 0 {
            return Err(ClientError::Remote { code: message.second(), step });
        }
        match self.state {
            State::Idle => Err(ClientError::Unasked),
            State::AwaitCalibration => {
                self.state = State::Idle;
                Ok(Some(Event::Calibrated(message.f32(8), message.i32(12))))
            }
            State::AwaitReady(layout) => {
                self.state = State::Moving(layout);
                self.deadline_ns = u64::MAX;
                Ok(Some(Event::Ready(Response::decode(layout, &message))))
            }
            State::Moving(layout) => {
                self.state = State::Idle;
                self.deadline_ns = u64::MAX;
                Ok(Some(Event::Done(Results::decode(layout, &message))))
            }
        }
    }

    /// The server closed.
    pub fn closed(&self) -> ClientError {
        let partial = self.assembler.pending_bytes();
        let hint = match partial {
            0 if matches!(self.state, State::AwaitReady(_)) => " (a passphrase, -Z, may be missing or wrong)",
            super::wire::OLD_MESSAGE_BYTES => " (a netserver 2.5.0 or older, which is not offered)",
            _ => "",
        };
        ClientError::Closed { when: self.when(), partial, hint }
    }

    /// When [`ClientSession::timeout`] must be called.
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Whether time is up.
    ///
    /// # Errors
    /// It is.
    pub fn timeout(&self, now_ns: u64) -> Result<(), ClientError> {
        if now_ns < self.deadline_ns {
            return Ok(());
        }
        Err(ClientError::Silent {
            when: self.when(),
            seconds: self.limit_ns / 1_000_000_000,
            partial: self.assembler.pending_bytes(),
        })
    }

    fn when(&self) -> &'static str {
        match self.state {
            State::Idle => "between tests",
            State::AwaitReady(_) => "to a request",
            State::Moving(_) => "instead of results",
            State::AwaitCalibration => "to a calibration",
        }
    }
}

impl Default for ClientSession {
    fn default() -> Self {
        Self::new()
    }
}
