//! What a run left out, and why.

use linerate_model::experiment::LeftOut;

use crate::text::{Style, paint, printable, wrap};

/// One line for combinations that are left out: `4 combinations with dut.rx-usecs=0 are left out: REASON`.
pub fn left_out_line(left_out: &LeftOut) -> String {
    let LeftOut { levels, combinations, reason } = left_out;
    let are = if *combinations == 1 { "combination" } else { "combinations" };
    let be = if *combinations == 1 { "is" } else { "are" };
    printable(&format!("{combinations} {are} with {levels} {be} left out: {reason}"))
}

/// The same for all that a run left out, as wide as a terminal; empty where it is nothing.
pub fn left_out_lines(all: &[LeftOut], width: usize, color: bool) -> Vec<String> {
    let lines = all.iter().flat_map(|one| wrap("- ", 2, &left_out_line(one), width));
    lines.map(|line| paint(&line, Style::Yellow, color)).collect()
}
