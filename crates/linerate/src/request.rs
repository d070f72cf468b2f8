//! From the command line's words to what is asked for.

use linerate_lab::plan::{Repeats, Until};
use linerate_lab::standing;
use linerate_model::NodeUrl;
use linerate_model::experiment::{Experiment, Timing};
use linerate_model::units::parse_seconds_ns;
use linerate_model::workload::WorkloadKind;

use crate::asked::{Asked, DEFAULT_SETTLE_NS, NodesAsked};
use crate::cli::{AbArgs, NodeArgs, RepeatArgs, RunArgs, TimingArgs, TrafficArgs};
use crate::failure::Failure;
use crate::{experiment_file, options, profile_file};

/// Window of each trial of the quick suite: with warm-up and overhead 14 trials take about half a minute.
const QUICK: Timing = Timing { duration_ns: 1_500_000_000, warmup_ns: 300_000_000, interval_ns: None };
/// Most repeats of a stop rule, where nothing else is asked for.
const DEFAULT_MAX_REPEATS: u32 = 30;
/// Width of a stop rule's interval, where nothing else is asked for.
const DEFAULT_WIDTH: f64 = 0.02;

/// What `linerate run` is asked for: a file, or options; options win over the file.
pub(crate) fn asked(args: &RunArgs) -> Result<Asked, Failure> {
    let mut asked = match &args.experiment.file {
        Some(path) => {
            if let Some(option) = first_traffic_option(&args.traffic) {
                let why = "the file says what runs; leave one of the two out";
                return Err(Failure::usage(format!("--{option} with -f: {why}")));
            }
            experiment_file::read(path)?
        }
        None => from_options(&args.traffic)?,
    };
    override_nodes(&mut asked.nodes, &args.nodes, &args.peer);
    override_timing(&mut asked, &args.timing)?;
    if let Some(repeats) = repeats(&args.repeat)? {
        asked.repeats = repeats;
    }
    asked.seed = args.experiment.seed.or(asked.seed);
    override_families(&mut asked, &args.nodes)?;
    Ok(asked)
}

/// What `linerate ab` is asked for; what ends it is the caller's.
pub(crate) fn asked_for_ab(args: &AbArgs) -> Result<Asked, Failure> {
    if args.traffic.workload.is_empty() && args.traffic.profile.is_empty() {
        return Err(Failure::usage("ab needs a workload: -w tcp-stream, or --profile FILE"));
    }
    let mut asked = from_options(&args.traffic)?;
    override_nodes(&mut asked.nodes, &args.nodes, &args.peer);
    override_timing(&mut asked, &args.timing)?;
    override_families(&mut asked, &args.nodes)?;
    asked.seed = args.seed;
    Ok(asked)
}

/// What the options of traffic ask for; the quick suite where no workload is named.
pub(crate) fn from_options(traffic: &TrafficArgs) -> Result<Asked, Failure> {
    let quick = traffic.workload.is_empty() && traffic.profile.is_empty();
    let mut experiment = Experiment::default();
    if quick {
        experiment.workloads = WorkloadKind::ALL.to_vec();
        experiment.timing = QUICK;
    }
    for (name, text) in given(traffic) {
        options::set(&mut experiment, name, &text).map_err(|e| Failure::usage(format!("--{name}: {e}")))?;
    }
    if !traffic.profile.is_empty() {
        experiment.workloads.push(WorkloadKind::Profile);
        experiment.profiles =
            traffic.profile.iter().map(|path| profile_file::read(path)).collect::<Result<_, _>>()?;
    }
    for text in &traffic.set {
        options::add_setting(&mut experiment, text).map_err(|e| Failure::usage(format!("--set: {e}")))?;
    }
    Ok(Asked {
        nodes: NodesAsked::default(),
        usable_families: quick,
        groups: vec![experiment],
        excluded: Vec::new(),
        repeats: Repeats::Fixed(1),
        settle_ns: DEFAULT_SETTLE_NS,
        skip_refused: false,
        seed: None,
    })
}

/// The options that were given, by name, as text.
fn given(traffic: &TrafficArgs) -> Vec<(&'static str, String)> {
    let join = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
    let numbers =
        |all: &[u32]| (!all.is_empty()).then(|| all.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    let flag = |on: bool| on.then(|| "true".to_owned());
    [
        ("workload", join(&traffic.workload)),
        ("size", traffic.size.clone()),
        ("peers", numbers(&traffic.peers)),
        ("streams", numbers(&traffic.streams)),
        ("send", join(&traffic.send)),
        ("socket-buffer", traffic.socket_buffer.clone()),
        ("nodelay", flag(traffic.nodelay)),
        ("mss", numbers(&traffic.mss)),
        ("congestion", join(&traffic.congestion)),
        ("request", traffic.request.clone()),
        ("response", traffic.response.clone()),
        ("in-flight", numbers(&traffic.in_flight)),
        ("rate", join(&traffic.rate)),
        ("tos", traffic.tos.clone()),
        ("one-connection", flag(traffic.one_connection)),
        ("pin", traffic.pin.clone()),
        ("verify", flag(traffic.verify)),
    ]
    .into_iter()
    .filter_map(|(name, text)| Some((name, text?)))
    .collect()
}

fn first_traffic_option(traffic: &TrafficArgs) -> Option<&'static str> {
    let set = (!traffic.set.is_empty()).then_some("set");
    let profile = (!traffic.profile.is_empty()).then_some("profile");
    given(traffic).first().map(|(name, _)| *name).or(profile).or(set)
}

fn override_nodes(nodes: &mut NodesAsked, args: &NodeArgs, peers: &[NodeUrl]) {
    let take = |slot: &mut Option<String>, given: &Option<String>| {
        if given.is_some() {
            slot.clone_from(given);
        }
    };
    if !peers.is_empty() {
        nodes.name_peers(peers.to_vec());
    }
    if let Some(dut) = &args.dut {
        nodes.dut = Some(dut.clone());
    }
    take(&mut nodes.link, &args.link);
    take(&mut nodes.peer_link, &args.peer_link);
    take(&mut nodes.remote_program, &args.remote_program);
    take(&mut nodes.kernel, &args.kernel);
    nodes.push |= args.push;
    if !args.ssh_option.is_empty() {
        nodes.ssh_option.clone_from(&args.ssh_option);
    }
    if args.secret_file.is_some() {
        nodes.secret_file.clone_from(&args.secret_file);
    }
}

fn override_families(asked: &mut Asked, args: &NodeArgs) -> Result<(), Failure> {
    if args.family.is_empty() {
        return Ok(());
    }
    let families = args.family.join(",");
    for group in &mut asked.groups {
        options::set(group, "family", &families).map_err(|e| Failure::usage(format!("--family {e}")))?;
    }
    asked.usable_families = false;
    Ok(())
}

fn override_timing(asked: &mut Asked, args: &TimingArgs) -> Result<(), Failure> {
    let seconds = |text: &Option<String>, option: &str| {
        let parse = |t: &str| parse_seconds_ns(t).map_err(|e| Failure::usage(format!("{option}: {e}")));
        text.as_deref().map(parse).transpose()
    };
    let duration_ns = seconds(&args.time, "-t")?;
    let warmup_ns = seconds(&args.warmup, "--warmup")?;
    let interval_ns = seconds(&args.interval, "--interval")?;
    for group in &mut asked.groups {
        let timing = &mut group.timing;
        timing.duration_ns = duration_ns.unwrap_or(timing.duration_ns);
        timing.warmup_ns = warmup_ns.unwrap_or(timing.warmup_ns);
        timing.interval_ns = interval_ns.or(timing.interval_ns);
        if let Some(bytes) = &args.bytes {
            options::set(group, "bytes", bytes).map_err(|e| Failure::usage(format!("--bytes: {e}")))?;
        }
        group.transactions = args.transactions.or(group.transactions);
    }
    if let Some(ns) = seconds(&args.settle, "--settle")? {
        asked.settle_ns = ns;
    }
    Ok(())
}

/// What ends the run; `None` where nothing is said of it.
fn repeats(args: &RepeatArgs) -> Result<Option<Repeats>, Failure> {
    let asks_for_rule = args.confidence.is_some()
        || args.width.is_some()
        || args.min_repeat.is_some()
        || args.max_repeat.is_some();
    if !asks_for_rule {
        return Ok(args.repeat.map(Repeats::Fixed));
    }
    let confidence_percent = args.confidence.as_deref().map(|t| percent(t, "--confidence")).transpose()?;
    let width = args.width.as_deref().map(|t| percent(t, "--width")).transpose()?;
    until(confidence_percent, width.map(|w| w / 100.0), args.min_repeat, args.max_repeat)
        .map(|until| Some(Repeats::Until(until)))
        .map_err(Failure::usage)
}

/// A stop rule, with what is not said filled in and all of it checked.
pub(crate) fn until(
    confidence_percent: Option<f64>,
    width: Option<f64>,
    min: Option<u32>,
    max: Option<u32>,
) -> Result<Until, String> {
    let min = min.unwrap_or(1);
    let until = Until {
        confidence_percent: confidence_percent.unwrap_or(95.0),
        width: width.unwrap_or(DEFAULT_WIDTH),
        min,
        max: max.unwrap_or_else(|| DEFAULT_MAX_REPEATS.max(min)),
    };
    standing::rule(&until).map_err(|e| e.to_string())?;
    Ok(until)
}

/// `95`, `2%`, `0.5 %`.
pub(crate) fn percent(text: &str, option: &str) -> Result<f64, Failure> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim();
    let value = number.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    value.ok_or_else(|| Failure::usage(format!("{option} {text}: must be a percentage, as in 2%")))
}
