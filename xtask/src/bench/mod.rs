//! `cargo xtask bench`: linerate and each installed peer do the same work side by side, in turn.

mod counters;
mod figures;
mod outcome;
mod page;
mod place;
mod tools;
mod turn;
mod work;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::ArgAction;
use linerate_testkit::skip::{self, find_tool};

use self::{
    outcome::{Absence, Contest, Entry},
    page::Circumstances,
    place::Place,
    tools::Tool,
    turn::{Interrupted, Turn},
    work::{PlaceKind, Work},
};
use crate::{repository, step};

/// More than this busy before the first run, and the figures are not worth having.
const QUIET_CPUS: f64 = 0.1;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Turns of each tool.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    turns: u32,
    /// Only these tools.
    #[arg(long, value_delimiter = ',')]
    tools: Vec<Tool>,
    /// Only these works.
    #[arg(long, value_delimiter = ',')]
    works: Vec<Work>,
    /// Only these places.
    #[arg(long, value_delimiter = ',')]
    places: Vec<PlaceKind>,
    /// Write the page here instead of docs/performance.md.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Use the release binary as it is.
    #[arg(long, action = ArgAction::SetTrue)]
    no_build: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if let Err(skip) = skip::netns().and_then(|()| skip::tool("taskset")) {
        bail!("the benchmark makes namespaces and pins programs: it {skip}");
    }
    let tools = chosen(&options.tools, &Tool::ALL);
    if tools.contains(&Tool::Linerate) && !options.no_build {
        step::run(
            "release build",
            &mut step::cargo(&["build", "--release", "--locked", "--package", "linerate"]),
        )?;
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("watch for Ctrl-C")?;
    }

    let circumstances = circumstances(options, &tools)?;
    let mut contests = Vec::new();
    for kind in chosen(&options.places, &PlaceKind::ALL) {
        let place = Place::make(kind);
        for work in chosen(&options.works, &Work::ALL) {
            println!("==> {work}, over {kind}");
            contests.push(contest(kind, work, &place, &tools, options.turns, &interrupted)?);
        }
    }
    let path = options.output.clone().unwrap_or_else(|| repository::root().join("docs/performance.md"));
    let old_page = fs::read_to_string(&path).unwrap_or_default();
    let page = page::write(&circumstances, &contests, &old_page);
    fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    println!("{}written to {}", page::summary(&contests), path.display());
    ensure_nothing_failed(&contests)
}

fn contest(
    kind: PlaceKind,
    work: Work,
    place: &Place,
    tools: &[Tool],
    turns: u32,
    interrupted: Interrupted<'_>,
) -> Result<Contest> {
    let mut entries: Vec<_> = tools.iter().map(|&tool| Entry { tool, result: start(tool, work) }).collect();
    for turn in 0..turns {
        // The order rotates, so that no tool is always the first after another.
        let count = entries.len();
        for offset in 0..count {
            take_turn(&mut entries[(turn as usize + offset) % count], work, place, interrupted);
            if interrupted.load(Ordering::Relaxed) {
                bail!("interrupted; nothing was written");
            }
        }
    }
    Ok(Contest { place: kind, work, entries })
}

/// No turns yet, or why there will be none.
fn start(tool: Tool, work: Work) -> Result<Vec<Turn>, Absence> {
    match tool {
        Tool::Linerate if !repository::linerate().is_file() => {
            return Err(Absence::Failed("there is no release binary".to_owned()));
        }
        Tool::Linerate => {}
        peer if find_tool(peer.program()).is_none() => {
            return Err(Absence::Cannot("not installed".to_owned()));
        }
        _ => {}
    }
    tool.obstacle(work).map_or(Ok(Vec::new()), |reason| Err(Absence::Cannot(reason.to_owned())))
}

/// A tool that failed once is out: its turns would no longer match those of the others.
fn take_turn(entry: &mut Entry, work: Work, place: &Place, interrupted: Interrupted<'_>) {
    let Ok(turns) = &mut entry.result else { return };
    match turn::run(entry.tool, work, place, interrupted) {
        Ok(turn) => {
            let unit = work.unit();
            let (rate, demand) = (unit.rate(outcome::goodput(&turn)), unit.demand(outcome::cpu(&turn)));
            println!("    {:<9} {rate:>16}  {demand}", entry.tool.program());
            turns.push(turn);
        }
        Err(error) => {
            println!("    {:<9} failed: {error:#}", entry.tool.program());
            entry.result = Err(Absence::Failed(format!("{error:#}")));
        }
    }
}

fn ensure_nothing_failed(contests: &[Contest]) -> Result<()> {
    let entries = contests.iter().flat_map(|contest| &contest.entries);
    let failed = entries.filter(|entry| matches!(entry.result, Err(Absence::Failed(_)))).count();
    if failed > 0 {
        bail!("{failed} failed");
    }
    Ok(())
}

fn circumstances(options: &Options, tools: &[Tool]) -> Result<Circumstances> {
    let background_busy_cpus = counters::background_busy_cpus(Duration::from_secs(2))?;
    if background_busy_cpus > QUIET_CPUS {
        println!(
            "warning: {background_busy_cpus:.2} CPUs are busy with something else; the figures will show it"
        );
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("read the kernel's release")?;
    let kernel = release.trim().split('-').next().unwrap_or_default().to_owned();
    Ok(Circumstances {
        command: command_line(),
        date: jiff::Timestamp::now().to_string().chars().take("YYYY-MM-DD".len()).collect(),
        kernel,
        architecture: std::env::consts::ARCH.to_owned(),
        cpus: counters::cpu_count(),
        background_busy_cpus,
        turns: options.turns,
        versions: tools.iter().map(|&tool| (tool, version(tool))).collect(),
    })
}

fn command_line() -> String {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    format!("cargo xtask {}", arguments.join(" "))
}

/// The first line that a tool says of its version.
fn version(tool: Tool) -> String {
    let text = step::output(&mut tool.version_command()).unwrap_or_default();
    let plain = text.lines().next().unwrap_or_default().trim().to_owned();
    if plain.is_empty() { "not installed".to_owned() } else { plain }
}

fn chosen<T: Copy>(wanted: &[T], all: &[T]) -> Vec<T> {
    if wanted.is_empty() { all.to_vec() } else { wanted.to_vec() }
}
