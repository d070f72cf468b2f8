//! The command line of `linerate qualify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_model::NodeUrl;
use linerate_model::qualification::Level;
use linerate_qualify::case::OptIn;
use linerate_qualify::selection::Selection;
use linerate_qualify::topology::Topology;

use super::output::OutputArgs;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  linerate qualify                             the quick set on a private veth pair: does the suite itself work?
  linerate qualify ssh:tester --link eth1      qualify this machine's eth1 with what is at its other end
  linerate qualify netns:b --dut netns:a --level core
  linerate qualify --explain CSUM-03           what a case does, what must hold, when it is skipped
  linerate qualify ssh:tester --link eth1 --case 'csum.*' --seed 42 --repeat 10 --stop-on-fail

Where neither PEER nor --topology is given, the names of the kernel's network selftests are read: NETIF, LOCAL_V4,
LOCAL_V6, REMOTE_V4, REMOTE_V6, REMOTE_TYPE (netns, ssh, agent), REMOTE_ARGS, DISRUPTIVE, KSFT_MACHINE_SLOW, also from a
file net.config here; exit codes are then theirs: 0 passed, 1 failed, 2 failed as expected, 3 passed unexpectedly,
4 skipped.

Exit codes: 0 no case failed, 1 one did, 2 usage, 3 a node or the link failed, 4 no permission, 5 interrupted (what was
found is shown).";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QualifyArgs {
    /// The node at the other end of the link; without one, a private veth pair.
    pub(crate) peer: Option<NodeUrl>,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    /// List all cases.
    #[arg(long, conflicts_with_all = ["plan", "explain"])]
    pub(crate) list: bool,
    /// Print which cases would run, and why others would not, and stop.
    #[arg(long, conflicts_with = "explain")]
    pub(crate) plan: bool,
    /// Explain a case.
    #[arg(long, value_name = "CASE")]
    pub(crate) explain: Option<String>,
    /// Seed of every random choice; one is drawn, and told, where none is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..1 << 53))]
    pub(crate) seed: Option<u64>,
    /// Put a software NIC with these faults between the ends of the private lab, to see that the suite finds them; 'none' is
    /// a NIC without faults.
    #[arg(long, value_name = "FAULT,...", conflicts_with_all = ["peer", "topology", "keep_lab"])]
    pub(crate) inject: Option<String>,
    /// Leave the private lab up, and say how to enter and remove it.
    #[arg(long, conflicts_with_all = ["peer", "topology"])]
    pub(crate) keep_lab: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeArgs {
    /// The node under test; this machine where none is named.
    #[arg(long, value_name = "NODE")]
    pub(crate) dut: Option<NodeUrl>,
    /// Link under test: name, hardware address or bus address.
    #[arg(long, value_name = "IF")]
    pub(crate) link: Option<String>,
    /// Link at the other end; found by probes where none is named.
    #[arg(long, value_name = "IF")]
    pub(crate) peer_link: Option<String>,
    /// Read both ends from a TOML file.
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Copy linerate to ssh: nodes first, and remove it afterwards.
    #[arg(long)]
    pub(crate) push: bool,
    /// Name or path of linerate on ssh: nodes.
    #[arg(long, value_name = "PATH", conflicts_with = "push")]
    pub(crate) remote_program: Option<String>,
    /// A word for ssh's own command line, as often as needed.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh_option: Vec<String>,
    /// Kernel of vm: nodes.
    #[arg(long, value_name = "KERNEL")]
    pub(crate) kernel: Option<String>,
    /// Qualify the link also where the control path goes over it: cases may cut it.
    #[arg(long)]
    pub(crate) even_control_path: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cases")]
pub(crate) struct CaseArgs {
    /// Only these: CSUM-03, 'csum.*', 'tso.tso-01.v6*'.
    #[arg(long = "case", value_name = "GLOB", value_delimiter = ',')]
    pub(crate) globs: Vec<String>,
    /// Only these areas: tx, csum, life ...
    #[arg(long, value_name = "AREA", value_delimiter = ',')]
    pub(crate) area: Vec<String>,
    /// How much: quick (under a minute), core, extended, full.
    #[arg(long, value_enum, default_value_t = LevelName::Quick)]
    pub(crate) level: LevelName,
    /// Whether cases may take the link down.
    #[arg(long, value_name = "yes|no", value_enum)]
    pub(crate) disruptive: Option<Truth>,
    /// What can do harm and is not run otherwise: nvm, pm, pci-reset, firmware.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) allow: Vec<OptIn>,
    /// Run everything this often.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// End with the first case that fails.
    #[arg(long)]
    pub(crate) stop_on_fail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelName {
    Quick,
    Core,
    Extended,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Truth {
    Yes,
    No,
}

impl QualifyArgs {
    /// The cases that are asked for; the command line stands above the topology.
    pub(crate) fn selection(&self, topology: &Topology) -> Result<Selection, Failure> {
        let cases = &self.cases;
        let level = match cases.level {
            LevelName::Quick => Level::Quick,
            LevelName::Core => Level::Core,
            LevelName::Extended => Level::Extended,
            LevelName::Full => Level::Full,
        };
        Ok(Selection {
            level,
            cases: cases.globs.clone(),
            areas: cases.area.clone(),
            disruptive: match cases.disruptive {
                Some(given) => given == Truth::Yes,
                None => topology.disruptive.unwrap_or(true),
            },
            allow: cases.allow.iter().chain(&topology.allow).copied().collect(),
            repeat: cases.repeat,
            stop_on_fail: cases.stop_on_fail,
        })
    }
}
