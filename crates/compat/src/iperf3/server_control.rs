//! The server's side of the control connection, from behind the cookie on: bytes and time in, actions out.

use super::error::{ProtocolError, TestError};
use super::params::{Params, Refusal};
use super::results::Results;
use super::wire::{ErrorCode, Inbox, PARAMS_LIMIT, RESULTS_LIMIT, State, framed};

const SECOND_NS: u64 = 1_000_000_000;

/// How long a client may take for its parameters or its results, nanoseconds.
pub const ANSWER_NS: u64 = 10 * SECOND_NS;
/// How long a client may take to open all its streams, nanoseconds.
pub const STREAMS_NS: u64 = 120 * SECOND_NS;
/// How much longer than its duration a test may run, nanoseconds.
pub const GRACE_NS: u64 = 40 * SECOND_NS;

/// What the driver has to do, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// The client asks for this test: answer with [`ServerControl::accept`], or refuse.
    Asked(Box<Params>),
    /// The client's parameters cannot be: tell it and close.
    Refuse(Refusal),
    /// The client ended the test: stop, take final counts; [`ServerControl::ended`] then gives the bytes to send.
    End,
    /// These are the client's results: answer with [`ServerControl::results`].
    ClientResults(Results),
    /// The client has what it wants: close.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Params,
    Asked,
    Streams,
    Running,
    Ending,
    ClientResults,
    OwnResults,
    Display,
    Done,
}

impl Phase {
    fn text(self) -> &'static str {
        match self {
            Self::Params => "waiting for parameters",
            Self::Asked => "looking at parameters",
            Self::Streams => "waiting for streams",
            Self::Running => "running",
            Self::Ending => "taking final counts",
            Self::ClientResults => "waiting for results",
            Self::OwnResults => "sending results",
            Self::Display => "waiting for the end of the exchange",
            Self::Done => "done",
        }
    }
}

/// One test, as the server goes through it.
#[derive(Debug)]
pub struct ServerControl {
    phase: Phase,
    inbox: Inbox,
    deadline_ns: Option<u64>,
    limit_ns: u64,
}

impl ServerControl {
    /// Begins behind the cookie; the bytes are to be sent.
    pub fn new(now_ns: u64) -> (Self, Vec<u8>) {
        let control = Self {
            phase: Phase::Params,
            inbox: Inbox::default(),
            deadline_ns: Some(now_ns + ANSWER_NS),
            limit_ns: ANSWER_NS,
        };
        (control, vec![State::ParamExchange.byte()])
    }

    /// Takes what came on the control connection.
    ///
    /// # Errors
    /// The client ended the test early or broke the protocol.
    pub fn received(&mut self, bytes: &[u8], now_ns: u64) -> Result<Vec<ServerAction>, TestError> {
        self.inbox.push(bytes);
        let mut actions = Vec::new();
        while let Some(action) = self.step(now_ns)? {
            actions.push(action);
        }
        Ok(actions)
    }

    /// Takes the parameters; streams are ready to be accepted. The bytes are to be sent.
    pub fn accept(&mut self, now_ns: u64) -> Vec<u8> {
        self.enter(Phase::Streams, Some(STREAMS_NS), now_ns);
        vec![State::CreateStreams.byte()]
    }

    /// All streams are there: the bytes that start the test.
    pub fn start(&mut self, params: &Params, now_ns: u64) -> Vec<u8> {
        let duration_ns = u64::from(params.time_s + params.omit_s) * SECOND_NS;
        self.enter(Phase::Running, (params.time_s > 0).then_some(duration_ns + GRACE_NS), now_ns);
        vec![State::TestStart.byte(), State::TestRunning.byte()]
    }

    /// Final counts are taken: the bytes to send.
    pub fn ended(&mut self, now_ns: u64) -> Vec<u8> {
        self.enter(Phase::ClientResults, Some(ANSWER_NS), now_ns);
        vec![State::ExchangeResults.byte()]
    }

    /// The results of this side: the bytes to send.
    pub fn results(&mut self, results: &Results, now_ns: u64) -> Vec<u8> {
        self.enter(Phase::Display, Some(ANSWER_NS), now_ns);
        let mut bytes = framed(&results.encode());
        bytes.push(State::DisplayResults.byte());
        bytes
    }

    /// When the client is late, on the clock of `now_ns`.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// The error of a client that is late at `now_ns`.
    pub fn late(&self, now_ns: u64) -> Option<TestError> {
        self.deadline_ns.filter(|&d| now_ns >= d)?;
        let (code, what) = match self.phase {
            Phase::Params | Phase::Asked => (ErrorCode::PARAMS, "no parameters"),
            Phase::Streams => (ErrorCode::NO_DATA, "streams missing"),
            Phase::Running | Phase::Ending => (ErrorCode::TIME_LIMIT, "no end of the test"),
            _ => (ErrorCode::RESULTS, "no results"),
        };
        let seconds = self.limit_ns / SECOND_NS;
        Some(TestError::Refused { code, reason: format!("{what} within {seconds} s") })
    }

    /// The client closed the control connection.
    ///
    /// # Errors
    /// The test was not done. A client that has the server's results may leave.
    pub fn closed(&self) -> Result<(), TestError> {
        match self.phase {
            Phase::Display | Phase::Done => Ok(()),
            _ => Err(TestError::ControlClosed),
        }
    }

    /// One message; none when more bytes are needed first.
    fn step(&mut self, now_ns: u64) -> Result<Option<ServerAction>, TestError> {
        match self.phase {
            Phase::Done => Ok(None),
            Phase::Params => {
                let body = match self.inbox.frame(PARAMS_LIMIT) {
                    Ok(None) => return Ok(None),
                    Ok(Some(body)) => body,
                    Err(e) => {
                        self.enter(Phase::Done, None, now_ns);
                        return Ok(Some(ServerAction::Refuse(e.into())));
                    }
                };
                self.enter(Phase::Asked, None, now_ns);
                Ok(Some(match Params::decode(&body) {
                    Ok(params) => ServerAction::Asked(Box::new(params)),
                    Err(refusal) => ServerAction::Refuse(refusal),
                }))
            }
            Phase::ClientResults => {
                let Some(body) = self.inbox.frame(RESULTS_LIMIT).map_err(results_error)? else {
                    return Ok(None);
                };
                let results = Results::decode(&body).map_err(results_error)?;
                self.enter(Phase::OwnResults, None, now_ns);
                Ok(Some(ServerAction::ClientResults(results)))
            }
            phase => {
                let Some(byte) = self.inbox.byte() else { return Ok(None) };
                self.state_byte(phase, byte, now_ns).map(Some)
            }
        }
    }

    fn state_byte(&mut self, phase: Phase, byte: u8, now_ns: u64) -> Result<ServerAction, TestError> {
        match (phase, State::from_byte(byte)?) {
            (_, State::ClientTerminate) => Err(TestError::ClientTerminated),
            (Phase::Running, State::TestEnd) => {
                self.enter(Phase::Ending, None, now_ns);
                Ok(ServerAction::End)
            }
            (Phase::Display, State::Done) => {
                self.enter(Phase::Done, None, now_ns);
                Ok(ServerAction::Finished)
            }
            _ => Err(ProtocolError::Unexpected { byte, phase: phase.text() }.into()),
        }
    }

    fn enter(&mut self, phase: Phase, limit_ns: Option<u64>, now_ns: u64) {
        self.phase = phase;
        self.limit_ns = limit_ns.unwrap_or(0);
        self.deadline_ns = limit_ns.map(|l| now_ns + l);
    }
}

fn results_error(error: ProtocolError) -> TestError {
    TestError::Refused { code: ErrorCode::RESULTS, reason: error.to_string() }
}

/// Feeds any bytes to each decoder of this protocol and to both state machines; must not panic (for fuzzing).
pub fn fuzz_decode(bytes: &[u8]) {
    use super::client_control::ClientControl;
    use super::udp::{Arrivals, Header};
    let _params = Params::decode(bytes);
    let _results = Results::decode(bytes);
    let mut arrivals = Arrivals::default();
    for datagram in bytes.chunks(16) {
        if let Some(header) = Header::read(datagram, datagram.len() == 16) {
            arrivals.note(header, 1);
        }
    }
    let (mut server, _greeting) = ServerControl::new(0);
    let (mut client, _cookie) = ClientControl::new(&[b'a'; 37], &Params::default());
    for piece in bytes.chunks(7) {
        for action in server.received(piece, 0).unwrap_or_default() {
            match action {
                ServerAction::Asked(params) => {
                    server.accept(0);
                    server.start(&params, 0);
                }
                ServerAction::End => drop(server.ended(0)),
                ServerAction::ClientResults(results) => drop(server.results(&results, 0)),
                ServerAction::Refuse(_) | ServerAction::Finished => {}
            }
        }
        let _either = client.received(piece);
        client.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::client_control::{ClientAction, ClientControl};
    use crate::iperf3::wire::new_cookie;
    use proptest::prelude::*;

    fn asked() -> ServerControl {
        let (mut server, greeting) = ServerControl::new(0);
        assert_eq!(greeting, [9]);
        let actions = server.received(&framed(&Params::default().encode()), 1).unwrap();
        assert!(matches!(&actions[..], [ServerAction::Asked(_)]));
        server
    }

    /// Passes bytes both ways, in pieces of `size`, until the client is done.
    fn run_pair(size: usize) -> (Results, Results) {
        let params = Params { time_s: 2, ..Params::default() };
        let (mut client, cookie) = ClientControl::new(&new_cookie().unwrap(), &params);
        assert_eq!(cookie.len(), 37);
        let (mut server, mut to_client) = ServerControl::new(0);
        let mut to_server = Vec::new();
        let (mut at_client, mut at_server) = (None, None);
        for _round in 0..10_000 {
            let piece: Vec<u8> = to_client.drain(..size.min(to_client.len())).collect();
            for action in client.received(&piece).unwrap() {
                match action {
                    ClientAction::Send(bytes) => to_server.extend(bytes),
                    ClientAction::Run => to_server.extend(client.end().unwrap()),
                    ClientAction::GiveResults => to_server.extend(client.results(&Results::default())),
                    ClientAction::ServerResults(results) => at_client = Some(results),
                    ClientAction::OpenStreams | ClientAction::Start | ClientAction::Finished => {}
                }
            }
            let piece: Vec<u8> = to_server.drain(..size.min(to_server.len())).collect();
            for action in server.received(&piece, 5).unwrap() {
                match action {
                    ServerAction::Asked(params) => {
                        to_client.extend(server.accept(5));
                        to_client.extend(server.start(&params, 5));
                    }
                    ServerAction::End => to_client.extend(server.ended(5)),
                    ServerAction::ClientResults(results) => {
                        to_client.extend(server.results(&results, 5));
                        at_server = Some(results);
                    }
                    ServerAction::Finished => return (at_client.unwrap(), at_server.unwrap()),
                    ServerAction::Refuse(refusal) => panic!("{refusal}"),
                }
            }
        }
        panic!("no end");
    }

    #[test]
    fn client_and_server_go_through_a_test_however_bytes_are_split() {
        for size in [1, 2, 3, 7, 100_000] {
            assert_eq!(run_pair(size), (Results::default(), Results::default()));
        }
    }

    #[test]
    fn each_phase_has_its_limit_and_code() {
        let code = |server: &ServerControl, now| server.late(now).map(|e| e.code().0);
        let (server, _) = ServerControl::new(5);
        assert_eq!(code(&server, 5 + ANSWER_NS - 1), None);
        assert_eq!(code(&server, 5 + ANSWER_NS), Some(114));
        let mut server = asked();
        assert_eq!(code(&server, u64::MAX), None);
        server.accept(0);
        assert_eq!(code(&server, STREAMS_NS), Some(144));
        server.start(&Params { time_s: 1, omit_s: 2, ..Params::default() }, 0);
        assert_eq!(code(&server, 43 * SECOND_NS), Some(160));
        assert_eq!(code(&server, 43 * SECOND_NS - 1), None);
        server.received(&[4], 0).unwrap();
        server.ended(0);
        assert_eq!(code(&server, ANSWER_NS), Some(117));
        let mut endless = asked();
        endless.start(&Params { time_s: 0, ..Params::default() }, 0);
        assert_eq!(endless.deadline_ns(), None);
    }

    #[test]
    fn bad_clients_are_refused() {
        let (mut long, _) = ServerControl::new(0);
        let actions = long.received(&8193_u32.to_be_bytes(), 0).unwrap();
        assert!(matches!(&actions[..], [ServerAction::Refuse(r)] if r.code == ErrorCode::PARAMS));
        let mut server = asked();
        server.accept(0);
        assert!(matches!(server.received(&[12], 0), Err(TestError::ClientTerminated)));
        let mut server = asked();
        server.accept(0);
        let error = server.received(&[0x55], 0).unwrap_err();
        assert_eq!(error.code(), ErrorCode::UNKNOWN_STATE);
        assert!(matches!(asked().closed(), Err(TestError::ControlClosed)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            fuzz_decode(&bytes);
        }

        #[test]
        fn any_bytes_behind_a_fair_start_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut server = asked();
            server.accept(0);
            server.start(&Params::default(), 0);
            server.received(&[4], 0).unwrap();
            server.ended(0);
            let mut start = 20_u32.to_be_bytes().to_vec();
            start.extend(&bytes);
            let _either = server.received(&start, 0);
        }
    }
}
