//! `linerate links`: the links of a node, one in full, or what differs between two.

use std::path::Path;

use clap::Args;
use linerate_agent::node::Node;
use linerate_agent::protocol::Memory;
use linerate_link::inventory::Inventory;
use linerate_model::environment::LinkInfo;
use linerate_model::exit::ExitCode;
use linerate_model::{NodeUrl, Record};

use crate::failure::Failure;
use crate::layout::hex_dump;
use crate::link_diff::{self, Described};
use crate::link_text;
use crate::reach::{ReachArgs, only_link, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct LinksArgs {
    /// Whose links.
    #[arg(default_value = "local")]
    node: NodeUrl,
    /// Show this one in full.
    #[arg(long, value_name = "IF")]
    link: Option<String>,
    /// Print all as JSON.
    #[arg(long)]
    json: bool,
    /// Show what differs from the links of another node, or from the dut's link of a record in a file.
    #[arg(long, value_name = "NODE|FILE", conflicts_with_all = ["registers", "eeprom"])]
    diff: Option<String>,
    /// The other node's link to compare with; the one of the same name where none is named.
    #[arg(long, value_name = "IF", requires = "diff", requires = "link")]
    diff_link: Option<String>,
    /// Dump the device's registers.
    #[arg(long, conflicts_with = "json")]
    registers: bool,
    /// Dump the EEPROM of the device and of the plugged-in module.
    #[arg(long, conflicts_with = "json")]
    eeprom: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

pub(crate) fn run(args: LinksArgs) -> Result<ExitCode, Failure> {
    let mut node = args.reach.connect(&args.node)?;
    if args.registers || args.eeprom {
        return dump(&mut node, &args);
    }
    let links = node.inventory(args.link.as_deref())?;
    if let Some(other) = &args.diff {
        return diff(&args, &links, other);
    }
    if args.json {
        print_json(&links)?;
    } else if let (Some(_), [link]) = (&args.link, links.as_slice()) {
        print(&link_text::in_full(link))?;
    } else {
        print(&link_text::list(&links))?;
    }
    Ok(ExitCode::Good)
}

fn dump(node: &mut Node, args: &LinksArgs) -> Result<ExitCode, Failure> {
    let link = match &args.link {
        Some(link) => link.clone(),
        None => only_link(node)?,
    };
    let mut memories = Vec::new();
    if args.registers {
        memories.push((Memory::Registers, "registers"));
    }
    if args.eeprom {
        memories.extend([(Memory::Eeprom, "EEPROM"), (Memory::Module, "module")]);
    }
    let mut refusals = Vec::new();
    let count = memories.len();
    for (memory, name) in memories {
        match node.dump(&link, memory) {
            Ok(dump) => {
                let head = format!("{name} of {link}, layout {}, {} bytes\n", dump.layout, dump.bytes.len());
                print(&(head + &hex_dump(&dump.bytes)))?;
            }
            // Where one of several is there, the others' refusal is told beside it.
            Err(error) => refusals.push(error),
        }
    }
    let nothing = refusals.len() == count;
    let mut refusals = refusals.into_iter();
    match refusals.next() {
        Some(first) if nothing => {
            let rest: Vec<_> = refusals.map(|error| error.to_string()).collect();
            let code_and_words = Failure::from(first);
            Err(rest.into_iter().fold(code_and_words, Failure::and))
        }
        first => {
            first.into_iter().chain(refusals).for_each(|error| eprintln!("linerate: {error}"));
            Ok(ExitCode::Good)
        }
    }
}

fn diff(args: &LinksArgs, ours: &[Inventory], other: &str) -> Result<ExitCode, Failure> {
    let theirs = if Path::new(other).is_file() {
        recorded(Path::new(other))?.into_iter().map(|link| Described::Recorded(Box::new(link))).collect()
    } else {
        let url: NodeUrl = other.parse().map_err(|e| Failure::usage(format!("--diff {other}: {e}")))?;
        let mut node = args.reach.connect(&url)?;
        let link = args.diff_link.as_ref().or(args.link.as_ref());
        let links = node.inventory(link.map(String::as_str))?;
        links.into_iter().map(|link| Described::Whole(Box::new(link))).collect::<Vec<_>>()
    };
    let one_each = args.diff_link.is_some();
    let differences = link_diff::compare(ours, &theirs, one_each);
    if args.json {
        print_json(&differences)?;
    } else {
        print(&link_diff::text(&args.node.to_string(), other, &differences))?;
    }
    Ok(ExitCode::Good)
}

/// The dut's link of each record, each once.
fn recorded(path: &Path) -> Result<Vec<LinkInfo>, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("read {}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
    let records: Vec<Record> = serde_json::from_str(&text).map_err(|e| failed(&e))?;
    let mut links: Vec<LinkInfo> = Vec::new();
    for link in records.into_iter().filter_map(|record| record.dut.environment.link) {
        if !links.iter().any(|known| known.name == link.name) {
            links.push(link);
        }
    }
    Ok(links)
}
