//! `linerate guest`: what linerate does in a guest that it booted. Not for hands.

use clap::Args;
use linerate_agent::guest::init;
use linerate_model::exit::ExitCode;
use linerate_sys::boot;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct GuestArgs {}

pub(crate) fn run(_args: GuestArgs) -> Result<ExitCode, Failure> {
    let tell = |words: &str| eprintln!("linerate: {words}");
    let Err(why) = init::run(&tell);
    if !boot::is_first_process() {
        return Err(Failure::usage(why));
    }
    tell(&format!("the guest ends: {why}"));
    Err(Failure::node(boot::power_off()))
}
