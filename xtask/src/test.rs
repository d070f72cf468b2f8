//! `cargo xtask test`: every check and every test, and at the end what failed, what was skipped, and the count.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use linerate_testkit::skip::SKIP_FILE_VARIABLE;

use crate::{docs_check, repository, setup, step};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Install nothing, use what is there.
    #[arg(long)]
    no_setup: bool,
    /// Only the tests whose names contain one of these; the checks are left out.
    filters: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.no_setup {
        setup::run_for_tests()?;
    }
    let mut failed = Vec::new();
    let mut note = |outcome: Result<()>| {
        if let Err(error) = outcome {
            println!("    FAILED {error:#}");
            failed.push(format!("{error:#}"));
        }
    };
    let is_everything = options.filters.is_empty();
    if is_everything {
        check(&mut note);
    }
    let namespaces_before = namespaces();
    let skips = SkipFile::new();
    note(build_release());
    let (summary, outcome) = run_tests(&options.filters, &skips);
    note(outcome);
    if is_everything {
        note(run_doc_tests());
    }
    note(nothing_left_behind(&namespaces_before));
    let skipped = skips.lines();
    note(skips_allowed(&skipped));
    report(&failed, &skipped, &summary)
}

/// All that needs no test to run. Each step runs even where one before it failed: a missing line break must not hide
/// a failing test.
fn check(note: &mut impl FnMut(Result<()>)) {
    note(step::run("fetch", &mut step::cargo(&["fetch", "--locked", "--quiet"])));
    note(step::run("rustfmt", &mut step::cargo(&["fmt", "--all", "--check"])));
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
    note(step::run("clippy", &mut step::cargo(&clippy)));
    let deny =
        ["deny", "--offline", "--locked", "--log-level", "error", "check", "licenses", "bans", "sources"];
    note(step::run("cargo deny", &mut step::cargo(&deny)));
    note(docs_check::run());
}

fn build_release() -> Result<()> {
    step::run(
        "release build",
        &mut step::cargo(&["build", "--release", "--locked", "--quiet", "--package", "linerate"]),
    )
}

/// Runs the tests with their output shown, and returns the runner's summary line.
fn run_tests(filters: &[String], skips: &SkipFile) -> (String, Result<()>) {
    let mut command = step::cargo(&[
        "nextest",
        "run",
        "--workspace",
        "--locked",
        "--cargo-quiet",
        "--status-level",
        "fail",
    ]);
    command.args(["--final-status-level", "slow"]).args(filters).env(SKIP_FILE_VARIABLE, &skips.path);
    println!("==> tests");
    let mut summary = String::new();
    let outcome = follow(&mut command, |line| {
        println!("{line}");
        if line.trim_start().starts_with("Summary") {
            summary = line.trim().to_owned();
        }
    });
    (summary, outcome)
}

/// Most crates have none, and each says so in three lines: only the sum is shown, unless one fails.
fn run_doc_tests() -> Result<()> {
    println!("==> doc tests");
    let text = step::output(&mut step::cargo(&["test", "--doc", "--workspace", "--locked", "--quiet"]))?;
    let passed = text.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next());
    let passed: u32 = passed.filter_map(|count| count.parse::<u32>().ok()).sum();
    println!("    doc tests: {passed} passed");
    Ok(())
}

/// Runs a command and hands on each line of its standard error, where nextest writes.
fn follow(command: &mut Command, mut line_seen: impl FnMut(&str)) -> Result<()> {
    let shown = step::shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {shown}"))?;
    let stderr = child.stderr.take().context("standard error is a pipe")?;
    for line in BufReader::new(stderr).split(b'\n') {
        line_seen(&String::from_utf8_lossy(&line.context("read the runner's output")?));
    }
    let status = child.wait().with_context(|| format!("wait for {shown}"))?;
    if !status.success() {
        bail!("tests: {shown} ended with {status}");
    }
    Ok(())
}

/// The tests' guards remove what they made, unless the runner had to kill one.
fn nothing_left_behind(before: &BTreeSet<String>) -> Result<()> {
    let now = namespaces();
    let left: Vec<_> = now.difference(before).map(String::as_str).collect();
    if !left.is_empty() {
        bail!("namespaces left behind: {}", left.join(" "));
    }
    Ok(())
}

fn namespaces() -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir("/run/netns") else { return BTreeSet::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("lr-")).collect()
}

fn skips_allowed(skipped: &[String]) -> Result<()> {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    if is_ci && !skipped.is_empty() {
        bail!("{} skipped where CI={} allows none", skipped.len(), env::var("CI").unwrap_or_default());
    }
    Ok(())
}

fn report(failed: &[String], skipped: &[String], summary: &str) -> Result<()> {
    println!("==> summary");
    for line in skipped {
        println!("{line}");
    }
    for failure in failed {
        println!("FAILED {failure}");
    }
    println!("{} tests skipped themselves, {} steps failed", skipped.len(), failed.len());
    if !summary.is_empty() {
        println!("{summary}");
    }
    if !failed.is_empty() {
        bail!("{} steps failed", failed.len());
    }
    Ok(())
}

/// Where the tests note that they were skipped; see `linerate_testkit::skip`.
struct SkipFile {
    path: PathBuf,
}

impl SkipFile {
    fn new() -> Self {
        let path = repository::target().join(format!("skipped-tests-{}", process::id()));
        Self { path }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = read_or_empty(&self.path).lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

impl Drop for SkipFile {
    fn drop(&mut self) {
        // There is none when no test was skipped.
        let _ = fs::remove_file(&self.path);
    }
}

fn read_or_empty(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
