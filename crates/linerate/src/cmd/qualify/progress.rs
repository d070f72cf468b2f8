//! What is shown on stderr while cases run: a bar on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target) }
    }

    pub(super) fn plan(&self, variants: usize) {
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed}  {msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_length(variants as u64);
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }

    pub(super) fn begin(&self, name: &str, title: &str) {
        self.bar.set_message(format!("{name} {title}"));
    }

    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// Prints without the bar in between.
    pub(super) fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
