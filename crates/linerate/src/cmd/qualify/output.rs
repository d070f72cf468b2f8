//! What is shown and written of a qualification: the live list, the summary, files, the history.

use std::path::{Path, PathBuf};

use clap::Args;
use linerate_model::NodeUrl;
use linerate_model::qualification::{CaseResult, Qualification};
use linerate_model::trial::Side;
use linerate_qualify::expected::{ExpectedList, Place};
use linerate_qualify::{CapturedFrame, Event};
use linerate_report::qualification::{
    Direction, KtapOptions, PacketIn, case_line, case_name, junit, ktap, pcapng, qualification_html,
    qualification_json, qualification_text,
};

use super::args::QualifyArgs;
use super::progress::Progress;
use crate::cli::StoreArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::write_file;
use crate::reach::print;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// No progress and no live list.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print KTAP (version 1) instead of the list and the summary.
    #[arg(long)]
    pub(crate) ktap: bool,
    /// Print KTAP with the metadata lines that its version 2 proposes.
    #[arg(long)]
    pub(crate) ktap_v2: bool,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write JSON (schema/qualification-v1.json).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page of HTML.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the frames around each failure as pcapng into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pcap: Option<PathBuf>,
    /// Read expected failures from a TOML file, before the list that linerate ships; as often as needed.
    #[arg(long, value_name = "FILE")]
    pub(crate) expected: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Shows a run.
pub(super) struct Output {
    progress: Progress,
    quiet: bool,
    width: usize,
    color: bool,
    ktap: Option<KtapOptions>,
    pcap: Option<PathBuf>,
    expected: ExpectedList,
    /// Emulator of the node under test, where it is a guest.
    is_guest: bool,
    place: Place,
    /// The first file that could not be written.
    failed: Option<Failure>,
}

impl Output {
    pub(super) fn new(args: &QualifyArgs) -> Result<Self, Failure> {
        let output = &args.output;
        let ktap = (output.ktap || output.ktap_v2).then_some(KtapOptions { metadata: output.ktap_v2 });
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        let color = terminal && std::env::var_os("NO_COLOR").is_none();
        if let Some(folder) = &output.pcap {
            std::fs::create_dir_all(folder)
                .map_err(|e| Failure::usage(format!("make {}: {e}", folder.display())))?;
        }
        let quiet = output.quiet || ktap.is_some();
        let peer_is_guest = matches!(args.peer, Some(NodeUrl::Vm { .. }));
        let is_guest = match &args.nodes.dut {
            Some(dut) => matches!(dut, NodeUrl::Vm { .. }),
            None => peer_is_guest,
        };
        Ok(Self {
            progress: Progress::new(quiet),
            quiet,
            width,
            color,
            ktap,
            pcap: output.pcap.clone(),
            expected: expected(&output.expected)?,
            is_guest,
            place: Place::default(),
            failed: None,
        })
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
            Event::Described { dut, medium } => {
                self.place = Place::of(dut, if self.is_guest { "QEMU" } else { "" }, medium);
            }
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
            Event::CaseEnds { result, frames } => self.case_ends(result, &frames),
        }
    }

    fn case_ends(&mut self, result: &mut CaseResult, frames: &[CapturedFrame]) {
        self.progress.step();
        self.expected.apply(result, &self.place);
        if let Some(folder) = &self.pcap
            && !frames.is_empty()
        {
            match capture(folder, result, frames) {
                Ok(name) => result.capture = Some(name),
                Err(failure) => drop(self.failed.get_or_insert(failure)),
            }
        }
        if !self.quiet {
            let line = case_line(result, self.width, self.color);
            // Whoever has enough of it (`| head`) is no reason to stop the run.
            self.progress.aside(|| {
                let _ = print(&format!("{}\n", line.trim_end()));
            });
        }
    }

    /// Shows the whole, writes what was asked for, and keeps it in the history.
    pub(super) fn end(&mut self, qualified: &Qualification, args: &OutputArgs) -> Result<(), Failure> {
        self.progress.finish();
        let shown = match self.ktap {
            Some(options) => print(&ktap(qualified, options)),
            None => print(&qualification_text(qualified, self.width, self.color)),
        };
        let page = |one: &Qualification| qualification_html(std::slice::from_ref(one));
        let write = |path: &Option<PathBuf>, text: &dyn Fn(&Qualification) -> String| match path {
            Some(path) => write_file(path, &text(qualified)),
            None => Ok(()),
        };
        // All are tried: one full disk must not cost the others.
        let all = [
            shown,
            self.failed.take().map_or(Ok(()), Err),
            write(&args.junit, &junit),
            write(&args.json, &qualification_json),
            write(&args.html, &page),
            keep(qualified, &args.store),
        ];
        all.into_iter().collect()
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.progress.aside(|| eprintln!("{text}"));
        }
    }
}

fn keep(qualified: &Qualification, args: &StoreArgs) -> Result<(), Failure> {
    if args.no_store {
        return Ok(());
    }
    let mut store = history::open(args.db.as_deref())?;
    store.add_qualification(qualified).map_err(Failure::node)?;
    for tag in &args.tag {
        store.tag(&qualified.run, tag).map_err(Failure::usage)?;
    }
    Ok(())
}

fn expected(paths: &[PathBuf]) -> Result<ExpectedList, Failure> {
    let mut list = ExpectedList::default();
    for path in paths {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
        let own =
            ExpectedList::parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        list = list.before(own);
    }
    Ok(list.before(ExpectedList::shipped().map_err(Failure::node)?))
}

/// Writes the frames around a failure; gives the file's name.
fn capture(folder: &Path, result: &CaseResult, frames: &[CapturedFrame]) -> Result<String, Failure> {
    let packet = |frame: &CapturedFrame| PacketIn {
        interface: match frame.side {
            Side::Dut => 0,
            Side::Peer => 1,
        },
        time_ns: frame.time_ns,
        direction: if frame.sent { Direction::Out } else { Direction::In },
        bytes: frame.bytes.0.clone(),
        length_bytes: frame.length_bytes,
        comment: None,
    };
    let packets: Vec<PacketIn> = frames.iter().map(packet).collect();
    let name = format!("{}.pcapng", case_name(result).replace('@', "-"));
    let path = folder.join(&name);
    let file = pcapng(&["dut".to_owned(), "peer".to_owned()], &packets, &case_name(result));
    std::fs::write(&path, file).map_err(|e| Failure::node(format!("write {}: {e}", path.display())))?;
    Ok(name)
}
