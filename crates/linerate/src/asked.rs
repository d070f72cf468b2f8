//! What is asked for, wherever it was written: on the command line or in an experiment file.

use std::path::PathBuf;

use linerate_lab::connect::Families;
use linerate_lab::plan::{Plan, Repeats};
use linerate_model::NodeUrl;
use linerate_model::experiment::{Experiment, LeftOut, PathFacts};
use linerate_model::factor::{self, Level};
use linerate_model::trial::{Family, Trial};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Pause after a setting changed, where none is asked for: a link that was retrained is up again by then.
pub(crate) const DEFAULT_SETTLE_NS: u64 = 1_000_000_000;

/// Which nodes, and how to reach them. Stored with the run, so that it can go on; secrets are only named.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodesAsked {
    /// The node under test; none is this machine.
    pub(crate) dut: Option<NodeUrl>,
    /// Its partner; none is a private lab.
    pub(crate) peer: Option<NodeUrl>,
    /// Partners beside that one.
    pub(crate) further_peers: Vec<NodeUrl>,
    pub(crate) link: Option<String>,
    pub(crate) peer_link: Option<String>,
    pub(crate) push: bool,
    pub(crate) remote_program: Option<String>,
    pub(crate) ssh_option: Vec<String>,
    pub(crate) secret_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel: Option<String>,
}

impl NodesAsked {
    /// Names the partners anew.
    pub(crate) fn name_peers(&mut self, peers: Vec<NodeUrl>) {
        let mut peers = peers.into_iter();
        self.peer = peers.next();
        self.further_peers = peers.collect();
    }

    /// The partners by name; none is a private lab.
    pub(crate) fn peers(&self) -> Vec<NodeUrl> {
        self.peer.iter().chain(&self.further_peers).cloned().collect()
    }
}

/// An experiment before anything is known of the nodes.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) nodes: NodesAsked,
    /// Every IP version that has a way, where no group names one.
    pub(crate) usable_families: bool,
    /// Workloads with the levels of their factors.
    pub(crate) groups: Vec<Experiment>,
    /// Combinations that are not to run: those that have all levels of one of these.
    pub(crate) excluded: Vec<Vec<Level>>,
    pub(crate) repeats: Repeats,
    pub(crate) settle_ns: u64,
    /// What a node refuses is left out.
    pub(crate) skip_refused: bool,
    /// Seed of the order; none is one drawn for this run.
    pub(crate) seed: Option<u64>,
}

impl Asked {
    /// Which IP versions are wanted.
    pub(crate) fn families(&self) -> Families {
        let mut named: Vec<Family> = Vec::new();
        for family in self.groups.iter().flat_map(|g| &g.families) {
            if !named.contains(family) {
                named.push(*family);
            }
        }
        if self.usable_families {
            return Families::Usable;
        }
        if named.is_empty() { Families::First } else { Families::All(named) }
    }

    /// The plan between nodes with these paths.
    ///
    /// # Errors
    /// Says which option makes no sense, or that everything was excluded.
    pub(crate) fn plan(&self, paths: &[PathFacts]) -> Result<Plan, Failure> {
        let mut combinations: Vec<Trial> = Vec::new();
        let named = self.nodes.peers().len();
        for group in &self.groups {
            let mut group = group.clone();
            if group.peers.is_empty() {
                group.peers = vec![u32::try_from(named).unwrap_or(u32::MAX).max(1)];
            }
            let wanted: Vec<PathFacts> = if !group.families.is_empty() {
                paths.iter().filter(|p| group.families.contains(&p.family)).copied().collect()
            } else if self.usable_families {
                paths.to_vec()
            } else {
                paths.first().copied().into_iter().collect()
            };
            for trial in group.combinations(&wanted).map_err(Failure::usage)? {
                if !combinations.contains(&trial) && !self.excludes(&trial) {
                    combinations.push(trial);
                }
            }
        }
        let left_out = self.without_peers(&mut combinations, named)?;
        if combinations.is_empty() {
            return Err(Failure::usage("nothing to run: every combination is excluded"));
        }
        let seed = match self.seed {
            Some(seed) => seed,
            None => draw_seed()?,
        };
        Ok(Plan {
            combinations,
            seed,
            repeats: self.repeats,
            settle_ns: self.settle_ns,
            skip_refused: self.skip_refused,
            metrics: Vec::new(),
            left_out,
        })
    }

    /// Leaves out what needs more peers than are named, where that is asked for; a private lab has as many as needed.
    fn without_peers(&self, combinations: &mut Vec<Trial>, named: usize) -> Result<Vec<LeftOut>, Failure> {
        let mut left_out: Vec<LeftOut> = Vec::new();
        if named == 0 {
            return Ok(left_out);
        }
        let reason =
            if named == 1 { "one peer is named".to_owned() } else { format!("{named} peers are named") };
        for trial in combinations.iter().filter(|t| t.peers as usize > named) {
            let levels = format!("peers={}", trial.peers);
            match left_out.iter_mut().find(|known| known.levels == levels) {
                Some(known) => known.combinations += 1,
                None => left_out.push(LeftOut { levels, combinations: 1, reason: reason.clone() }),
            }
        }
        if let Some(first) = left_out.first().filter(|_| !self.skip_refused) {
            return Err(Failure::usage(format!("--{}: {reason}", first.levels.replace('=', " "))));
        }
        combinations.retain(|t| t.peers as usize <= named);
        Ok(left_out)
    }

    /// Nonsense is refused before any node is asked; what depends on the path is checked again once it is known.
    pub(crate) fn check(&self) -> Result<Plan, Failure> {
        let any = |family| PathFacts { family, mtu_bytes: 1500 };
        self.plan(&[any(Family::V4), any(Family::V6)])
    }

    fn excludes(&self, trial: &Trial) -> bool {
        let has = |level: &Level| {
            factor::level(trial, &level.factor).is_some_and(|value| same_value(&value, &level.value))
        };
        self.excluded.iter().any(|levels| levels.iter().all(has))
    }
}

/// Levels may be written in several ways: 64K is 65536.
fn same_value(a: &str, b: &str) -> bool {
    use linerate_model::units::ByteCount;
    a == b || matches!((a.parse::<ByteCount>(), b.parse::<ByteCount>()), (Ok(a), Ok(b)) if a == b)
}

/// Below 2^53, so that every reader of JSON keeps it whole.
fn draw_seed() -> Result<u64, Failure> {
    let id = linerate_lab::runner::run_id().map_err(Failure::node)?;
    // Invariant: an id is 32 hex digits.
    Ok(u64::from_str_radix(&id[..13], 16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;

    fn group(options: &[(&str, &str)], settings: &[&str]) -> Experiment {
        let mut experiment = Experiment::default();
        for (name, text) in options {
            options::set(&mut experiment, name, text).unwrap();
        }
        for text in settings {
            options::add_setting(&mut experiment, text).unwrap();
        }
        experiment
    }

    fn asked(groups: Vec<Experiment>, excluded: Vec<Vec<Level>>) -> Asked {
        Asked {
            nodes: NodesAsked::default(),
            usable_families: false,
            groups,
            excluded,
            repeats: Repeats::Fixed(1),
            settle_ns: DEFAULT_SETTLE_NS,
            skip_refused: false,
            seed: Some(1),
        }
    }

    fn level(factor: &str, value: &str) -> Level {
        Level { factor: factor.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn two_factors_of_two_levels_are_four_combinations() {
        let streams = group(
            &[("workload", "tcp-stream"), ("send", "write,zerocopy"), ("streams", "8")],
            &["dut.tso=on,off"],
        );
        assert_eq!(asked(vec![streams.clone()], Vec::new()).check().unwrap().combinations.len(), 4);
        let without = vec![vec![level("dut.tso", "off"), level("send", "zerocopy")]];
        let plan = asked(vec![streams], without).check().unwrap();
        assert_eq!(plan.combinations.len(), 3);
    }

    #[test]
    fn groups_add_up_and_doubles_run_once() {
        let sizes = group(&[("workload", "tcp-stream"), ("size", "64K,128K")], &[]);
        let one = group(&[("workload", "tcp-stream"), ("size", "131072")], &[]);
        let rr = group(&[("workload", "tcp-rr"), ("family", "6")], &[]);
        let plan = asked(vec![sizes, one, rr], Vec::new()).check().unwrap();
        assert_eq!(plan.combinations.len(), 3);
        assert_eq!(plan.combinations[2].family, Family::V6);
    }

    #[test]
    fn excluding_everything_is_a_mistake() {
        let one = group(&[("workload", "tcp-stream"), ("size", "64K")], &[]);
        assert!(asked(vec![one], vec![vec![level("size", "65536")]]).check().is_err());
    }
}
