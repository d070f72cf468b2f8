//! The client's side of the control connection: bytes in, actions out; no I/O and no clock.

use super::error::{ProtocolError, TestError};
use super::params::Params;
use super::results::Results;
use super::wire::{Cookie, ErrorCode, Inbox, RESULTS_LIMIT, State, framed};

/// What the driver has to do, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Open the streams.
    OpenStreams,
    /// The test begins: start clocks.
    Start,
    /// Data may flow: start senders.
    Run,
    /// Hand the results of this side to [`ClientControl::results`].
    GiveResults,
    /// These are the server's results.
    ServerResults(Results),
    /// All is exchanged: close streams and show results.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Accepting,
    Streams,
    Starting,
    Running,
    Ended,
    OwnResults,
    ServerResults,
    Display,
    Done,
    Error,
}

impl Phase {
    fn text(self) -> &'static str {
        match self {
            Self::Greeting => "waiting to be asked for parameters",
            Self::Accepting => "waiting for parameters to be accepted",
            Self::Streams => "opening streams",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ended => "waiting to be asked for results",
            Self::OwnResults => "sending results",
            Self::ServerResults => "waiting for results",
            Self::Display => "waiting for the end of the exchange",
            Self::Done => "done",
            Self::Error => "reading an error",
        }
    }
}

/// One test, as the client goes through it.
#[derive(Debug)]
pub struct ClientControl {
    phase: Phase,
    inbox: Inbox,
    params: Vec<u8>,
}

impl ClientControl {
    /// Begins a test; the bytes are the first to send.
    pub fn new(cookie: &Cookie, params: &Params) -> (Self, Vec<u8>) {
        let params = framed(&params.encode());
        (Self { phase: Phase::Greeting, inbox: Inbox::default(), params }, cookie.to_vec())
    }

    /// Takes what came on the control connection.
    ///
    /// # Errors
    /// The server refused, failed, or broke the protocol. Nothing more is to be done then but to close.
    pub fn received(&mut self, bytes: &[u8]) -> Result<Vec<ClientAction>, TestError> {
        self.inbox.push(bytes);
        let mut actions = Vec::new();
        while let Some(action) = self.step()? {
            actions.extend(action);
        }
        Ok(actions)
    }

    /// The server closed the control connection.
    ///
    /// # Errors
    /// The test was not done.
    pub fn closed(&mut self) -> Result<(), TestError> {
        match self.phase {
            Phase::Done => Ok(()),
            // 3.12 sends only the first of the two numbers when authentication fails.
            Phase::Error => match self.inbox.exact::<4>() {
                Some(code) => Err(TestError::Server { code: ErrorCode(i32::from_be_bytes(code)), errno: 0 }),
                None => Err(TestError::ControlClosed),
            },
            _ => Err(TestError::ControlClosed),
        }
    }

    /// This side ends the test: the bytes to send. None if it does not run.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        if self.phase != Phase::Running {
            return None;
        }
        self.phase = Phase::Ended;
        Some(vec![State::TestEnd.byte()])
    }

    /// This side was told to stop: the bytes to send.
    pub fn terminate(&mut self) -> Vec<u8> {
        self.phase = Phase::Done;
        vec![State::ClientTerminate.byte()]
    }

    /// The results that [`ClientAction::GiveResults`] asked for: the bytes to send.
    pub fn results(&mut self, results: &Results) -> Vec<u8> {
        self.phase = Phase::ServerResults;
        framed(&results.encode())
    }

    /// One message; none when more bytes are needed first.
    fn step(&mut self) -> Result<Option<Vec<ClientAction>>, TestError> {
        match self.phase {
            // What a server says afterwards means nothing (3.21 sends a spurious error).
            Phase::Done | Phase::OwnResults => return Ok(None),
            Phase::Error => return self.step_error(),
            Phase::ServerResults if self.starts_frame() => {
                let Some(body) = self.inbox.frame(RESULTS_LIMIT)? else { return Ok(None) };
                self.phase = Phase::Display;
                return Ok(Some(vec![ClientAction::ServerResults(Results::decode(&body)?)]));
            }
            _ => {}
        }
        let Some(byte) = self.inbox.byte() else { return Ok(None) };
        let state = State::from_byte(byte)?;
        let (next, actions) = match (self.phase, state) {
            (_, State::AccessDenied) => return Err(TestError::AccessDenied),
            (_, State::ServerTerminate) => return Err(TestError::ServerTerminated),
            (_, State::ServerError) => (Phase::Error, vec![]),
            (Phase::Greeting, State::ParamExchange) => {
                (Phase::Accepting, vec![ClientAction::Send(std::mem::take(&mut self.params))])
            }
            (Phase::Accepting, State::CreateStreams) => (Phase::Streams, vec![ClientAction::OpenStreams]),
            (Phase::Streams, State::TestStart) => (Phase::Starting, vec![ClientAction::Start]),
            (Phase::Starting, State::TestRunning) => (Phase::Running, vec![ClientAction::Run]),
            (Phase::Ended, State::ExchangeResults) => (Phase::OwnResults, vec![ClientAction::GiveResults]),
            (Phase::Display, State::DisplayResults) => {
                let done = vec![State::Done.byte()];
                (Phase::Done, vec![ClientAction::Send(done), ClientAction::Finished])
            }
            (phase, _) => return Err(ProtocolError::Unexpected { byte, phase: phase.text() }.into()),
        };
        self.phase = next;
        Ok(Some(actions))
    }

    /// While results are due, the next byte is a length's first, or one of the bytes that end a test. A length as large
    /// as those would be above the limit.
    fn starts_frame(&self) -> bool {
        !matches!(self.inbox.peek(), None | Some(0xfe | 0xff | 0x0b))
    }

    fn step_error(&mut self) -> Result<Option<Vec<ClientAction>>, TestError> {
        let Some([c0, c1, c2, c3, errno @ ..]) = self.inbox.exact::<8>() else { return Ok(None) };
        let code = ErrorCode(i32::from_be_bytes([c0, c1, c2, c3]));
        Err(TestError::Server { code, errno: i32::from_be_bytes(errno) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::wire::new_cookie;
    use proptest::prelude::*;

    fn client() -> ClientControl {
        ClientControl::new(&new_cookie().unwrap(), &Params::default()).0
    }

    fn running() -> ClientControl {
        let mut client = client();
        let actions = client.received(&[9, 10, 1, 2]).unwrap();
        assert!(matches!(actions[0], ClientAction::Send(_)));
        assert_eq!(actions[1..], [ClientAction::OpenStreams, ClientAction::Start, ClientAction::Run]);
        client
    }

    #[test]
    fn results_and_display_may_come_in_one_segment() {
        let mut client = running();
        assert_eq!(client.end(), Some(vec![4]));
        assert_eq!(client.received(&[13]).unwrap(), [ClientAction::GiveResults]);
        client.results(&Results::default());
        let mut bytes = framed(&Results::default().encode());
        bytes.extend([14, 0xfe, 0, 0, 0, 0xcd, 0, 0, 0, 0]);
        let actions = client.received(&bytes).unwrap();
        let done = ClientAction::Send(vec![16]);
        assert_eq!(actions, [ClientAction::ServerResults(Results::default()), done, ClientAction::Finished]);
        assert!(client.closed().is_ok());
    }

    #[test]
    fn refusals_are_told_apart() {
        assert!(matches!(client().received(&[0xff]), Err(TestError::AccessDenied)));
        assert!(matches!(running().received(&[0x0b]), Err(TestError::ServerTerminated)));
        let refused = client().received(&[9, 0xfe, 0, 0, 0, 6, 0, 0, 0, 0]);
        assert!(matches!(refused, Err(TestError::Server { code: ErrorCode(6), errno: 0 })));
        let mut short = client();
        short.received(&[9, 0xfe, 0, 0, 0, 0x8e]).unwrap();
        assert!(matches!(short.closed(), Err(TestError::Server { code: ErrorCode(142), .. })));
        assert!(matches!(client().closed(), Err(TestError::ControlClosed)));
    }

    #[test]
    fn a_server_error_instead_of_results_is_understood() {
        let mut client = running();
        client.end();
        client.received(&[13]).unwrap();
        client.results(&Results::default());
        let failed = client.received(&[0xfe, 0, 0, 0, 0x75, 0, 0, 0, 0]);
        assert!(matches!(failed, Err(TestError::Server { code: ErrorCode(117), .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..9)) {
            let mut client = client();
            client.received(&[9, 10]).unwrap();
            for piece in pieces {
                if client.received(&piece).is_err() {
                    break;
                }
                client.end();
            }
        }
    }
}
