//! `cargo xtask prove`: injects faults into each case, and none, and writes what was found into docs/cases.md.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};
use linerate_qualify::case::{Case, Run};
use linerate_qualify::catalogue::CATALOGUE;
use linerate_qualify::inject::FAULTS;
use linerate_qualify::inject::proof::faults_of;
use serde_json::Value;

use crate::{repository, step};

/// Options of `cargo xtask prove`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose id begins so.
    #[arg(long, default_value = "")]
    case: String,
    /// Runs of each case without a fault.
    #[arg(long, default_value_t = 50)]
    clean: u32,
    /// The program to use as it is, instead of a release build.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The page to write.
    #[arg(short, long, default_value_os_t = repository::root().join("docs/cases.md"))]
    output: PathBuf,
}

/// What became of one case.
struct Proof {
    case: &'static Case,
    /// Clean runs that failed, of how many; and how many variants were skipped in each.
    clean: Tally,
    /// Fault, whether it was caught, and by which reasons.
    faults: Vec<(&'static str, bool, String)>,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    first_failure: String,
}

/// Proves every case that is offered, and writes the page.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => {
            step::run(
                "release build",
                &mut step::cargo(&["build", "--release", "--locked", "--package", "linerate"]),
            )?;
            repository::linerate()
        }
    };
    let mut proofs = Vec::new();
    let chosen = CATALOGUE.into_iter().filter(|case| {
        matches!(case.run, Run::Offered { .. }) && case.id.starts_with(&options.case.to_uppercase())
    });
    for case in chosen {
        let repeat = options.clean.to_string();
        let clean = qualify(&program, case.id, "none", &["--repeat", &repeat])?;
        let mut faults = Vec::new();
        for fault in faults_of(case) {
            let found = qualify(&program, case.id, fault, &[])?;
            let codes = codes(&found);
            println!("    {} {fault}: {}", case.id, if codes.is_empty() { "NOT CAUGHT" } else { &codes });
            faults.push((fault, !codes.is_empty(), codes));
        }
        let clean = tally(&clean);
        println!(
            "    {} clean: {} passed, {} failed {}",
            case.id, clean.passed, clean.failed, clean.first_failure
        );
        proofs.push(Proof { case, clean, faults });
        // After each case, so that a run that is ended early leaves what it found.
        fs::write(&options.output, page(&proofs))
            .with_context(|| format!("write {}", options.output.display()))?;
    }
    let missed = proofs.iter().flat_map(|proof| &proof.faults).filter(|(_, caught, _)| !caught).count();
    let false_failures: usize = proofs.iter().map(|proof| proof.clean.failed).sum();
    if missed + false_failures > 0 {
        bail!("{missed} faults were not caught, {false_failures} clean results failed");
    }
    Ok(())
}

/// The results of one case under one fault.
fn qualify(program: &PathBuf, case: &str, fault: &str, more: &[&str]) -> Result<Vec<Value>> {
    let file = std::env::temp_dir().join(format!("lr-prove-{}.json", std::process::id()));
    let mut command = Command::new(program);
    command.args(["qualify", "--inject", fault, "--case", case, "--level", "full", "--seed", "1", "--quiet"]);
    command.args(["--no-store", "--json"]).arg(&file).args(more);
    let output = command.output().with_context(|| format!("start {}", program.display()))?;
    let text = fs::read_to_string(&file).with_context(|| {
        format!("{case} under {fault} left no result: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    fs::remove_file(&file)?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(value["cases"].as_array().cloned().unwrap_or_default())
}

fn outcome(result: &Value) -> &str {
    result["outcome"].as_str().unwrap_or_default()
}

/// Reasons of the failures. A fault of the suite itself is no catch.
fn codes(results: &[Value]) -> String {
    let mut codes: Vec<String> = Vec::new();
    for result in results.iter().filter(|result| matches!(outcome(result), "fail" | "timeout")) {
        let code = result["reason"]["code"].as_str().unwrap_or_default().to_owned();
        if code != "HARNESS" && !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes.join(", ")
}

fn tally(results: &[Value]) -> Tally {
    let mut tally = Tally::default();
    for result in results {
        match outcome(result) {
            "pass" => tally.passed += 1,
            "skip" => tally.skipped += 1,
            _ => {
                tally.failed += 1;
                if tally.first_failure.is_empty() {
                    let text = |field: &str| result["reason"][field].as_str().unwrap_or_default().to_owned();
                    tally.first_failure = format!("{}: {}", text("code"), text("text"));
                }
            }
        }
    }
    tally
}

fn page(proofs: &[Proof]) -> String {
    let mut text = String::from(
        "# Cases\n\nWhat each case of `linerate qualify` does, and the proof that it finds something. Written by \
         `cargo xtask prove`: a software NIC stands between two namespaces, without a fault and with each fault in turn \
         (`linerate qualify --inject FAULT`).\n\n## Case by fault\n\n\
         | case | clean: passed | failed | faults caught | not caught |\n|---|--:|--:|---|---|\n",
    );
    for Proof { case, clean, faults } in proofs {
        let list = |caught: bool| {
            let of = faults.iter().filter(|(_, is_caught, _)| *is_caught == caught);
            of.map(
                |(fault, _, codes)| {
                    if caught { format!("`{fault}` ({codes})") } else { format!("`{fault}`") }
                },
            )
            .collect::<Vec<_>>()
            .join(", ")
        };
        let skipped = if clean.passed + clean.failed == 0 { " (skipped)" } else { "" };
        let _ = writeln!(
            text,
            "| {} | {}{skipped} | {} | {} | {} |",
            case.id,
            clean.passed,
            clean.failed,
            list(true),
            list(false)
        );
    }
    let all: usize = proofs.iter().map(|proof| proof.clean.passed + proof.clean.failed).sum();
    let failed: usize = proofs.iter().map(|proof| proof.clean.failed).sum();
    let _ = writeln!(text, "\nFalse failures: {failed} of {all} clean results.\n\n## Faults\n");
    for fault in &FAULTS {
        let _ = writeln!(text, "- `{}`: {}", fault.name, fault.does);
    }
    text.push_str("\n## Catalogue\n");
    for case in CATALOGUE {
        let _ = writeln!(text, "\n### {}: {}\n\n{}\n", case.id, case.title, case.does);
        let _ = writeln!(text, "- must hold: {}", case.holds);
        if !case.skipped.is_empty() {
            let _ = writeln!(text, "- skipped: {}", case.skipped);
        }
        let _ = writeln!(
            text,
            "- shown on: {}\n- needs: {}\n- source: {}",
            case.shown_on,
            case.privilege.words(),
            case.source
        );
        if let Run::NotOffered(why) = case.run {
            let _ = writeln!(text, "- not offered: {why}");
        }
    }
    text
}
