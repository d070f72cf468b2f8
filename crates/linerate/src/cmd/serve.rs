//! `linerate serve`: the far end for others.

use std::io::IsTerminal;
use std::time::Duration;

use linerate_agent::auth::Secret;
use linerate_agent::server::{self, Admission, Door, OwnOptions, ServerEvent};
use linerate_model::exit::ExitCode;
use linerate_model::units::parse_seconds_ns;

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::serve::activation::Handed;
use crate::serve::stats::Stats;
use crate::signals;

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    start_log(args.log_json);
    let admission = admission(&args)?;
    let stop = signals::stop_flag()?;
    signals::arm_second(&stop);
    let doors = doors(&args)?;
    for door in &doors {
        let address = door.address().map_err(Failure::node)?;
        tracing::info!(protocol = door.name, %address, "serving");
    }
    let stats = Stats::default();
    if let Some(address) = args.stats {
        let address = stats.serve(address, admission.clone())?;
        tracing::info!(%address, "serving counts");
    }
    let tell = move |protocol, event: ServerEvent| {
        stats.count(protocol, &event);
        log(protocol, event);
    };
    server::run(&doors, &admission, &stop, tell)
        .map_err(|e| Failure::node(format!("wait for clients: {e}")))?;
    tracing::info!("stopped by a signal");
    Ok(ExitCode::Good)
}

fn start_log(json: bool) {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    if json {
        log.json().flatten_event(true).init();
    } else {
        log.with_ansi(std::io::stderr().is_terminal()).init();
    }
}

fn admission(args: &ServeArgs) -> Result<Admission, Failure> {
    if args.max_clients == 0 {
        return Err(Failure::usage("--max-clients 0: must be 1 or more"));
    }
    Ok(Admission::new(args.allow.clone(), args.max_clients))
}

fn doors(args: &ServeArgs) -> Result<Vec<Door>, Failure> {
    let max_duration = args.max_duration.as_deref().map(parse_seconds_ns).transpose();
    let own = OwnOptions {
        max_duration: max_duration
            .map_err(|e| Failure::usage(format!("--max-duration: {e}")))?
            .map(Duration::from_nanos),
        secret: args.secret_file.as_deref().map(Secret::from_file).transpose().map_err(Failure::usage)?,
    };
    let mut handed = Handed::take()?;
    let mut open = |name, port, service| match handed.on_port(port) {
        Some(listener) => Ok(Door::over(name, listener, service)),
        None => Door::listen(name, args.bind, port, service).map_err(Failure::node),
    };
    let own = open("linerate", args.port, server::own_service(own))?.refusing_with(server::refuse_own);
    handed.finish()?;
    Ok(vec![own])
}

fn log(protocol: &'static str, event: ServerEvent) {
    match event {
        ServerEvent::Knocked(client) => tracing::info!(protocol, %client, "accepted"),
        ServerEvent::Refused(client, reason) => tracing::warn!(protocol, %client, reason, "refused"),
        ServerEvent::Ended(client, None) => tracing::info!(protocol, %client, "ended"),
        ServerEvent::Ended(client, Some(error)) => tracing::warn!(protocol, %client, error, "ended"),
        ServerEvent::AcceptFailed(error) => tracing::warn!(protocol, error, "accept failed"),
    }
}
