//! linerate: measures what a network link, its driver and the stack above it carry, and what that costs in CPU.

mod alias;
mod asked;
mod cli;
mod cmd;
mod experiment_file;
mod failure;
mod history;
mod layout;
mod link_diff;
mod link_text;
mod measure;
mod options;
mod output;
mod plan_text;
mod private;
mod profile_file;
mod progress;
mod reach;
mod references;
mod request;
mod serve;
mod signals;
mod stand_in;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse_from(alias::resolve(std::env::args_os()));
    let outcome = match cli.command.unwrap_or_default() {
        Command::Run(args) => cmd::run::run(*args),
        Command::Qualify(args) => match cmd::qualify::run(*args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Compare(args) => cmd::compare::run(args),
        Command::Ab(args) => cmd::ab::run(*args),
        Command::Report(args) => cmd::report::run(args),
        Command::Trend(args) => cmd::trend::run(args),
        Command::History(args) => cmd::history::run(args),
        Command::Show(args) => cmd::show::run(args),
        Command::Tag(args) => cmd::tag::run(args),
        Command::Export(args) => cmd::export::run(args),
        Command::Import(args) => cmd::import::run(args),
        Command::Rm(args) => cmd::rm::run(args),
        Command::Serve(args) => cmd::serve::run(args),
        Command::Lab(args) => cmd::lab::run(args),
        Command::InstallAliases(args) => cmd::install_aliases::run(args),
        Command::Netperf(args) => cmd::netperf::run(args),
        Command::Netserver(args) => cmd::netserver::run(args),
        Command::Links(args) => cmd::links::run(args),
        Command::Settings(args) => cmd::settings::run(args),
        Command::Restore(args) => cmd::restore::run(args),
        Command::Iperf3(args) => cmd::iperf3::run(args),
        Command::Ttcp(args) => cmd::ttcp::run(args),
        Command::Uperf(args) => cmd::uperf::run(args),
        Command::Vm(args) => cmd::vm::run(args),
        Command::Agent(args) => cmd::agent::run(args),
        Command::Guest(args) => cmd::guest::run(args),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(failure) => failure.tell().into(),
    }
}
