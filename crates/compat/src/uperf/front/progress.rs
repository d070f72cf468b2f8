//! The lines of a run: progress, raw lines, and the total.

use crate::uperf::master::Progress;
use crate::uperf::strand::Total;
use crate::uperf::text::{column, rate, size};

/// Width of output that is no terminal.
const WIDTH: usize = 80;

/// A rule under a table, without newline.
pub(crate) fn rule() -> String {
    "-".repeat(WIDTH - 1)
}

/// `Starting ... `, with its newline.
pub(crate) fn starting(threads: u32, processes: u32, profile: &str, ready_ns: u64) -> String {
    let count = match (threads, processes) {
        (threads, 0) => format!("{threads} threads"),
        (0, processes) => format!("{processes} processes"),
        (threads, processes) => format!("{threads} threads, {processes} processes"),
    };
    format!("Starting {count} running profile:{profile} ... {:6.2} seconds\n", ready_ns as f64 / 1e9)
}

/// A figure line without newline: `Txn2       5.00GB /   3.20(s) =    13.41Gb/s      204590op/s`.
pub(crate) fn figures(name: &str, total: Total, elapsed_ns: u64) -> String {
    let seconds = elapsed_ns as f64 / 1e9;
    let a_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    format!(
        "{name:<8}{} /{seconds:7.2}(s) = {}  {:10.0}op/s ",
        column(&size(total.bytes as f64), 9),
        column(&rate(a_second(total.bytes as f64 * 8.0)), 12),
        a_second(total.operations as f64),
    )
}

/// What brings the cursor back over the line of before.
pub(crate) fn back() -> String {
    format!("\r{}\r", " ".repeat(WIDTH - 1))
}

/// The name of a transaction in lines, which count from 1.
pub(crate) fn transaction_name(progress: &Progress) -> String {
    format!("Txn{}", progress.index + 1)
}

/// A raw line, with its newline. `now_ns` is since the epoch.
pub(crate) fn raw(name: &str, total: Total, now_ns: u64) -> String {
    let ms = now_ns / 1_000_000;
    let rest = now_ns % 1_000_000 / 100;
    format!("timestamp_ms:{ms}.{rest:04} name:{name} nr_bytes:{} nr_ops:{}\n", total.bytes, total.operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_laid_out_as_in_the_captures() {
        assert_eq!(
            starting(1, 0, "sample one", 4_000_000),
            "Starting 1 threads running profile:sample one ...   0.00 seconds\n"
        );
        assert!(starting(2, 3, "x", 0).starts_with("Starting 2 threads, 3 processes running"));
        assert!(starting(0, 2, "x", 0).starts_with("Starting 2 processes running"));
        let total = Total { bytes: 0, operations: 1 };
        assert_eq!(
            figures("Txn1", total, 1_000_000_000).trim_end(),
            "Txn1            0 /   1.00(s) =            0           1op/s"
        );
        let total = Total { bytes: 5_363_712_000, operations: 654_688 };
        assert_eq!(
            figures("Txn2", total, 3_200_000_000).trim_end(),
            "Txn2       5.00GB /   3.20(s) =    13.41Gb/s      204590op/s"
        );
        assert_eq!(rule().len(), 79);
        assert_eq!(back().len(), 81);
    }

    #[test]
    fn raw_lines_are_those_of_the_capture() {
        let total = Total { bytes: 360_000, operations: 4000 };
        assert_eq!(
            raw("Txn2", total, 1_796_067_988_595_293_912),
            "timestamp_ms:1796067988595.2939 name:Txn2 nr_bytes:360000 nr_ops:4000\n"
        );
    }
}
