//! Options of what is done with runs: history, verdicts, reports, trends.

use std::path::PathBuf;

use clap::Args;
use linerate_model::NodeUrl;

use super::{NodeArgs, OutputArgs, StoreArgs, TimingArgs, TrafficArgs};

/// Which history a command looks into.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    /// The history to use, instead of that in $XDG_DATA_HOME/linerate.
    #[arg(long, value_name = "FILE", env = "LINERATE_DB")]
    pub(crate) db: Option<PathBuf>,
}

/// Which runs are meant. Patterns have *, ? and [...].
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// With this tag.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Over this link of the dut.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) link: Option<String>,
    /// With this driver of the dut's link.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) driver: Option<String>,
    /// On this kernel release of the dut.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) kernel: Option<String>,
    /// On this dut, by its host name.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) machine: Option<String>,
    /// With a trial of this workload.
    #[arg(short, long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// Begun then or later: 2026-11-30, 2026-11-30T12:00:00Z, or 7d for seven days ago.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Begun before then.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// At most so many, the newest.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its id, the beginning of it, a tag, or last; or a file of records.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TagArgs {
    /// The run: its id, the beginning of it, a tag, or last.
    pub(crate) run: String,
    /// Letters, digits and . _ : / + @ -
    pub(crate) tag: String,
    /// Take the tag away.
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The runs; all of them where none is named.
    pub(crate) runs: Vec<String>,
    /// File to write; stdout where none is named.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files that `export` wrote, or files of records; - is stdin, as `export` wrote it.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The runs: ids, tags, or last.
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

/// What verdicts are held against.
#[derive(Debug, Args)]
#[command(next_help_heading = "Verdicts")]
pub(crate) struct AgainstArgs {
    /// The smallest change that matters.
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub(crate) margin: String,
    /// Confidence of all verdicts together.
    #[arg(long, value_name = "PERCENT", default_value = "95")]
    pub(crate) confidence: String,
}

/// Verdicts, and what follows from them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Verdicts")]
pub(crate) struct VerdictArgs {
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    /// Exit with 1 if a verdict is one of these: worse, better, undecided, same.
    #[arg(long, value_name = "VERDICTS", value_delimiter = ',')]
    pub(crate) fail_on: Vec<String>,
    /// Metrics to judge: goodput, transactions, packets, cpu, cpu-demand, p50, p90, p99, p99.9, max, lost, retransmits
    /// (the work done, CPU per unit of it, p50 and p99).
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// Print the verdicts as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPARE_EXAMPLES: &str = "\
A run is a file of records, an id, the beginning of one, a tag, or last.

Examples:
  linerate compare v6.17 last --fail-on worse         two runs; what drifted between them counts as a change
  linerate compare last --factor dut.tso              two levels within one interleaved run
  linerate compare last --factor streams=1,8 --margin 2%";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The run that is the base.
    pub(crate) base: String,
    /// The run that is held against it.
    #[arg(conflicts_with = "factor")]
    pub(crate) new: Option<String>,
    /// Compare two levels of this factor within the one run.
    #[arg(long, value_name = "FACTOR[=BASE,NEW]")]
    pub(crate) factor: Option<String>,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

const AB_EXAMPLES: &str = "\
Examples:
  linerate ab ssh:server -w tcp-stream --set dut.tso=on,off
  linerate ab -w tcp-rr --in-flight 1,8 --budget 5m --fail-on worse";

#[derive(Debug, Args)]
#[command(after_help = AB_EXAMPLES)]
pub(crate) struct AbArgs {
    /// The partner of the node under test, or several; a private lab where none is named.
    pub(crate) peer: Vec<NodeUrl>,
    /// Time that may be spent.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) budget: String,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Seed of the order of trials; one is drawn, and recorded, where none is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..1 << 53))]
    pub(crate) seed: Option<u64>,
    /// Print what would run, and stop.
    #[arg(long)]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// No progress on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Runs: files of records, ids, tags, or last. Two are compared.
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,
    /// The page to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Title of the page.
    #[arg(long)]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// goodput, transactions, cpu-dut, p99 ..., or a path in a record's summary, such as latency.max_ns.
    #[arg(default_value = "goodput")]
    pub(crate) metric: String,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Write the plot as SVG.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print values and changes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}
