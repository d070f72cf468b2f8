//! What is shown on stderr while a run goes on: a bar on a terminal, and live lines where intervals are asked for.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_lab::figures::{self, Figure};
use linerate_lab::plan::Plan;
use linerate_lab::stats::describe;
use linerate_model::event::Event;
use linerate_model::record::Record;
use linerate_model::trial::Trial;
use linerate_report::{IntervalPairs, live_header, live_line, numbers, trial_text};

/// Shows events.
pub(crate) struct Progress {
    bar: ProgressBar,
    intervals: bool,
    combinations: usize,
    /// Time of one block if all goes well, milliseconds.
    block_ms: Option<u64>,
    trials: usize,
    finished: usize,
    /// By combination: the main figure of its trials so far.
    values: Vec<Vec<f64>>,
    estimate: String,
    running: Option<Running>,
}

/// The trial whose intervals come in.
struct Running {
    trial: Trial,
    shared_kernel: bool,
    pairs: IntervalPairs,
}

impl Progress {
    /// A bar if stderr is a terminal and `quiet` is not asked for; live lines if `intervals` are.
    pub(crate) fn new(quiet: bool, intervals: bool, plan: &Plan) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self {
            bar,
            intervals: intervals && !quiet,
            combinations: plan.combinations.len(),
            block_ms: plan.block_ns().map(|ns| ns / 1_000_000),
            trials: 0,
            finished: 0,
            values: vec![Vec::new(); plan.combinations.len()],
            estimate: String::new(),
            running: None,
        }
    }

    /// Takes notice of an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        match event {
            Event::Planned { trials, expected_ns } => self.plan(*trials, *expected_ns),
            Event::TrialStarted { trial, shared_kernel, .. } => {
                let number = self.finished + 1;
                let message = format!("{number}/{} {}{}", self.trials, trial_text(trial), self.estimate);
                self.bar.set_message(message);
                if self.intervals {
                    self.line(&format!("{}\n{}", trial_text(trial), live_header(trial, *shared_kernel)));
                    let pairs = IntervalPairs::default();
                    self.running =
                        Some(Running { trial: trial.clone(), shared_kernel: *shared_kernel, pairs });
                }
            }
            Event::Interval { side, interval, .. } => {
                let Some(running) = &mut self.running else { return };
                if let Some((dut, peer)) = running.pairs.push(*side, interval.clone()) {
                    let line = live_line(&running.trial, running.shared_kernel, &dut, &peer);
                    self.line(&line);
                }
            }
            Event::Skipped(left_out) => self.line(&linerate_report::left_out_line(left_out)),
            Event::TrialFinished(record) => self.finished(record),
            Event::BlockFinished { blocks, likely_blocks } => {
                // The stop rule may want fewer or more blocks than was thought.
                if let Some(all) = likely_blocks.filter(|all| all >= blocks) {
                    self.trials = self.finished + (all - blocks) as usize * self.combinations;
                    if let Some(block_ms) = self.block_ms {
                        self.bar.set_length(block_ms * u64::from(all));
                    }
                }
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn finished(&mut self, record: &Record) {
        self.finished += 1;
        self.trials = self.trials.max(self.finished);
        // A trial done is that part of the time done, whatever the clock says.
        let length = self.bar.length().unwrap_or_default();
        self.bar.set_position(length * self.finished as u64 / self.trials as u64);
        let Some(figure) = figures::watched(record).into_iter().next() else { return };
        let known = record.combination.and_then(|at| self.values.get_mut(at as usize));
        let Some(values) = known else { return };
        values.push(figure.value);
        self.estimate = format!("  | last: {}", estimate(&figure, values));
    }

    fn plan(&mut self, trials: usize, expected_ns: Option<u64>) {
        self.trials = trials;
        let template = match expected_ns {
            Some(_) => "{bar:24} {elapsed}, {eta} left  {msg}",
            None => "{spinner} {elapsed}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_length(expected_ns.map_or(trials as u64, |ns| ns / 1_000_000));
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

/// `23.41 Gbit/s, median of 4, ±1.2 %`.
fn estimate(figure: &Figure, values: &[f64]) -> String {
    let Ok(described) = describe(values) else { return String::new() };
    let shown = match figure.unit {
        "bit/s" => numbers::bit_rate(described.median),
        unit => format!("{} {unit}", numbers::count(described.median)),
    };
    if described.count < 2 || described.median == 0.0 {
        return shown;
    }
    let spread = (described.max - described.min) / 2.0 / described.median * 100.0;
    format!("{shown}, median of {}, ±{spread:.1} %", described.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_lab::stats::Direction;

    #[test]
    fn an_estimate_tells_its_repeats() {
        let figure =
            Figure { name: "goodput", unit: "bit/s", direction: Direction::HigherIsBetter, value: 2e9 };
        assert_eq!(estimate(&figure, &[2e9]), "2.000 Gbit/s");
        assert_eq!(estimate(&figure, &[2e9, 2.02e9, 1.98e9]), "2.000 Gbit/s, median of 3, ±1.0 %");
    }
}
