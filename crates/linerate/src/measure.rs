//! Carries a run out: connects the nodes, runs the plan, keeps what comes, and puts everything back.

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;

use linerate_agent::auth::Secret;
use linerate_agent::launch::LaunchOptions;
use linerate_lab::bench::{self, Bench, NODE_KEY, Pair};
use linerate_lab::connect::{self, Families, Nodes, Place};
use linerate_lab::path::{Path, PathChoice};
use linerate_lab::plan::Plan;
use linerate_lab::{course, runner};
use linerate_model::event::Event;
use linerate_model::experiment::PathFacts;
use linerate_model::hazard::Hazard;
use linerate_model::record::Outcome;
use linerate_model::trial::Family;
use linerate_model::{NodeUrl, Record};
use linerate_store::RunOutcome;

use crate::asked::{Asked, NodesAsked};
use crate::cli::StoreArgs;
use crate::failure::Failure;
use crate::history::Keeper;
use crate::progress::Progress;
use crate::{private, signals};

/// What is to be run.
pub(crate) enum Work<'a> {
    /// A new run. The plan may be changed once it is known whether both nodes share a kernel.
    New(&'a Asked, Adjust<'a>),
    /// A run of the history that goes on.
    Resume(&'a str),
}

/// Changes a plan in the light of whether both nodes share a kernel.
pub(crate) type Adjust<'a> = Box<dyn FnMut(&mut Plan, bool) + 'a>;

/// How it is to be run.
pub(crate) struct Manner<'a> {
    pub(crate) store: &'a StoreArgs,
    pub(crate) keep_lab: bool,
    pub(crate) quiet: bool,
}

/// What came of it: a failure half way keeps the records before it.
pub(crate) struct Measured {
    pub(crate) records: Vec<Record>,
    pub(crate) plan: Plan,
    pub(crate) outcome: Result<Outcome, Failure>,
}

/// What is said of nodes makes no sense in a private lab.
fn check_peer_is_named(asked: &NodesAsked) -> Result<(), Failure> {
    if asked.peer.is_some() {
        return Ok(());
    }
    let elsewhere = asked.dut.as_ref().is_some_and(|dut| *dut != NodeUrl::Local);
    let given = [
        ("--dut", elsewhere),
        ("--link", asked.link.is_some()),
        ("--peer-link", asked.peer_link.is_some()),
        ("--push", asked.push),
        ("--remote-program", asked.remote_program.is_some()),
        ("--secret-file", asked.secret_file.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} needs a PEER: linerate run PEER {option} ...")))
        }
        None => Ok(()),
    }
}

/// Carries a run out.
///
/// # Errors
/// Where it could not begin.
pub(crate) fn measure(work: &mut Work<'_>, manner: &Manner<'_>) -> Result<Measured, Failure> {
    let mut keeper = Keeper::open(manner.store)?;
    let (resumed, nodes_asked, families, most_peers, guests) = match work {
        Work::New(asked, _) => {
            let plan = asked.check()?;
            let guests = guests_of(&plan)?;
            (None, with_guests(asked.nodes.clone(), &guests)?, asked.families(), most_peers(&plan), guests)
        }
        Work::Resume(reference) => {
            let (id, stored, done) = keeper.resume(reference)?;
            let (families, most_peers) = (families_of(&stored.plan), most_peers(&stored.plan));
            let guests = guests_of(&stored.plan)?;
            (Some((id, stored.plan, done)), stored.nodes, families, most_peers, guests)
        }
    };
    check_peer_is_named(&nodes_asked)?;
    let launch = launch_options(&nodes_asked)?;
    let stop = signals::stop_flag()?;
    // Before any thread: an ordinary user's lab needs a user namespace.
    let place = if nodes_asked.peer.is_none() { Some(Place::private(most_peers)?) } else { None };
    signals::arm_second(&stop);
    let nodes = nodes(&nodes_asked, place.as_ref(), most_peers, launch);
    // Programs that we wait for here, such as ssh, end with us; a lab or a guest has to be taken away first.
    let boots = nodes.peers.iter().chain([&nodes.dut]).any(|node| matches!(node, NodeUrl::Vm { .. }));
    let at_once = (place.is_none() && !boots).then(signals::AtOnce::begin);
    let (mut bench, mut hazards) = connect::connect(&nodes, &families)?;
    for guest in guests.iter().skip(1) {
        bench.others.push(other_guest(guest, &nodes, &families)?);
    }
    drop(at_once);
    tell_left_behind(&bench);
    hazards.extend(place.as_ref().and_then(Place::hazard));
    let is_new = resumed.is_none();
    let (run, plan, done) = match (resumed, work) {
        (Some(resumed), _) => resumed,
        (None, Work::New(asked, adjust)) => {
            let mut plan = plan(asked, &bench)?;
            adjust(&mut plan, bench.shares_a_kernel()?);
            (runner::run_id().map_err(Failure::from)?, plan, Vec::new())
        }
        (None, Work::Resume(_)) => return Err(Failure::usage("nothing to go on with")),
    };
    if is_new {
        keeper.begin(&run, &nodes_asked, &plan, &manner.store.tag)?;
    }
    let measured =
        carry_out(&mut bench, &nodes_asked, plan, &run, done, &hazards, &mut keeper, manner.quiet, &stop);
    drop(bench); // the agents go before the namespaces they are in
    let kept = place.map(|place| private::leave(place, manner.keep_lab)).transpose()?.flatten();
    if let Some(kept) = kept {
        kept.tell();
    }
    if keeper.keeps() && !manner.quiet && std::io::stderr().is_terminal() {
        eprintln!("Kept as run {}.", &run[..8.min(run.len())]);
    }
    Ok(measured)
}

/// Says what earlier runs had left changed and was put back, or not.
fn tell_left_behind(bench: &Bench) {
    use linerate_link::restore::Outcome;
    for (_, restored) in &bench.left_behind {
        let silent = match &restored.outcome {
            Outcome::InUse | Outcome::Moot(_) => true,
            Outcome::Done(report) => report.put_back.is_empty() && report.is_complete(),
            Outcome::Failed(_) => false,
        };
        if !silent {
            crate::cmd::restore::lines(restored).iter().for_each(|line| eprintln!("{line}"));
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "all of a run's parts, named once")]
fn carry_out(
    bench: &mut Bench,
    nodes_asked: &NodesAsked,
    plan: Plan,
    run: &str,
    done: Vec<Record>,
    hazards: &[Hazard],
    keeper: &mut Keeper,
    quiet: bool,
    stop: &AtomicBool,
) -> Measured {
    let intervals = plan.combinations.iter().any(|t| t.interval_ns.is_some());
    let mut progress = Progress::new(quiet, intervals, &plan);
    for left_out in &plan.left_out {
        progress.tell(&Event::Skipped(left_out.clone()));
    }
    let mut plan_with = plan.clone();
    let mut records: Vec<Record> = done.clone();
    let mut tell = |event: Event| {
        if let Event::Skipped(left_out) = &event {
            // A run that goes on finds out again.
            if plan_with.left_out.contains(left_out) {
                return;
            }
            plan_with.left_out.push(left_out.clone());
            keeper.set_plan(run, nodes_asked, &plan_with);
        }
        progress.tell(&event);
        if let Event::TrialFinished(mut record) = event {
            record.hazards.splice(0..0, hazards.iter().cloned());
            keeper.append(&record);
            records.push(*record);
        }
    };
    let outcome = course::run(bench, &plan, run, &done, stop, &mut tell);
    progress.finish();
    let ended = match outcome {
        Ok(Outcome::Complete) => RunOutcome::Complete,
        Ok(Outcome::Interrupted) => RunOutcome::Interrupted,
        Err(_) => RunOutcome::Failed,
    };
    let kept = keeper.end(run, ended);
    Measured {
        records,
        plan: plan_with,
        outcome: outcome.map_err(Failure::from).and_then(|o| kept.map(|()| o)),
    }
}

/// The guests that are levels of a factor, in the order in which they are named.
fn guests_of(plan: &Plan) -> Result<Vec<NodeUrl>, Failure> {
    let mut guests: Vec<NodeUrl> = Vec::new();
    for name in plan.combinations.iter().filter_map(bench::node_of) {
        let guest = name.parse().map_err(Failure::usage)?;
        if !guests.contains(&guest) {
            guests.push(guest);
        }
    }
    if !guests.is_empty() && plan.combinations.iter().any(|trial| bench::node_of(trial).is_none()) {
        let words = format!("{NODE_KEY} is a factor of some trials: make it one of all");
        return Err(Failure::usage(words));
    }
    Ok(guests)
}

/// The first of the guests is the dut, and its partner the peer.
fn with_guests(mut nodes: NodesAsked, guests: &[NodeUrl]) -> Result<NodesAsked, Failure> {
    let Some(first) = guests.first() else { return Ok(nodes) };
    if nodes.dut.is_some() || nodes.peer.is_some() {
        let words = format!(
            "{NODE_KEY} names the nodes under test, each with its own partner: leave out PEER and --dut"
        );
        return Err(Failure::usage(words));
    }
    nodes.dut = Some(first.clone());
    nodes.peer = first.other_seat();
    Ok(nodes)
}

/// Boots another guest that is a level of a factor.
fn other_guest(guest: &NodeUrl, nodes: &Nodes, families: &Families) -> Result<Pair, Failure> {
    let peers = guest.other_seat().into_iter().collect();
    let nodes = Nodes { dut: guest.clone(), peers, ..nodes.clone() };
    Ok(connect::connect(&nodes, families)?.0.first)
}

/// The plan for the paths between two nodes.
fn plan(asked: &Asked, bench: &Bench) -> Result<Plan, Failure> {
    let facts: Vec<PathFacts> = bench.first.paths.iter().map(Path::facts).collect();
    asked.plan(&facts)
}

fn most_peers(plan: &Plan) -> u32 {
    plan.combinations.iter().map(|t| t.peers).max().unwrap_or(1)
}

fn families_of(plan: &Plan) -> Families {
    let mut families: Vec<Family> = Vec::new();
    for trial in &plan.combinations {
        if !families.contains(&trial.family) {
            families.push(trial.family);
        }
    }
    Families::All(families)
}

fn launch_options(nodes: &NodesAsked) -> Result<LaunchOptions, Failure> {
    let program =
        std::env::current_exe().map_err(|e| Failure::node(format!("find this program's own file: {e}")))?;
    let secret = nodes.secret_file.as_deref().map(Secret::from_file).transpose().map_err(Failure::usage)?;
    Ok(LaunchOptions {
        program,
        remote_program: nodes.remote_program.clone(),
        push: nodes.push,
        secret,
        ssh_options: nodes.ssh_option.clone(),
        kernel: nodes.kernel.clone(),
        ..LaunchOptions::default()
    })
}

/// The nodes that take part: of the peers that are named as many as any trial needs.
fn nodes(asked: &NodesAsked, place: Option<&Place>, most_peers: u32, launch: LaunchOptions) -> Nodes {
    let own = asked.dut.clone().unwrap_or(NodeUrl::Local);
    let (dut, mut peers) = match (place, asked.peers().as_slice()) {
        // One guest named alone is a whole bench: the NIC under test, and a partner at the other end of its wire.
        (None, [guest @ NodeUrl::Vm { .. }]) if asked.dut.is_none() => {
            (guest.clone(), vec![guest.other_seat().unwrap_or(own)])
        }
        (Some(place), _) => place.nodes(),
        (None, peers) => (own, peers.to_vec()),
    };
    peers.truncate(most_peers as usize);
    let links = PathChoice { dut_link: asked.link.clone(), peer_link: asked.peer_link.clone() };
    Nodes { dut, peers, links, launch }
}
