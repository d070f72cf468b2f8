//! The command line.

mod runs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use linerate_model::NodeUrl;

use crate::serve::args::{SERVE_EXAMPLES, ServeArgs};

pub(crate) use self::runs::*;

const EXAMPLES: &str = "\
Examples:
  linerate                                     the quick suite in a private lab (two namespaces, a veth pair)
  linerate run ssh:server --link eth1          the quick suite from this machine's eth1 to a server
  linerate run tcp:10.1.2.3 -w tcp-stream -t 10
                                               one TCP stream to a `linerate serve`
  linerate run netns:blue --dut netns:red -w tcp-stream --size 128,...,64K
                                               the message-size sweep between two namespaces
  linerate serve --allow 10.0.0.0/8            be the far end for others: traffic only";

/// Measures what a network link, its driver and the stack above it carry, and what that costs in CPU on both ends.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What to do; `run` where nothing is said.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure between two nodes; without a peer, in a private lab on this machine.
    Run(Box<RunArgs>),
    /// Qualify a link and its driver, with the node at its other end as a neutral observer.
    Qualify(Box<crate::cmd::qualify::QualifyArgs>),
    /// Tell what changed between two runs, or two levels of one factor.
    Compare(CompareArgs),
    /// Run two levels of one factor in turn until it is clear which is better.
    Ab(Box<AbArgs>),
    /// Write runs as one page of HTML.
    Report(ReportArgs),
    /// Plot a metric over the history and mark where it changed.
    Trend(TrendArgs),
    /// List the runs of the history.
    History(HistoryArgs),
    /// Show a run of the history again.
    Show(ShowArgs),
    /// Give a run a tag, or take one away.
    Tag(TagArgs),
    /// Write runs of the history to a file that `import` reads.
    Export(ExportArgs),
    /// Take runs that `export` wrote into the history.
    Import(ImportArgs),
    /// Remove runs from the history.
    Rm(RmArgs),
    /// Be the far end for others: traffic only, no setting is changed and no command run.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// List, or remove, labs that --keep-lab left up.
    Lab(LabArgs),
    /// Be netperf: its options, its tables.
    #[command(disable_help_flag = true)]
    Netperf(RawArgs),
    /// Be netserver: its options, many clients at a time.
    #[command(disable_help_flag = true)]
    Netserver(RawArgs),
    /// List links, show one in full, or show what differs between two nodes.
    Links(crate::cmd::links::LinksArgs),
    /// List what can be set on a node, what it is now, and what it takes.
    Settings(crate::cmd::settings::SettingsArgs),
    /// Put back settings that a killed linerate left changed; every run does so at its start.
    Restore(crate::cmd::restore::RestoreArgs),
    /// Be iperf3: its options, its lines, its JSON.
    #[command(disable_help_flag = true)]
    Iperf3(RawArgs),
    /// Be ttcp: its options, its lines.
    #[command(disable_help_flag = true)]
    Ttcp(RawArgs),
    /// Make links netperf, netserver, iperf3, uperf and ttcp to this program in a directory.
    InstallAliases(AliasArgs),
    /// Be uperf: its profiles, its options, its lines.
    #[command(disable_help_flag = true)]
    Uperf(RawArgs),
    /// Emulated NICs with their real drivers: get a kernel, list profiles, boot a guest.
    Vm(crate::cmd::vm::VmArgs),
    /// The agent that linerate starts on each node.
    #[command(hide = true)]
    Agent(AgentArgs),
    /// The first process of a guest.
    #[command(hide = true)]
    Guest(crate::cmd::guest::GuestArgs),
}

impl Default for Command {
    fn default() -> Self {
        let Cli { command } = Cli::parse_from(["linerate", "run"]);
        command.unwrap_or_else(|| unreachable!("a command is named on the line above"))
    }
}

const RUN_EXAMPLES: &str = "\
Nodes: local, netns:NAME, ssh:[USER@]HOST (your ssh config applies), tcp:HOST[:PORT] (a `linerate serve` there),
vm:PROFILE (a guest with an emulated NIC; alone it is the dut, and its own partner the peer).
Sizes take K, M, G (1024); rates k, m, g (1000). A list runs a trial for each value, '...' continues the doubling.

Examples:
  linerate run --keep-lab                      leave the private lab up, to look around in it
  linerate run ssh:server --push -w tcp-stream,tcp-reverse --family 4,6
  linerate run tcp:server -w udp-stream --size 64 --rate 200kpps
  linerate run netns:b --dut netns:a -w tcp-rr --in-flight 1,8 --request 64 --response 1K
  linerate run ssh:server -w tcp-stream --set dut.tso=on,off --send write,zerocopy --streams 8 --repeat 6
                                               the four combinations, six times in randomised blocks
  linerate run -w tcp-stream --confidence 95 --width 2%         repeat until it is known within 2 %
  linerate run -f examples/message-size.toml --plan             what a file would run
  linerate run netns:b --dut netns:a -w tcp-rr --rate 10krps     open loop: latency from when a request was due
  linerate run ssh:a ssh:b ssh:c --link eth1 -w tcp-rr --peers 1,3   one client, and three at once
  linerate run tcp:server -w tcp-stream --verify --json -o run.json
  linerate run vm:e1000 -w tcp-stream          the real e1000 driver on an emulated card (docs/vm.md)

Exit codes: 0 done, 2 usage, 3 a node or the network failed, 4 no permission, 5 interrupted (what was measured is shown).";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// The partner of the node under test; of several each does the same with it at the same time.
    pub(crate) peer: Vec<NodeUrl>,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    #[command(flatten)]
    pub(crate) repeat: RepeatArgs,
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeArgs {
    /// The node under test; this machine where none is named.
    #[arg(long, value_name = "NODE")]
    pub(crate) dut: Option<NodeUrl>,
    /// Link under test on the dut.
    #[arg(long, value_name = "IF")]
    pub(crate) link: Option<String>,
    /// Link on the peer.
    #[arg(long, value_name = "IF")]
    pub(crate) peer_link: Option<String>,
    /// IP version: 4, 6 or 4,6.
    #[arg(long, value_name = "4|6", value_delimiter = ',')]
    pub(crate) family: Vec<String>,
    /// Copy linerate to ssh: nodes first, and remove it afterwards.
    #[arg(long)]
    pub(crate) push: bool,
    /// Name or path of linerate on ssh: nodes.
    #[arg(long, value_name = "PATH", conflicts_with = "push")]
    pub(crate) remote_program: Option<String>,
    /// A word for ssh's own command line, as often as needed (-F FILE is: --ssh-option=-F --ssh-option=FILE).
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh_option: Vec<String>,
    /// File with the secret of a tcp: node.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Kernel of vm: nodes: a version that `linerate vm list` shows, or the folder of an unpacked package.
    #[arg(long, value_name = "KERNEL")]
    pub(crate) kernel: Option<String>,
    /// Leave the private lab up, and say how to enter and remove it.
    #[arg(long, conflicts_with = "peer")]
    pub(crate) keep_lab: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(crate) struct TrafficArgs {
    /// tcp-stream, tcp-reverse, tcp-bidir, tcp-rr, tcp-crr, udp-stream, udp-rr; all where none is named.
    #[arg(short, long, value_name = "WORKLOAD", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,
    /// A uperf profile as a workload; its hosts are the peer. May be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Vec<PathBuf>,
    /// Bytes a call of streams (TCP: 128K; UDP: what fills a packet).
    #[arg(long, value_name = "SIZES")]
    pub(crate) size: Option<String>,
    /// Peers that take part at once (all that are named; in a private lab 1).
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) peers: Vec<u32>,
    /// Parallel streams, with each peer.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) streams: Vec<u32>,
    /// How TCP streams send: write, sendfile or zerocopy (MSG_ZEROCOPY).
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    pub(crate) send: Vec<String>,
    /// Socket buffers, as given to the kernel.
    #[arg(long, value_name = "SIZES")]
    pub(crate) socket_buffer: Option<String>,
    /// Send small segments at once (TCP_NODELAY).
    #[arg(long)]
    pub(crate) nodelay: bool,
    /// TCP maximum segment size, bytes.
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub(crate) mss: Vec<u32>,
    /// TCP congestion control.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) congestion: Vec<String>,
    /// Request bytes.
    #[arg(long, value_name = "SIZES")]
    pub(crate) request: Option<String>,
    /// Response bytes.
    #[arg(long, value_name = "SIZES")]
    pub(crate) response: Option<String>,
    /// Requests outstanding on each connection.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) in_flight: Vec<u32>,
    /// Total rate, paced evenly: bits, or with pps packets, or with rps requests a second.
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    pub(crate) rate: Vec<String>,
    /// TOS or traffic class byte (0 to 255, or 0x..).
    #[arg(long, value_name = "BYTE")]
    pub(crate) tos: Option<String>,
    /// Both directions of tcp-bidir over one connection.
    #[arg(long)]
    pub(crate) one_connection: bool,
    /// CPUs of the traffic threads: dut=0,peer=1 or dut=0-3.
    #[arg(long, value_name = "dut=CPUS,peer=CPUS")]
    pub(crate) pin: Option<String>,
    /// Check every payload byte at the receiver.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Change a setting for the run, and put it back: dut.tso=off, peer.gro=on,off, both.mtu=9000; as often as needed.
    #[arg(long, value_name = "NODE.SETTING=VALUES")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub(crate) struct TimingArgs {
    /// Seconds of each trial's window (5; the quick suite 1.5).
    #[arg(short, long, value_name = "SECONDS")]
    pub(crate) time: Option<String>,
    /// End after this many bytes instead.
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    pub(crate) bytes: Option<String>,
    /// End after this many transactions instead.
    #[arg(long, value_name = "N", conflicts_with_all = ["time", "bytes"])]
    pub(crate) transactions: Option<u64>,
    /// Pause after a setting changed, seconds (1).
    #[arg(long, value_name = "SECONDS")]
    pub(crate) settle: Option<String>,
    /// Seconds of traffic before the window (0.5).
    #[arg(long, value_name = "SECONDS")]
    pub(crate) warmup: Option<String>,
    /// Show, and record, intervals of this many seconds.
    #[arg(short, long, value_name = "SECONDS")]
    pub(crate) interval: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Repeats")]
pub(crate) struct RepeatArgs {
    /// Run everything this often, in randomised blocks (1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: Option<u32>,
    /// Repeat until goodput or transaction rate, and CPU, are known with this confidence (95).
    #[arg(long, value_name = "PERCENT", conflicts_with = "repeat")]
    pub(crate) confidence: Option<String>,
    /// ... within this much of their median (2%).
    #[arg(long, value_name = "PERCENT", conflicts_with = "repeat")]
    pub(crate) width: Option<String>,
    /// ... but at least so often (6 for 95 %).
    #[arg(long, value_name = "N", conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) min_repeat: Option<u32>,
    /// ... and at most so often (30).
    #[arg(long, value_name = "N", conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_repeat: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment")]
pub(crate) struct ExperimentArgs {
    /// Run an experiment file (docs/experiments.md).
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print what would run, in which order and for how long, and stop.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) plan: bool,
    /// Seed of the order of trials; one is drawn, and recorded, where none is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..1 << 53))]
    pub(crate) seed: Option<u64>,
    /// Go on with an interrupted run of the history: its id, a tag, or last.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "seed", "peer", "no_store"])]
    pub(crate) resume: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "History")]
pub(crate) struct StoreArgs {
    /// The history to use, instead of that in $XDG_DATA_HOME/linerate.
    #[arg(long, value_name = "FILE", env = "LINERATE_DB")]
    pub(crate) db: Option<PathBuf>,
    /// Keep the run out of the history.
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Give the run a tag, as often as needed.
    #[arg(long, value_name = "TAG", conflicts_with = "no_store")]
    pub(crate) tag: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print records as JSON (docs/record.md).
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print one CSV row a trial.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write the records as JSON to FILE as well.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Factors whose levels are the rows of the table, with commas.
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', conflicts_with_all = ["json", "csv"])]
    pub(crate) rows: Vec<String>,
    /// Factor whose levels are the columns of the table.
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["json", "csv"])]
    pub(crate) cols: Option<String>,
    /// Say for each trial what evidence names its limit.
    #[arg(long)]
    pub(crate) explain: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: Option<LabAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// List labs.
    List,
    /// Remove a lab.
    Remove {
        /// Its id, as `linerate lab` shows it.
        id: String,
    },
    /// Hold a lab of an ordinary user up until a signal comes.
    #[command(hide = true)]
    Hold,
}

/// A stand-in's own command line, as it came.
#[derive(Debug, Args)]
pub(crate) struct RawArgs {
    /// Its options, as that tool takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AliasArgs {
    /// Where the links go; put it early in PATH.
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Speak over stdin and stdout.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Enter this network namespace first.
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
}
