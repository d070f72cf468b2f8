//! For fuzzers: the frames and messages of the agent protocol over any bytes.

use std::io::Cursor;

use crate::frame::{FrameError, MAX_GREETING_BYTES, MAX_REQUEST_BYTES, read_message, write_message};
use crate::protocol::{Reply, Request};

/// Reads any bytes as the requests of a controller and as the replies of an agent: neither may panic, and what was read
/// can be written again.
///
/// # Panics
/// Where a message that was read can't be written.
pub fn fuzz_decode(bytes: &[u8]) {
    let mut stream = Cursor::new(bytes);
    let mut limit = MAX_GREETING_BYTES;
    while let Ok(request) = read_message::<Request>(&mut stream, limit) {
        writable(write_message(&mut Vec::new(), &request));
        limit = MAX_REQUEST_BYTES;
    }
    let mut stream = Cursor::new(bytes);
    while let Ok(reply) = read_message::<Reply>(&mut stream, MAX_REQUEST_BYTES) {
        writable(write_message(&mut Vec::new(), &reply));
    }
}

fn writable(written: Result<(), FrameError>) {
    written.expect("what was read within the limit can be written");
}
