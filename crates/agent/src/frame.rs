//! Framing: each message is a 4-byte big-endian length and that many bytes of JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message taken before the other end has proved itself, bytes.
pub const MAX_GREETING_BYTES: u32 = 4096;
/// Longest request taken of a stranger, bytes: room for what 1024 streams have sent.
pub const MAX_REQUEST_BYTES: u32 = 256 << 10;
/// Longest message taken at all, bytes: room for the readings of 1024 streams, and for thousands of frames both ways.
pub const MAX_MESSAGE_BYTES: u32 = 64 << 20;

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended between two messages.
    #[error("connection closed")]
    Closed,
    /// The stream failed, or ended within a message.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The other end announced a message over the limit.
    #[error("message of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Announced length, bytes.
        length: u32,
        /// The limit, bytes.
        limit: u32,
    },
    /// The message is not what the protocol has.
    #[error("not a linerate message: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Writes one message and flushes.
///
/// # Errors
/// Where the stream fails, or the message is over [`MAX_MESSAGE_BYTES`].
pub fn write_message<M: Serialize>(stream: &mut impl Write, message: &M) -> Result<(), FrameError> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if length > MAX_MESSAGE_BYTES {
        return Err(FrameError::TooLong { length, limit: MAX_MESSAGE_BYTES });
    }
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)?;
    stream.flush()?;
    Ok(())
}

/// Reads one message of at most `limit` bytes. Memory grows with what arrives, not with what is announced.
///
/// # Errors
/// [`FrameError::Closed`] where the stream ends before a message; else what is wrong with it.
pub fn read_message<M: DeserializeOwned>(stream: &mut impl Read, limit: u32) -> Result<M, FrameError> {
    let mut header = [0; 4];
    read_header(stream, &mut header)?;
    let length = u32::from_be_bytes(header);
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    let mut body = Vec::new();
    let got = stream.take(u64::from(length)).read_to_end(&mut body)?;
    if got < length as usize {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_slice(&body)?)
}

fn read_header(stream: &mut impl Read, header: &mut [u8; 4]) -> Result<(), FrameError> {
    let mut filled = 0;
    while filled < header.len() {
        match stream.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Gives one byte a call, as a slow network may.
    struct Dribble<'a>(&'a [u8]);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn framed(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &text).unwrap();
        bytes
    }

    #[test]
    fn messages_survive_any_split() {
        let bytes = [framed("one"), framed("two")].concat();
        let mut stream = Dribble(&bytes);
        assert_eq!(read_message::<String>(&mut stream, 100).unwrap(), "one");
        assert_eq!(read_message::<String>(&mut stream, 100).unwrap(), "two");
        assert!(matches!(read_message::<String>(&mut stream, 100), Err(FrameError::Closed)));
    }

    #[test]
    fn truncation_anywhere_is_an_error_not_a_hang() {
        let bytes = framed("hello");
        for cut in 1..bytes.len() {
            assert!(matches!(
                read_message::<String>(&mut Cursor::new(&bytes[..cut]), 100),
                Err(FrameError::Io(_))
            ));
        }
    }

    #[test]
    fn announced_lengths_are_capped() {
        let huge = [0xff, 0xff, 0xff, 0xff, b'x'];
        let error = read_message::<String>(&mut Cursor::new(huge), 4096).unwrap_err();
        assert!(matches!(error, FrameError::TooLong { length: u32::MAX, limit: 4096 }));
    }

    #[test]
    fn garbage_is_malformed() {
        let garbage = [0, 0, 0, 2, 0xfe, 0xff];
        assert!(matches!(
            read_message::<String>(&mut Cursor::new(garbage), 100),
            Err(FrameError::Malformed(_))
        ));
    }
}
