//! Named reasons to distrust a record.

use serde::{Deserialize, Serialize};

use crate::trial::Side;

/// What kind of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HazardKind {
    /// The run was over loopback, since no lab could be built.
    LoopbackInsteadOfLab,
    /// Both nodes share one kernel: the machine's CPU is counted once, for both.
    SharedKernel,
    /// The link is virtual: figures speak of the stack, not of a wire.
    VirtualLink,
    /// The node is a guest whose instructions are translated by software.
    SoftwareEmulation,
    /// A hypervisor took CPU time away.
    StealTime,
    /// Traffic threads waited for a CPU.
    RunQueueWait,
    /// Something else used the CPUs.
    OtherCpuLoad,
    /// The frequency governor changes CPU speed under way.
    Governor,
    /// The receiver's socket dropped datagrams.
    ReceiverSocketDrops,
    /// The link dropped or damaged packets.
    LinkDrops,
    /// The sender did not reach the rate asked for.
    RateNotReached,
    /// The kernel granted a smaller socket buffer than asked for.
    BufferClamped,
    /// The window is too short for the resolution of the CPU clocks.
    ShortWindow,
    /// The two windows may be apart by more than 1 % of their length.
    WindowSkew,
    /// A sample was taken late by more than 1 % of the window.
    SampleLate,
    /// Payload arrived damaged.
    DamagedPayload,
    /// Latencies above 60 s are only counted.
    LatencyOverflow,
    /// The run was ended early.
    Interrupted,
    /// A stream ended early.
    StreamEnded,
    /// Strangers knocked on the data port.
    Strays,
    /// Something that belongs in the record could not be read.
    Unavailable,
    /// The kernel copied bytes that were sent without a copy.
    ZeroCopyCopied,
    /// The stop rule's interval was still too wide after the last repeat.
    TooWide,
    /// One end was another program, of which only its protocol tells.
    ForeignEnd,
}

impl HazardKind {
    /// The word for it, the same as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoopbackInsteadOfLab => "loopback-instead-of-lab",
            Self::SharedKernel => "shared-kernel",
            Self::VirtualLink => "virtual-link",
            Self::SoftwareEmulation => "software-emulation",
            Self::StealTime => "steal-time",
            Self::RunQueueWait => "run-queue-wait",
            Self::OtherCpuLoad => "other-cpu-load",
            Self::Governor => "governor",
            Self::ReceiverSocketDrops => "receiver-socket-drops",
            Self::LinkDrops => "link-drops",
            Self::RateNotReached => "rate-not-reached",
            Self::BufferClamped => "buffer-clamped",
            Self::ShortWindow => "short-window",
            Self::WindowSkew => "window-skew",
            Self::SampleLate => "sample-late",
            Self::DamagedPayload => "damaged-payload",
            Self::LatencyOverflow => "latency-overflow",
            Self::Interrupted => "interrupted",
            Self::StreamEnded => "stream-ended",
            Self::Strays => "strays",
            Self::Unavailable => "unavailable",
            Self::ZeroCopyCopied => "zero-copy-copied",
            Self::TooWide => "too-wide",
            Self::ForeignEnd => "foreign-end",
        }
    }
}

/// A reason to distrust a record, with evidence and cure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hazard {
    /// What kind.
    pub kind: HazardKind,
    /// On which node; `None` for both or neither.
    pub side: Option<Side>,
    /// What was seen, with numbers.
    pub evidence: String,
    /// What to do about it.
    pub cure: String,
}
