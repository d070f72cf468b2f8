//! The project's own chores: set-up, tests, benchmarks, checks of the documents.

mod bench;
mod docs_check;
mod examples;
mod prove;
mod repository;
mod setup;
mod step;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the linerate project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what tests and benchmarks use.
    Setup,
    /// Set up, then run every check and every test.
    Test(test::Options),
    /// Measure linerate beside its peers and write docs/performance.md.
    Bench(bench::Options),
    /// Run the examples and write what they print into docs/examples.md.
    Examples(examples::Options),
    /// Inject faults into every case of the qualification, and write docs/cases.md.
    Prove(prove::Options),
    /// Check rustdoc, the links between documents, and the length of files.
    DocsCheck,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Setup => setup::run(),
        Chore::Test(options) => test::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::Examples(options) => examples::run(&options),
        Chore::Prove(options) => prove::run(&options),
        Chore::DocsCheck => docs_check::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
