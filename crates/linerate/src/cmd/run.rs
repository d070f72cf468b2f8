//! `linerate run`: measures between two nodes.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_agent::auth::Secret;
use linerate_agent::launch::LaunchOptions;
use linerate_lab::connect::{self, Families, Nodes, Place};
use linerate_lab::path::PathChoice;
use linerate_lab::runner::{self, Bench};
use linerate_link::lab::KeptLab;
use linerate_model::Record;
use linerate_model::event::Event;
use linerate_model::exit::ExitCode;
use linerate_model::experiment::{Experiment, PathFacts};
use linerate_model::hazard::Hazard;
use linerate_model::record::Outcome;
use linerate_model::trial::Family;
use linerate_report::TableOptions;

use crate::cli::{OutputArgs, RunArgs};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{request, signals};

pub(crate) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let experiment = request::experiment(&args)?;
    check_before_contact(&experiment)?;
    let launch = launch_options(&args)?;
    // Before any thread: an ordinary user's lab needs a user namespace.
    let place = if args.peer.is_none() { Some(Place::private()?) } else { None };
    let stop = signals::stop_flag()?;
    let nodes = nodes(&args, place.as_ref(), launch);
    let (mut bench, mut hazards) = connect::connect(&nodes, &families(&experiment, &args))?;
    hazards.extend(place.as_ref().and_then(Place::hazard));
    let measured = measure(&mut bench, &experiment, &hazards, &args, &stop);
    drop(bench); // the agents go before the namespaces they are in
    let kept = place.map(|place| leave(place, args.nodes.keep_lab)).transpose()?.flatten();
    let (records, outcome) = measured?;
    show(&records, &args.output)?;
    if let Some((kept, holder)) = kept {
        tell_kept(&kept, holder);
    }
    outcome?;
    Ok(if stop.load(std::sync::atomic::Ordering::Relaxed) { ExitCode::Interrupted } else { ExitCode::Good })
}

/// Nonsense is refused before any node is asked; what depends on the path is checked again once it is known.
fn check_before_contact(experiment: &Experiment) -> Result<(), Failure> {
    let any_path = PathFacts { family: Family::V4, mtu_bytes: 1500 };
    experiment.trials(&[any_path]).map(|_| ()).map_err(Failure::usage)
}

fn launch_options(args: &RunArgs) -> Result<LaunchOptions, Failure> {
    let program =
        std::env::current_exe().map_err(|e| Failure::node(format!("find this program's own file: {e}")))?;
    let secret =
        args.nodes.secret_file.as_deref().map(Secret::from_file).transpose().map_err(Failure::usage)?;
    Ok(LaunchOptions {
        program,
        remote_program: args.nodes.remote_program.clone(),
        push: args.nodes.push,
        secret,
        ssh_options: args.nodes.ssh_option.clone(),
    })
}

fn nodes(args: &RunArgs, place: Option<&Place>, launch: LaunchOptions) -> Nodes {
    let (dut, peer) = match (place, &args.peer) {
        (Some(place), _) => place.nodes(),
        (None, Some(peer)) => (args.nodes.dut.clone(), peer.clone()),
        (None, None) => (args.nodes.dut.clone(), args.nodes.dut.clone()),
    };
    let links = PathChoice { dut_link: args.nodes.link.clone(), peer_link: args.nodes.peer_link.clone() };
    Nodes { dut, peer, links, launch }
}

fn families(experiment: &Experiment, args: &RunArgs) -> Families {
    if !args.nodes.family.is_empty() {
        Families::All(experiment.families.clone())
    } else if args.traffic.workload.is_empty() {
        Families::Usable
    } else {
        Families::First
    }
}

/// What was measured, and how it ended: a failure half way keeps the records before it.
type Measured = (Vec<Record>, Result<(), Failure>);

fn measure(
    bench: &mut Bench,
    experiment: &Experiment,
    hazards: &[Hazard],
    args: &RunArgs,
    stop: &std::sync::atomic::AtomicBool,
) -> Result<Measured, Failure> {
    let facts: Vec<PathFacts> = bench.paths.iter().map(linerate_lab::path::Path::facts).collect();
    let trials = experiment.trials(&facts).map_err(Failure::usage)?;
    let mut progress = Progress::new(args.output.quiet, experiment.timing.interval_ns.is_some());
    let mut records: Vec<Record> = Vec::new();
    let mut tell = |event: Event| {
        progress.tell(&event);
        if let Event::TrialFinished(mut record) = event {
            record.hazards.splice(0..0, hazards.iter().cloned());
            records.push(*record);
        }
    };
    let outcome = runner::run(bench, &trials, stop, &mut tell);
    progress.finish();
    Ok((records, outcome.map(|_: Outcome| ()).map_err(Failure::from)))
}

fn show(records: &[Record], output: &OutputArgs) -> Result<(), Failure> {
    if let Some(path) = &output.output {
        write_file(path, &linerate_report::json(records))?;
    }
    if records.is_empty() && !output.json {
        return Ok(());
    }
    let text = if output.json {
        linerate_report::json(records)
    } else if output.csv {
        linerate_report::csv(records)
    } else {
        linerate_report::table(records, &table_options(output))
    };
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        // Whoever reads has enough (`linerate run | head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Failure::node(format!("write to stdout: {e}"))),
    }
}

fn table_options(output: &OutputArgs) -> TableOptions {
    let terminal = std::io::stdout().is_terminal();
    let width =
        if terminal { terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)) } else { None };
    TableOptions { width: width.unwrap_or(80), color: false, evidence: output.explain }
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::node(format!("write {}: {e}", path.display())))
}

/// Takes the lab away, or leaves it up with a process that holds it where one is needed.
fn leave(place: Place, keep: bool) -> Result<Option<(KeptLab, Option<u32>)>, Failure> {
    let Place::Lab(lab) = place else { return Ok(None) };
    if !keep {
        lab.remove().map_err(|e| Failure::node(format!("remove the private lab: {e}")))?;
        return Ok(None);
    }
    let kept = lab.keep().map_err(|e| Failure::node(format!("keep the private lab: {e}")))?;
    let holder = if kept.needs_holder { Some(spawn_holder()?) } else { None };
    Ok(Some((kept, holder)))
}

fn spawn_holder() -> Result<u32, Failure> {
    use std::os::unix::process::CommandExt;
    let program =
        std::env::current_exe().map_err(|e| Failure::node(format!("find this program's own file: {e}")))?;
    Command::new(program)
        .args(["lab", "hold"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(|child| child.id())
        .map_err(|e| Failure::node(format!("start the process that holds the lab: {e}")))
}

fn tell_kept(kept: &KeptLab, holder: Option<u32>) {
    eprintln!("The lab {} stays up.", kept.id);
    eprintln!("  enter the dut:   {}", kept.enter_command(&kept.dut, holder).join(" "));
    eprintln!("  enter the peer:  {}", kept.enter_command(&kept.peer, holder).join(" "));
    match holder {
        Some(pid) => eprintln!("  remove:          kill {pid}"),
        None => {
            eprintln!(
                "  measure in it:   linerate run netns:{} --dut netns:{}",
                kept.peer.netns, kept.dut.netns
            );
            eprintln!("  remove:          linerate lab remove {}", kept.id);
        }
    }
}
