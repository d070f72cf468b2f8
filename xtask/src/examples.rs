//! `cargo xtask examples`: runs the examples in private labs and writes what they print into docs/examples.md.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};
use clap::ArgAction;

use crate::{repository, step};

const FENCE: &str = "```\n";

/// Options of `cargo xtask examples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Window of each trial, seconds.
    #[arg(long, default_value_t = 0.5)]
    time: f64,
    /// Use the release binary as it is.
    #[arg(long, action = ArgAction::SetTrue)]
    no_build: bool,
    /// The page to renew.
    #[arg(short, long, default_value_os_t = repository::root().join("docs/examples.md"))]
    output: PathBuf,
}

/// Renews the output of every example that the page has a section for.
pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.no_build {
        let build = ["build", "--release", "--locked", "--package", "linerate"];
        step::run("release build", &mut step::cargo(&build))?;
    }
    let mut page =
        fs::read_to_string(&options.output).with_context(|| format!("read {}", options.output.display()))?;
    let names: Vec<String> = page.lines().filter_map(|l| l.strip_prefix("## ")).map(str::to_owned).collect();
    for name in names {
        println!("==> {name}");
        let time = options.time.to_string();
        let file = format!("examples/{name}.toml");
        let mut command = Command::new(repository::linerate());
        command.current_dir(repository::root()).args(["run", "-f", &file, "-t", &time, "--warmup", "0.1"]);
        command.args(["--repeat", "2", "--settle", "0.2", "--no-store", "--quiet"]);
        page = renewed(&page, &name, &told(&step::output(&mut command)?))?;
    }
    fs::write(&options.output, page).with_context(|| format!("write {}", options.output.display()))
}

/// What the page tells of a run: the tables, and what was left out; not environment and hazards, which are the same for all.
fn told(printed: &str) -> String {
    let sections: Vec<&str> = printed.trim_end().split("\n\n").collect();
    let figures =
        sections.iter().position(|s| s.starts_with("Each figure")).map_or(sections.len(), |at| at + 1);
    let left_out = sections[figures..].iter().filter(|section| section.starts_with("- "));
    sections[..figures].iter().chain(left_out).copied().collect::<Vec<_>>().join("\n\n") + "\n"
}

/// The page with another first block of code in one section.
fn renewed(page: &str, section: &str, text: &str) -> Result<String> {
    let block = || {
        let heading = page.find(&format!("## {section}\n"))?;
        let begin = heading + page[heading..].find(FENCE)? + FENCE.len();
        Some((begin, begin + page[begin..].find(FENCE)?))
    };
    let Some((begin, end)) = block() else { bail!("the page has no block of output under '## {section}'") };
    Ok(format!("{}{text}{}", &page[..begin], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_gets_its_own_output() {
        let page = "## one\n\n```\nold\n```\n\n## two\n\n```\nolder\n```\n";
        let new = renewed(page, "two", "new\n").unwrap();
        assert_eq!(new, "## one\n\n```\nold\n```\n\n## two\n\n```\nnew\n```\n");
        assert!(renewed(page, "three", "").is_err());
    }

    #[test]
    fn tables_and_what_is_left_out_are_told() {
        let printed = "table\n\nmore\n\nEach figure is ...\n\ndut x\n\n! hazard\n\n- 4 combinations\n";
        assert_eq!(told(printed), "table\n\nmore\n\nEach figure is ...\n\n- 4 combinations\n");
    }
}
