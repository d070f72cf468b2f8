//! XDP programs that a qualification attaches to a link.

use serde::{Deserialize, Serialize};

/// A program to attach. It counts each frame, moves head and tail as told, and then decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpSpec {
    /// The link.
    pub link: String,
    /// In the driver, or in the stack.
    pub mode: XdpMode,
    /// What becomes of each frame.
    pub action: XdpAction,
    /// Bytes taken off the front; negative ones are added.
    pub head_bytes: i32,
    /// Bytes added at the end, zeros; negative ones are taken off.
    pub tail_bytes: i32,
    /// Takes frames of several buffers (`BPF_F_XDP_HAS_FRAGS`).
    pub frags: bool,
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver (`XDP_FLAGS_DRV_MODE`).
    Native,
    /// In the stack, with any driver (`XDP_FLAGS_SKB_MODE`).
    Generic,
}

/// What becomes of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpAction {
    /// `XDP_PASS`: on to the stack.
    Pass,
    /// `XDP_DROP`: gone.
    Drop,
    /// `XDP_ABORTED`: gone, with a tracepoint.
    Aborted,
    /// `XDP_TX`: back where it came from, addresses swapped.
    Transmit,
    /// `XDP_REDIRECT`: out by another link of the namespace.
    Redirect(String),
}

/// What a program saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct XdpCount {
    /// Frames.
    pub frames: u64,
    /// Bytes of their first buffers, before head and tail are moved.
    pub bytes: u64,
}
