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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_the_bench_is_read_to_its_end() {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent"));
        let requests = std::fs::read(folder.join("bench")).expect("it is in the repository");
        let mut stream = Cursor::new(requests.as_slice());
        let mut bench = 0;
        loop {
            match read_message::<Request>(&mut stream, MAX_REQUEST_BYTES) {
                Ok(Request::Bench(_)) => bench += 1,
                Ok(_) => {}
                Err(error) => break assert!(matches!(error, FrameError::Closed), "{error}"),
            }
        }
        assert_eq!(bench, 9);
        let replies = std::fs::read(folder.join("bench-replies")).expect("it is in the repository");
        let mut stream = Cursor::new(replies.as_slice());
        let mut bench = 0;
        while let Ok(Reply::Bench(_)) = read_message::<Reply>(&mut stream, MAX_REQUEST_BYTES) {
            bench += 1;
        }
        assert_eq!(bench, 3);
    }
}
