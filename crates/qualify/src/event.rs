//! What a run tells while it goes on.

use linerate_model::qualification::{Calibration, CaseResult, End};

use crate::capture::CapturedFrame;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Both ends are known; their settings are those before the first case.
    Described {
        /// The end under test.
        dut: &'a End,
        /// What joins the ends.
        medium: &'a str,
    },
    /// The ends are joined and the cases chosen: so many variants, all repeats counted.
    Planned {
        /// Variants to run or skip.
        variants: usize,
    },
    /// What the slower end can do.
    Calibrated(Calibration),
    /// Worth saying.
    Note(String),
    /// A variant begins.
    CaseBegins {
        /// Its case.
        id: &'static str,
        /// The variant; empty where it has only one.
        variant: &'static str,
        /// What it does, in a few words.
        title: &'static str,
        /// Its number, from 0.
        index: usize,
    },
    /// A variant is over.
    CaseEnds {
        /// What came of it. A change made here, such as an expected failure or a file of frames, is kept in the result.
        result: &'a mut CaseResult,
        /// The last frames of both ends, where something is wrong.
        frames: Vec<CapturedFrame>,
    },
}
