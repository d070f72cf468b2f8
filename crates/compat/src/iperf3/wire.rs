//! What goes over the control connection: state bytes, cookies, error codes, and messages cut out of the byte stream.

use super::error::ProtocolError;

/// Port of the control connection and of every stream.
pub const PORT: u16 = 5201;

/// Bytes that a client sends first on the control connection and on each TCP data connection: 36 printable ones and a 0.
pub const COOKIE_LEN: usize = 37;

/// Longest parameter message that a server takes, bytes (as iperf3 from 3.18 on).
pub const PARAMS_LIMIT: usize = 8192;

/// Longest results message that is taken, bytes; they may carry the far side's whole output.
pub const RESULTS_LIMIT: usize = 64 << 20;

/// Names one test; opaque.
pub type Cookie = [u8; COOKIE_LEN];

/// A fresh cookie: 36 characters of `a` to `z` and `2` to `7`, and a 0.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn new_cookie() -> Result<Cookie, getrandom::Error> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_LEN];
    getrandom::fill(&mut cookie)?;
    for byte in &mut cookie {
        *byte = ALPHABET[usize::from(*byte) % ALPHABET.len()];
    }
    cookie[COOKIE_LEN - 1] = 0;
    Ok(cookie)
}

/// The cookie as it is shown: up to its 0.
pub fn cookie_text(cookie: &Cookie) -> String {
    let text = cookie.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// One byte on the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// Server: streams are complete.
    TestStart = 1,
    /// Server: data may flow.
    TestRunning = 2,
    /// Client: the test is over.
    TestEnd = 4,
    /// Server: send me the parameters.
    ParamExchange = 9,
    /// Server: open the streams.
    CreateStreams = 10,
    /// Server: it was told to stop.
    ServerTerminate = 11,
    /// Client: it was told to stop.
    ClientTerminate = 12,
    /// Server: send me your results.
    ExchangeResults = 13,
    /// Server: you have my results.
    DisplayResults = 14,
    /// Client: done.
    Done = 16,
    /// Server: busy, or this cookie belongs to no test.
    AccessDenied = -1,
    /// Server: failed; two numbers follow.
    ServerError = -2,
}

impl State {
    /// The byte.
    pub fn byte(self) -> u8 {
        self as i8 as u8
    }

    /// The state of a byte.
    ///
    /// # Errors
    /// The byte means nothing.
    pub fn from_byte(byte: u8) -> Result<Self, ProtocolError> {
        const ALL: [State; 12] = [
            State::TestStart,
            State::TestRunning,
            State::TestEnd,
            State::ParamExchange,
            State::CreateStreams,
            State::ServerTerminate,
            State::ClientTerminate,
            State::ExchangeResults,
            State::DisplayResults,
            State::Done,
            State::AccessDenied,
            State::ServerError,
        ];
        ALL.into_iter().find(|s| s.byte() == byte).ok_or(ProtocolError::UnknownState(byte))
    }
}

/// Why a server ends a test: the first number behind [`State::ServerError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// Duration out of range.
    pub const DURATION: Self = Self(5);
    /// Number of streams out of range.
    pub const STREAMS: Self = Self(6);
    /// TCP block size out of range.
    pub const BLOCK_SIZE: Self = Self(7);
    /// Socket buffer out of range.
    pub const BUFFER_SIZE: Self = Self(8);
    /// Segment size out of range.
    pub const MSS: Self = Self(10);
    /// Omitted time out of range.
    pub const OMIT: Self = Self(12);
    /// Burst out of range.
    pub const BURST: Self = Self(15);
    /// UDP block size out of range.
    pub const UDP_BLOCK_SIZE: Self = Self(20);
    /// Type of service out of range.
    pub const TOS: Self = Self(21);
    /// More than the server's bit-rate limit.
    pub const RATE_LIMIT: Self = Self(27);
    /// Longer than the server's limit.
    pub const MAX_DURATION: Self = Self(37);
    /// A state byte that means nothing.
    pub const UNKNOWN_STATE: Self = Self(110);
    /// No parameters, or none that can be read.
    pub const PARAMS: Self = Self(114);
    /// No results, or none that can be read.
    pub const RESULTS: Self = Self(117);
    /// A socket buffer was not granted.
    pub const BUFFER_REFUSED: Self = Self(141);
    /// Not authenticated.
    pub const AUTHENTICATION: Self = Self(142);
    /// No data came.
    pub const NO_DATA: Self = Self(144);
    /// Longer than the test may take.
    pub const TIME_LIMIT: Self = Self(160);
    /// A stream could not be made.
    pub const STREAM: Self = Self(202);
    /// Writing to a stream failed.
    pub const STREAM_WRITE: Self = Self(205);
    /// Reading from a stream failed.
    pub const STREAM_READ: Self = Self(206);

    /// What it means.
    pub fn text(self) -> &'static str {
        match self.0 {
            5 => "test duration out of range",
            6 => "number of parallel streams out of range",
            7 => "block size out of range",
            8 => "socket buffer size out of range",
            10 => "TCP MSS out of range",
            12 => "omitted seconds out of range",
            15 => "burst out of range",
            20 => "UDP block size out of range",
            21 => "type of service out of range",
            27 => "bit rate above the server's limit",
            34 => "UDP cannot send a file",
            37 => "duration above the server's limit",
            106 => "no cookie came",
            110 => "a control message that means nothing",
            114 => "parameters missing or unreadable",
            117 => "results missing or unreadable",
            119 => "the client ended the test",
            124 | 141 => "socket buffer size not granted",
            142 => "authentication failed",
            144 => "no data received",
            160 => "test ran beyond the server's time limit",
            202 => "a stream could not be opened",
            205 => "writing to a stream failed",
            206 => "reading from a stream failed",
            208 => "results of a stream that does not exist",
            _ => "unknown error code",
        }
    }

    /// The bytes of the whole error message, with the system's error number (0 for none).
    pub fn message(self, errno: i32) -> Vec<u8> {
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&self.0.to_be_bytes());
        bytes.extend_from_slice(&errno.to_be_bytes());
        bytes
    }
}

/// Bytes that came and were not used yet. Messages are cut out by exact length: they coalesce and split freely.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    /// Adds what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte, left where it is.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.exact::<1>().map(|[byte]| byte)
    }

    /// Takes `N` bytes once they are there.
    pub fn exact<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.0.first_chunk::<N>()?;
        self.0.drain(..N);
        Some(taken)
    }

    /// Takes a message behind its length (u32, big-endian) once it is complete.
    ///
    /// # Errors
    /// Its length is above `limit`.
    pub fn frame(&mut self, limit: usize) -> Result<Option<Vec<u8>>, ProtocolError> {
        let Some(head) = self.0.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > limit {
            return Err(ProtocolError::TooLong { length, limit });
        }
        if self.0.len() < 4 + length {
            return Ok(None);
        }
        let body = self.0[4..4 + length].to_vec();
        self.0.drain(..4 + length);
        Ok(Some(body))
    }
}

/// A message with its length before it.
pub fn framed(json: &serde_json::Value) -> Vec<u8> {
    let text = json.to_string();
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cookie_is_36_characters_and_a_zero() {
        let cookie = new_cookie().unwrap();
        assert_eq!(cookie[36], 0);
        assert!(cookie[..36].iter().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(b)));
        assert_ne!(cookie, new_cookie().unwrap());
    }

    #[test]
    fn state_bytes_are_those_of_the_wire() {
        for byte in [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 0xff, 0xfe] {
            assert_eq!(State::from_byte(byte).unwrap().byte(), byte);
        }
        for byte in [0, 3, 5, 6, 7, 8, 15, 17, 0x80, 0xfd] {
            assert!(State::from_byte(byte).is_err());
        }
    }

    #[test]
    fn an_error_message_is_nine_bytes() {
        assert_eq!(ErrorCode(205).message(0), [0xfe, 0, 0, 0, 0xcd, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn frames_survive_any_split(body in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..310) {
            let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
            bytes.extend_from_slice(&body);
            bytes.push(14);
            let mut inbox = Inbox::default();
            let cut = cut.min(bytes.len());
            inbox.push(&bytes[..cut]);
            let early = inbox.frame(300).unwrap();
            inbox.push(&bytes[cut..]);
            let body_back = match early { Some(b) => b, None => inbox.frame(300).unwrap().unwrap() };
            prop_assert_eq!(body_back, body);
            prop_assert_eq!(inbox.byte(), Some(14));
            prop_assert!(inbox.is_empty());
        }

        #[test]
        fn a_long_frame_is_refused_by_its_length(length in 301u32..) {
            let mut inbox = Inbox::default();
            inbox.push(&length.to_be_bytes());
            prop_assert!(inbox.frame(300).is_err());
        }
    }
}
