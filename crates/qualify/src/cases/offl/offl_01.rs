//! OFFL-01: features on and off under traffic.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "OFFL-01",
    title: "features on and off under traffic",
    does: "Pairs of all offloads that can be changed are switched while TCP and UDP flows run.",
    holds: "Data is right in every state, what is set reads back, all goes back, the link stays up unless \
           the driver always resets it.",
    skipped: "A feature is fixed.",
    source: "LNST, ksft, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

/// What is switched, in an order in which each comes behind those that it needs.
const FEATURES: [&str; 15] = [
    "rx",
    "tx",
    "sg",
    "tso",
    "gso",
    "tx-udp-segmentation",
    "gro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "lro",
    "rx-gro-hw",
    "rxvlan",
    "txvlan",
    "rxhash",
    "ntuple",
];
/// A feature and what it needs, or does not go with (netdev_fix_features in net/core/dev.c): only then may the kernel
/// refuse it, or leave it off.
const NEEDS: [(&str, &str); 8] = [
    ("sg", "tx"),
    ("tso", "tx"),
    ("tso", "sg"),
    ("gso", "sg"),
    ("tx-udp-segmentation", "tx"),
    ("tx-udp-segmentation", "sg"),
    ("lro", "rx"),
    ("rx-gro-hw", "rx"),
];
const NOT_WITH: [(&str, &str); 2] = [("lro", "rx-gro-hw"), ("rx-gro-list", "rx-gro-hw")];
/// How many states are drawn to find the one that has most pairs that were not tried yet.
const DRAWN: usize = 24;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let settings = bench.dut.settings()?;
    let can_switch = |name: &str| settings.iter().any(|setting| setting.key == name && setting.changeable);
    let features: Vec<&str> = FEATURES.into_iter().filter(|name| can_switch(name)).collect();
    if features.is_empty() {
        return Err(Trouble::no_feature("every feature is fixed"));
    }
    let states = states(bench, features.len());
    bench.measure("features switched", features.len() as f64, "");
    bench.measure("states", states.len() as f64, "");
    let running = bench.start_running()?;
    for state in &states {
        for (feature, on) in features.iter().zip(state) {
            switch(bench, &features, state, feature, *on)?;
        }
        let on: Vec<&str> =
            features.iter().zip(state).filter(|(_, on)| **on).map(|(name, _)| *name).collect();
        let words = format!("with {} of {} on", on.join(" "), features.join(" "));
        let limit = bench.patient(Duration::from_secs(10));
        if let Err(why) = bench.dut.await_carrier(limit)? {
            bench.fail(ReasonCode::Link, format!("no carrier {words}: {why}"));
            return Ok(());
        }
        if !bench.still_running(&running, &words)? {
            return Ok(());
        }
    }
    bench.finish_running(&running)
}

fn switch(
    bench: &mut Bench,
    features: &[&str],
    state: &[bool],
    feature: &str,
    on: bool,
) -> Result<(), Trouble> {
    let value = if on { "on" } else { "off" };
    let answer = bench.dut.try_set(feature, value)?;
    let now = bench.dut.setting(feature)?.unwrap_or_default();
    if answer.is_ok() && now == value {
        return Ok(());
    }
    // One that is fixed is whatever it is: its dependants are not judged by it.
    let is_off = |name: &str| features.iter().position(|f| *f == name).is_none_or(|at| !state[at]);
    let lacks = NEEDS.iter().any(|(who, needs)| *who == feature && is_off(needs));
    let clashes = NOT_WITH
        .iter()
        .any(|(one, other)| (*one == feature && !is_off(other)) || (*other == feature && !is_off(one)));
    if on && (lacks || clashes) {
        return Ok(());
    }
    match answer {
        Err(why) => bench.fail(ReasonCode::Refused, format!("{feature} {value}: {why}")),
        Ok(()) => bench.fail(ReasonCode::Readback, format!("{feature} was set {value} and reads '{now}'")),
    }
    Ok(())
}

/// States of so many features in which each pair of them is both on, both off, and one without the other.
fn states(bench: &mut Bench, count: usize) -> Vec<Vec<bool>> {
    let pairs = |state: &[bool]| -> BTreeSet<(usize, usize, bool, bool)> {
        let first = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        first.map(|(a, b)| (a, b, state[a], state[b])).collect()
    };
    let mut states = vec![vec![false; count], vec![true; count]];
    let mut tried: BTreeSet<_> = states.iter().flat_map(|state| pairs(state)).collect();
    while tried.len() < count * (count - 1) * 2 {
        let drawn = (0..DRAWN).map(|_| (0..count).map(|_| bench.rng().below(2) == 1).collect::<Vec<bool>>());
        let drawn: Vec<Vec<bool>> = drawn.collect();
        let new = |state: &Vec<bool>| pairs(state).difference(&tried).count();
        let Some(best) = drawn.into_iter().max_by_key(new) else { break };
        tried.extend(pairs(&best));
        states.push(best);
    }
    states
}
