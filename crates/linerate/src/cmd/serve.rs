//! `linerate serve`: the far end for others.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_agent::auth::Secret;
use linerate_agent::server::{self, Admission, Door, ListenError, OwnOptions, ServerEvent};
use linerate_compat::uperf::workload;
use linerate_model::exit::ExitCode;
use linerate_model::units::{Rate, RateUnit, parse_seconds_ns};

use crate::failure::Failure;
use crate::serve::activation::Handed;
use crate::serve::args::ServeArgs;
use crate::serve::iperf3::{self, Iperf3Options};
use crate::serve::protocols::Protocol;
use crate::serve::standins::{self, Limits};
use crate::serve::stats::Stats;
use crate::signals;

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    start_log(args.log_json);
    let admission = admission(&args)?;
    let stop = signals::stop_flag()?;
    signals::arm_second(&stop);
    let limits = limits(&args, &stop)?;
    let doors = doors(&args, &admission, &limits)?;
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
    serve_iperf3(&args, &limits, tell.clone())?;
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

fn doors(args: &ServeArgs, admission: &Admission, limits: &Limits) -> Result<Vec<Door>, Failure> {
    let secret = args.secret_file.as_deref().map(Secret::from_file).transpose().map_err(Failure::usage)?;
    let own = OwnOptions {
        max_duration: limits.max_duration,
        max_rate: limits.max_rate,
        secret,
        profiles: Some(workload::open),
    };
    let mut handed = Handed::take()?;
    let mut doors = Vec::new();
    for (protocol, port) in args.protocols.chosen()? {
        let service = match protocol {
            Protocol::Linerate => server::own_service(own.clone()),
            Protocol::Netperf => standins::netperf_service(limits),
            Protocol::Uperf => standins::uperf_service(limits),
            Protocol::Ttcp => standins::ttcp_service(limits),
            Protocol::Iperf3 => continue, // it has a server of its own
        };
        let door = match handed.on_port(port) {
            Some(listener) => Door::over(protocol.name(), listener, service),
            None => {
                Door::listen(protocol.name(), args.bind, port, service).map_err(|e| taken(&e, protocol))?
            }
        };
        if protocol == Protocol::Ttcp {
            standins::take_ttcp_datagrams(door.address().map_err(Failure::node)?, admission.clone(), limits)?;
        }
        doors.push(if protocol == Protocol::Linerate {
            door.refusing_with(server::refuse_own)
        } else {
            door
        });
    }
    handed.finish()?;
    Ok(doors)
}

fn serve_iperf3(
    args: &ServeArgs,
    limits: &Limits,
    tell: impl Fn(&'static str, ServerEvent) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let Some((_, port)) = args.protocols.chosen()?.into_iter().find(|(p, _)| *p == Protocol::Iperf3) else {
        return Ok(());
    };
    let clients = if args.protocols.one_at_a_time { 1 } else { args.max_clients };
    let options = Iperf3Options { bind: args.bind, port, allow: args.allow.clone(), clients };
    let port = iperf3::start(options, limits, Arc::new(tell))?;
    tracing::info!(protocol = "iperf3", port, "serving");
    Ok(())
}

/// A port that somebody else has is the likeliest failure: say the two ways out.
fn taken(error: &ListenError, protocol: Protocol) -> Failure {
    let name = protocol.name();
    Failure::node(format!(
        "{error}; choose another port with --{name}-port, or leave it out with --no-{name}"
    ))
}

fn limits(args: &ServeArgs, stop: &Arc<AtomicBool>) -> Result<Limits, Failure> {
    let max_duration = args.max_duration.as_deref().map(parse_seconds_ns).transpose();
    let max_rate =
        args.max_rate.as_deref().map(|rate| Rate::parse(rate, RateUnit::BitsPerSecond)).transpose();
    Ok(Limits {
        max_duration: max_duration
            .map_err(|e| Failure::usage(format!("--max-duration: {e}")))?
            .map(Duration::from_nanos),
        max_rate: max_rate
            .map_err(|e| Failure::usage(format!("--max-rate: {e}")))?
            .map(|rate| rate.per_second),
        allow_pinning: args.allow_pinning,
        stop: Arc::clone(stop),
    })
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
