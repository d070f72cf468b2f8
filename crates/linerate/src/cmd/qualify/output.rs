//! What is shown and written of a qualification: the live list, the summary, files.

use clap::Args;
use linerate_model::qualification::Qualification;
use linerate_qualify::Event;
use linerate_report::qualification::{case_line, qualification_text};

use super::args::QualifyArgs;
use super::progress::Progress;
use crate::failure::Failure;
use crate::reach::print;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// No progress and no live list.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Shows a run.
pub(super) struct Output {
    progress: Progress,
    quiet: bool,
    width: usize,
    color: bool,
}

impl Output {
    pub(super) fn new(args: &QualifyArgs) -> Result<Self, Failure> {
        let quiet = args.output.quiet;
        let width = terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0));
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        let color = terminal && std::env::var_os("NO_COLOR").is_none();
        Ok(Self { progress: Progress::new(quiet), quiet, width, color })
    }

    /// Who is joined.
    pub(super) fn headline(&self, text: &str) {
        if !self.quiet {
            self.progress.aside(|| eprintln!("Qualifying {text}"));
        }
    }

    /// Takes notice of an event.
    pub(super) fn tell(&mut self, event: Event<'_>) {
        match event {
            Event::Planned { variants } => self.progress.plan(variants),
            Event::Calibrated(calibration) => {
                let words = format!(
                    "The slower end does {} small frames/s and {} compared.",
                    linerate_report::numbers::count(calibration.frames_per_second),
                    linerate_report::numbers::bit_rate(calibration.flow_bits_per_second),
                );
                self.note(&words);
            }
            Event::Note(text) => self.note(&text),
            Event::CaseBegins { id, variant, title, .. } => {
                let dot = if variant.is_empty() { "" } else { "." };
                self.progress.begin(&format!("{id}{dot}{variant}"), title);
            }
            Event::CaseEnds { result, frames: _ } => {
                self.progress.step();
                if !self.quiet {
                    let line = case_line(result, self.width, self.color);
                    // Whoever has enough of it (`| head`) is no reason to stop the run.
                    self.progress.aside(|| {
                        let _ = print(&format!("{}\n", line.trim_end()));
                    });
                }
            }
        }
    }

    /// Shows the whole.
    pub(super) fn end(&mut self, qualified: &Qualification) -> Result<(), Failure> {
        self.progress.finish();
        print(&qualification_text(qualified, self.width, self.color))
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.progress.aside(|| eprintln!("{text}"));
        }
    }
}
