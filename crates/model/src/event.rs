//! What a runner tells while it runs. Consumers draw progress, print live lines, or store records.

use crate::experiment::LeftOut;
use crate::reading::IntervalReading;
use crate::record::Record;
use crate::trial::{Side, Trial};

/// Something happened in a run.
#[derive(Debug, Clone)]
pub enum Event {
    /// The run is planned.
    Planned {
        /// How many trials.
        trials: usize,
        /// How long they take together if all goes well, nanoseconds; `None` where counts end them.
        expected_ns: Option<u64>,
    },
    /// Combinations are left out of the run: a node refuses their settings.
    Skipped(LeftOut),
    /// A trial begins.
    TrialStarted {
        /// Its number, from 0.
        sequence: u32,
        /// What is asked for.
        trial: Trial,
        /// Both nodes run on one kernel.
        shared_kernel: bool,
    },
    /// A block of trials is done: every combination has run once more.
    BlockFinished {
        /// How many blocks are done.
        blocks: u32,
        /// How many there are likely to be in all; `None` where that can't be told yet.
        likely_blocks: Option<u32>,
    },
    /// A node closed an interval.
    Interval {
        /// Number of the trial.
        sequence: u32,
        /// Which node.
        side: Side,
        /// What it saw.
        interval: IntervalReading,
    },
    /// A trial is done.
    TrialFinished(Box<Record>),
}
