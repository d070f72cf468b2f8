//! The six generations of the layout, as tables of offsets.
//!
//! | | of uperf | version | header | flowop |
//! |---|---|---|---|---|
//! | A | 1.0.6, 1.0.7 | 0.3 in 128 bytes | 464 | 928 |
//! | B | 2020-04 to 2021-06 | 0.3.1 in 16 bytes | 352 | 928, as A |
//! | C | 1.0.8 | 0.3.1 | 352 | 928 |
//! | D | 2025-05 to 2026-05 | 0.3.1 | 352 | 928, C with bblog |
//! | E | 2026-05 to 2026-06 | 0.3.1 | 352 | 936, D with repeat |
//! | F | since 2026-06-20 | 0.3.1 | 352 | 944, E with batch_size |

use crate::uperf::wire::WireError;
use crate::uperf::wire::bytes::{Fields, Order};

/// A generation of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// 1.0.6 and 1.0.7.
    A,
    /// Between 1.0.7 and 1.0.8.
    B,
    /// 1.0.8.
    C,
    /// 2025-05 to 2026-05.
    D,
    /// 2026-05 to 2026-06.
    E,
    /// Since 2026-06-20.
    F,
}

/// Where a flowop's fields lie; `None` where a generation lacks one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offsets {
    pub(crate) encapsulation: usize,
    /// duration, window and count follow each other.
    pub(crate) duration: usize,
    pub(crate) repeat: Option<usize>,
    pub(crate) batch: Option<usize>,
    pub(crate) timeout: usize,
    pub(crate) bblog: Option<usize>,
    /// The nine words; the streams, policy, cc, stack, dir, hosts and SSL strings follow without gaps.
    pub(crate) sctp: usize,
    pub(crate) kind: usize,
    pub(crate) total: usize,
}

impl Layout {
    /// All, oldest first.
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    /// From its letter.
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| format!("{l:?}").eq_ignore_ascii_case(letter))
    }

    /// The version that its headers carry.
    pub fn version(self) -> &'static str {
        if self == Self::A { "0.3" } else { "0.3.1" }
    }

    /// Bytes of the header of P1 and P2.
    pub fn header_bytes(self) -> usize {
        if self == Self::A { 464 } else { 352 }
    }

    /// Bytes of a flowop.
    pub fn flowop_bytes(self) -> usize {
        self.offsets().total
    }

    pub(crate) fn offsets(self) -> Offsets {
        let old = Offsets {
            encapsulation: 32,
            duration: 40,
            repeat: None,
            batch: None,
            timeout: 64,
            bblog: None,
            sctp: 72,
            kind: 912,
            total: 928,
        };
        let c = Offsets { encapsulation: 64, duration: 32, timeout: 56, sctp: 68, ..old };
        let d = Offsets { bblog: Some(68), sctp: 72, ..c };
        let e = Offsets {
            repeat: Some(56),
            timeout: 64,
            encapsulation: 72,
            bblog: Some(76),
            sctp: 80,
            kind: 920,
            total: 936,
            ..d
        };
        match self {
            Self::A | Self::B => old,
            Self::C => c,
            Self::D => d,
            Self::E => e,
            Self::F => Offsets {
                batch: Some(64),
                timeout: 72,
                encapsulation: 80,
                bblog: Some(84),
                sctp: 88,
                kind: 928,
                total: 944,
                ..e
            },
        }
    }
}

/// Bytes of the first flowop that [`detect`] needs: a whole one of the shortest layouts.
pub(crate) const DETECT_BYTES: usize = 928;

/// Timeouts are nanoseconds: a smaller number there is a count.
const LEAST_TIMEOUT_NS: u64 = 1000;

/// Tells the generation from B to F by the start of the first flowop: the kind lies at a place of its own in E and F; B has
/// its count where C and D have the timeout; D has four bytes more before the host than C.
///
/// # Errors
/// Fewer than 928 bytes.
pub fn detect(flowop: &[u8], order: Order) -> Result<Layout, WireError> {
    let fields = Fields::new(flowop, DETECT_BYTES, order)?;
    let is_kind = |at| (1..=11).contains(&fields.u32(at));
    if !is_kind(Layout::C.offsets().kind) {
        return Ok(if is_kind(Layout::E.offsets().kind) { Layout::E } else { Layout::F });
    }
    let (at_48, at_56) = (fields.u64(48), fields.u64(56));
    let counts_at_56 = (1..LEAST_TIMEOUT_NS).contains(&at_56) || (at_56 > 0 && at_48 == 0);
    if counts_at_56 {
        return Ok(Layout::B);
    }
    let host_of_c = Layout::C.offsets().sctp + HOST_AFTER_SCTP;
    let starts_late = fields.raw(host_of_c) == [0; 4] && fields.raw(host_of_c + 4)[0] != 0;
    Ok(if starts_late { Layout::D } else { Layout::C })
}

/// Distance of the remote host from SCTP's words.
pub(crate) const HOST_AFTER_SCTP: usize = 248;
