//! The control connection's messages: 656 bytes each way, words big-endian, without any other framing.

use std::fmt;

/// Bytes of every message since netperf 2.6.0.
pub const MESSAGE_BYTES: usize = 656;

/// Bytes of every message up to netperf 2.5.0.
pub const OLD_MESSAGE_BYTES: usize = 256;

/// Switches debugging on; answered with [`DEBUG_OK`].
pub const DEBUG_ON: i32 = 1;
/// Switches debugging off; answered with [`DEBUG_OK`].
pub const DEBUG_OFF: i32 = 2;
/// Answer to the two.
pub const DEBUG_OK: i32 = 3;
/// Asks for the rate and number of CPUs.
pub const CPU_CALIBRATE: i32 = 5;
/// Carries the passphrase; never answered.
pub const PASSPHRASE: i32 = 6;
/// Asks for system names.
pub const SYSINFO: i32 = 600;
/// Answer to [`SYSINFO`].
pub const SYSINFO_RESPONSE: i32 = 601;
/// Error of a request of unknown type.
pub const UNKNOWN_REQUEST: i32 = 998;

/// One message. Offsets are from its first byte; all accesses are within 656 bytes by their constants.
#[derive(Clone, PartialEq, Eq)]
pub struct Message(Box<[u8; MESSAGE_BYTES]>);

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message {{ kind: {}, second: {} }}", self.kind(), self.second())
    }
}

impl Message {
    /// A message of `kind`, with the header's second word (CPU to bind to, or error); the rest is zero.
    pub fn new(kind: i32, second: i32) -> Self {
        let mut message = Self(Box::new([0; MESSAGE_BYTES]));
        message.put_i32(0, kind);
        message.put_i32(4, second);
        message
    }

    /// From its bytes.
    pub fn from_bytes(bytes: [u8; MESSAGE_BYTES]) -> Self {
        Self(Box::new(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; MESSAGE_BYTES] {
        &self.0
    }

    /// Type word.
    pub fn kind(&self) -> i32 {
        self.i32(0)
    }

    /// Second word: the CPU that the server is to bind to, or the server's error.
    pub fn second(&self) -> i32 {
        self.i32(4)
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        let word = self.0.get(at..at + 4).and_then(|b| b.try_into().ok()).unwrap_or_default();
        u32::from_be_bytes(word)
    }

    pub(crate) fn i32(&self, at: usize) -> i32 {
        self.u32(at) as i32
    }

    pub(crate) fn f32(&self, at: usize) -> f32 {
        f32::from_bits(self.u32(at))
    }

    /// High word first.
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) << 32 | u64::from(self.u32(at + 4))
    }

    pub(crate) fn f64(&self, at: usize) -> f64 {
        f64::from_bits(self.u64(at))
    }

    /// Text up to its first NUL, or all of the field; what is no UTF-8 is replaced.
    pub(crate) fn text(&self, at: usize, length: usize) -> String {
        let field = self.0.get(at..at + length).unwrap_or_default();
        let text = field.split(|&b| b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        if let Some(field) = self.0.get_mut(at..at + 4) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }

    pub(crate) fn put_i32(&mut self, at: usize, value: i32) {
        self.put_u32(at, value as u32);
    }

    pub(crate) fn put_f32(&mut self, at: usize, value: f32) {
        self.put_u32(at, value.to_bits());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.put_u32(at, (value >> 32) as u32);
        self.put_u32(at + 4, value as u32);
    }

    pub(crate) fn put_f64(&mut self, at: usize, value: f64) {
        self.put_u64(at, value.to_bits());
    }

    /// Text cut to leave its closing NUL.
    pub(crate) fn put_text(&mut self, at: usize, length: usize, text: &str) {
        let kept = text.len().min(length.saturating_sub(1));
        if let Some(field) = self.0.get_mut(at..at + kept) {
            field.copy_from_slice(&text.as_bytes()[..kept]);
        }
    }

    /// Reverses the bytes of the type word, as netserver does in its results (it swaps the word twice). No client looks.
    pub(crate) fn reverse_kind(&mut self) {
        self.0[..4].reverse();
    }

    /// The message with a passphrase.
    pub fn passphrase(phrase: &str) -> Self {
        let mut message = Self::new(PASSPHRASE, 0);
        message.put_text(8, MESSAGE_BYTES - 8, phrase);
        message
    }
}

/// Puts messages together from bytes as they come.
#[derive(Debug, Default)]
pub struct Assembler {
    pending: Vec<u8>,
}

impl Assembler {
    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole message.
    pub fn take(&mut self) -> Option<Message> {
        let bytes: [u8; MESSAGE_BYTES] = self.pending.get(..MESSAGE_BYTES)?.try_into().ok()?;
        self.pending.drain(..MESSAGE_BYTES);
        Some(Message::from_bytes(bytes))
    }

    /// Bytes of a message that is not whole yet, or of messages not taken yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }
}

/// Feeds any bytes to every decoder of this protocol, for fuzzing: none may panic.
pub fn fuzz_decode(bytes: &[u8]) {
    let mut assembler = Assembler::default();
    for part in bytes.chunks(97) {
        assembler.push(part);
        while let Some(message) = assembler.take() {
            let request = super::request::Request::decode(&message);
            for layout in super::request::Layout::ALL {
                let _response = super::reply::Response::decode(layout, &message);
                let _results = super::reply::Results::decode(layout, &message);
            }
            if let Ok(request) = request {
                let _round = super::request::Request::decode(&request.encode());
            }
        }
    }
    let mut session = super::server::ServerSession::new(None, 0);
    session.bytes(bytes, 1);
    while session.poll().is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_big_endian() {
        let mut message = Message::new(97, -1);
        message.put_f32(8, 1.0);
        message.put_u64(12, 1 << 32 | 2);
        message.put_text(20, 4, "bbrx");
        assert_eq!(message.bytes()[..24], *b"\0\0\0a\xff\xff\xff\xff\x3f\x80\0\0\0\0\0\x01\0\0\0\x02bbr\0");
        assert_eq!((message.kind(), message.second()), (97, -1));
        assert_eq!(
            (message.f32(8), message.u64(12), message.text(20, 16)),
            (1.0, (1 << 32) + 2, "bbr".into())
        );
    }

    proptest! {
        #[test]
        fn messages_come_whole_however_they_are_split(count in 1usize..5, cut in 1usize..2000) {
            let mut stream = Vec::new();
            for kind in 0..count {
                stream.extend_from_slice(Message::new(kind as i32, 7).bytes());
            }
            let mut assembler = Assembler::default();
            let mut kinds = Vec::new();
            for part in stream.chunks(cut) {
                assembler.push(part);
                while let Some(message) = assembler.take() {
                    kinds.push(message.kind());
                }
            }
            prop_assert_eq!(kinds, (0..count as i32).collect::<Vec<_>>());
            prop_assert_eq!(assembler.pending_bytes(), 0);
        }

        #[test]
        fn no_bytes_upset_a_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            fuzz_decode(&bytes);
        }

        #[test]
        fn no_fields_upset_a_decoder(kind in prop::sample::select(vec![97i32, 10, 13, 16, 19, 34, 94, 300, 5, 6, 600]), bytes in proptest::collection::vec(any::<u8>(), 652)) {
            let mut message = kind.to_be_bytes().to_vec();
            message.extend_from_slice(&bytes);
            fuzz_decode(&message);
        }
    }
}
