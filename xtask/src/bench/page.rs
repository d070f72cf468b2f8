//! `docs/performance.md`.

use std::fmt::Write as _;

use super::{
    outcome::{self, Absence, Contest, Entry, Spread},
    tools::Tool,
    work::Unit,
};

/// All below it is written by hand and kept.
const NOTES_MARK: &str = "<!-- What follows is written by hand; `cargo xtask bench` keeps it. -->";
const EMPTY_NOTES: &str = "\n## Notes\n\nNone yet.\n";

/// What is said about a whole run.
pub(crate) struct Circumstances {
    pub(crate) command: String,
    pub(crate) date: String,
    pub(crate) kernel: String,
    pub(crate) architecture: String,
    pub(crate) cpus: f64,
    pub(crate) background_busy_cpus: f64,
    pub(crate) turns: u32,
    pub(crate) versions: Vec<(Tool, String)>,
}

/// The page, with the notes of the page that it replaces.
pub(crate) fn write(circumstances: &Circumstances, contests: &[Contest], old_page: &str) -> String {
    let notes = old_page.split_once(NOTES_MARK).map_or(EMPTY_NOTES, |(_, notes)| notes);
    format!("{}{}{}{NOTES_MARK}{notes}", head(circumstances), summary(contests), details(contests))
}

fn head(about: &Circumstances) -> String {
    let versions = about.versions.iter().map(|(tool, version)| format!("| {tool} | {version} |\n"));
    format!(
        "# Performance beside other tools

Written by `{command}` on {date}.

Machine: {architecture}, {cpus} CPUs, Linux {kernel}; {background:.2} CPUs busy before the first run.

Each tool does the same work in turn, {turns} turns, in an order that rotates: client (the sender) on CPU 0, server on CPU 1,
in network namespaces that hold nothing else. A window of two seconds is cut out of the middle of each run, and everything
below but each tool's own figure is counted over that window from outside, the same way for every tool:

- goodput: bytes or packets that the server's link received (`/proc/net/dev`); for UDP the datagrams that the server's program
  received (`InDatagrams` in `/proc/net/snmp`);
- CPU: time in which CPUs were not idle (`/proc/stat`), for each unit of goodput; beside it the user and system time of the
  tool's processes (`/proc/PID/stat`), which leaves out what interrupts and other threads did for them.

Figures are medians, with the least and the greatest in brackets. They hold for this machine and this run; only the ratios are
worth comparing.

| tool | version |
|---|---|
{versions}
",
        command = about.command,
        date = about.date,
        architecture = about.architecture,
        cpus = about.cpus,
        kernel = about.kernel,
        background = about.background_busy_cpus,
        turns = about.turns,
        versions = versions.collect::<String>(),
    )
}

/// The ratios, also for the terminal.
pub(crate) fn summary(contests: &[Contest]) -> String {
    let mut text = "## linerate against the fastest peer\n\nGoodput over 1 is faster; CPU under 1 is less CPU for the same work.\n\n\
        | place | work | fastest peer | goodput ratio | CPU ratio |\n|---|---|---|---|---|\n"
        .to_owned();
    for contest in contests {
        let ratios = contest.comparison().map_or_else(
            || "- | not compared | not compared |".to_owned(),
            |one| format!("{} | {} | {} |", one.peer, ratio(one.goodput), ratio(one.cpu)),
        );
        let _ = writeln!(text, "| {} | {} | {ratios}", contest.place, contest.work);
    }
    text.push('\n');
    text
}

fn details(contests: &[Contest]) -> String {
    contests.iter().map(detail).collect()
}

fn detail(contest: &Contest) -> String {
    let unit = contest.work.unit();
    let mut text = format!(
        "## {}, over {}\n\n| tool | goodput | its own figure | CPU | CPU of its processes | CPUs busy | notes |\n|---|---|---|---|---|---|---|\n",
        contest.work, contest.place
    );
    for entry in &contest.entries {
        let _ = writeln!(text, "{}", row(contest, entry, unit));
    }
    text.push('\n');
    text
}

fn row(contest: &Contest, entry: &Entry, unit: Unit) -> String {
    let tool = entry.tool;
    let turns = match &entry.result {
        Ok(turns) => turns,
        Err(Absence::Cannot(reason)) => return format!("| {tool} | - | - | - | - | - | not run: {reason} |"),
        Err(Absence::Failed(reason)) => {
            return format!("| {tool} | - | - | - | - | - | failed: {} |", in_cell(reason));
        }
    };
    let over = |value: &dyn Fn(&super::turn::Turn) -> f64| Spread::of(turns.iter().map(value));
    let rates = |spread: Option<Spread>| shown(spread, |value| unit.rate(value));
    let demands = |spread: Option<Spread>| shown(spread, |value| unit.demand(value));
    let own = Spread::of(turns.iter().filter_map(|turn| turn.figures.received))
        .map(|spread| unit.rate(spread.median));
    let sent =
        Spread::of(turns.iter().filter_map(|turn| turn.figures.sent)).map(|spread| unit.rate(spread.median));
    let own = match (own, sent) {
        (Some(own), Some(sent)) => format!("{own}, sent {sent}"),
        (Some(own), None) => own,
        (None, Some(sent)) => format!("sent {sent}"),
        (None, None) => "-".to_owned(),
    };
    format!(
        "| {tool} | {} | {own} | {} | {} | {} | {} |",
        rates(over(&outcome::goodput)),
        demands(over(&outcome::cpu)),
        over(&|turn| turn.counted.process_seconds_per_unit)
            .map_or_else(String::new, |one| unit.demand(one.median)),
        over(&|turn| turn.counted.busy_cpus).map_or_else(String::new, |one| format!("{:.2}", one.median)),
        tool.deviation(contest.work).unwrap_or_default(),
    )
}

fn ratio(spread: Spread) -> String {
    format!("{:.3} [{:.3} .. {:.3}]", spread.median, spread.least, spread.greatest)
}

/// The unit once, after the median.
fn shown(spread: Option<Spread>, show: impl Fn(f64) -> String) -> String {
    let Some(spread) = spread else { return "-".to_owned() };
    let number = |value: f64| show(value).split(' ').next().map(str::to_owned).unwrap_or_default();
    format!("{} [{} .. {}]", show(spread.median), number(spread.least), number(spread.greatest))
}

fn in_cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::work::{PlaceKind, Work};

    #[test]
    fn notes_written_by_hand_are_kept() {
        let about = Circumstances {
            command: "cargo xtask bench".to_owned(),
            date: "2026-01-02".to_owned(),
            kernel: "6.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus: 2.0,
            background_busy_cpus: 0.0,
            turns: 5,
            versions: Vec::new(),
        };
        let entries =
            vec![Entry { tool: Tool::Qperf, result: Err(Absence::Cannot("has one stream".to_owned())) }];
        let contests = [Contest { place: PlaceKind::Veth, work: Work::TcpStreams4, entries }];
        let first = write(&about, &contests, "");
        assert!(first.contains("| qperf | - | - | - | - | - | not run: has one stream |"), "{first}");
        assert!(first.ends_with(EMPTY_NOTES));
        let edited = first.replace("None yet.", "Slower for a reason.");
        assert!(write(&about, &contests, &edited).ends_with("Slower for a reason.\n"));
    }

    #[test]
    fn the_unit_stands_once() {
        let spread = Spread { least: 1e9, median: 2e9, greatest: 3e9 };
        assert_eq!(shown(Some(spread), |value| Unit::Byte.rate(value)), "16.00 Gbit/s [8.00 .. 24.00]");
    }
}
