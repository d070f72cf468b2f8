//! The last frames that a station sent and captured, for a packet capture around a failure.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_model::bench::{Bytes, FrameIn};
use linerate_model::trial::Side;

use crate::frame::on_the_wire;

/// Frames that are kept.
const KEPT: usize = 256;
/// Bytes of each that are kept.
const KEPT_BYTES: usize = 2048;

/// A frame near a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Where it was seen.
    pub side: Side,
    /// It was sent there.
    pub sent: bool,
    /// When, nanoseconds since 1970: of the capture, or of the request to send it.
    pub time_ns: u64,
    /// From the destination address on, with its tags; cut where it is very long.
    pub bytes: Bytes,
    /// Its whole length, bytes.
    pub length_bytes: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Ring {
    frames: VecDeque<(bool, u64, Vec<u8>, u32)>,
}

impl Ring {
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.push(true, u64::try_from(now.as_nanos()).unwrap_or_default(), bytes, bytes.len() as u32);
    }

    pub(crate) fn received(&mut self, frame: &FrameIn) {
        let bytes = on_the_wire(frame);
        let length = frame.length_bytes + (bytes.len() - frame.bytes.len()) as u32;
        self.push(false, frame.time_ns, &bytes, length);
    }

    fn push(&mut self, sent: bool, time_ns: u64, bytes: &[u8], length: u32) {
        if self.frames.len() == KEPT {
            self.frames.pop_front();
        }
        self.frames.push_back((sent, time_ns, bytes[..bytes.len().min(KEPT_BYTES)].to_vec(), length));
    }

    /// Takes what is there.
    pub(crate) fn take(&mut self, side: Side) -> Vec<CapturedFrame> {
        let captured = |(sent, time_ns, bytes, length_bytes)| CapturedFrame {
            side,
            sent,
            time_ns,
            bytes: Bytes(bytes),
            length_bytes,
        };
        std::mem::take(&mut self.frames).into_iter().map(captured).collect()
    }
}
