//! The statistics behind intervals, the stop rule, verdicts and `trend`, as pure functions of slices of numbers.
//!
//! Nothing here reads a clock, a file or the system's randomness: what needs chance takes a seed that the caller
//! records, and the same seed gives the same answer. No function returns NaN or an infinity; what cannot be computed
//! is a [`StatsError`] or `None`. Methods, sources and measured error rates are in `docs/statistics.md`.

pub mod bootstrap;
pub mod changepoint;
pub mod compare;
pub mod confidence;
pub mod describe;
mod distribution;
pub mod error;
pub mod holm;
pub mod interval;
pub mod looks;
pub mod random;
pub mod repeats;
pub mod schedule;
pub mod shift;
pub mod stop;

pub use changepoint::{ChangePoint, ChangeRule, change_points};
pub use compare::{Compared, Comparison, Direction, Pairing, PercentRange, Rule, Verdict, compare};
pub use confidence::Confidence;
pub use describe::{Description, describe};
pub use error::StatsError;
pub use interval::Interval;
pub use looks::{Look, LookPlan};
pub use random::Generator;
pub use repeats::MoreRepeats;
pub use schedule::{Slot, block_order, schedule};
pub use stop::{Progress, StopRule, StopState, run_state};
