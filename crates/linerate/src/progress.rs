//! What is shown on stderr while a run goes on: a bar on a terminal, and live lines where intervals are asked for.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_model::event::Event;
use linerate_model::trial::Trial;
use linerate_report::{IntervalPairs, live_header, live_line, trial_text};

/// Shows events.
pub(crate) struct Progress {
    bar: ProgressBar,
    intervals: bool,
    trials: usize,
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
    pub(crate) fn new(quiet: bool, intervals: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, intervals: intervals && !quiet, trials: 0, running: None }
    }

    /// Takes notice of an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        match event {
            Event::Planned { trials, expected_ns } => self.plan(*trials, *expected_ns),
            Event::TrialStarted { sequence, trial, shared_kernel } => {
                self.bar.set_message(format!("{}/{} {}", sequence + 1, self.trials, trial_text(trial)));
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
            Event::TrialFinished(record) => {
                // A trial done is that part of the time done, whatever the clock says.
                if self.trials > 0 {
                    let done = u64::from(record.sequence) + 1;
                    let length = self.bar.length().unwrap_or_default();
                    self.bar.set_position(length * done / self.trials as u64);
                }
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
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
