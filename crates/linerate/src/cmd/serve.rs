//! `linerate serve`: the far end for others.

use std::time::Duration;

use linerate_agent::auth::Secret;
use linerate_agent::server::{Server, ServerEvent, ServerOptions};
use linerate_model::exit::ExitCode;
use linerate_model::units::parse_seconds_ns;

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::signals;

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let options = options(args)?;
    let stop = signals::stop_flag()?;
    let server = Server::listen(options).map_err(Failure::node)?;
    let address = server.address().map_err(Failure::node)?;
    tracing::info!(%address, "serving");
    server.run(&stop, log).map_err(|e| Failure::node(format!("wait for clients: {e}")))?;
    tracing::info!("stopped by a signal");
    Ok(ExitCode::Good)
}

fn options(args: ServeArgs) -> Result<ServerOptions, Failure> {
    let max_duration = args.max_duration.as_deref().map(parse_seconds_ns).transpose();
    if args.max_clients == 0 {
        return Err(Failure::usage("--max-clients 0: must be 1 or more"));
    }
    Ok(ServerOptions {
        bind: args.bind,
        port: args.port,
        max_clients: args.max_clients,
        max_duration: max_duration
            .map_err(|e| Failure::usage(format!("--max-duration: {e}")))?
            .map(Duration::from_nanos),
        allow: args.allow,
        secret: args.secret_file.as_deref().map(Secret::from_file).transpose().map_err(Failure::usage)?,
    })
}

fn log(event: ServerEvent) {
    match event {
        ServerEvent::Accepted(client) => tracing::info!(%client, "accepted"),
        ServerEvent::Refused(client, reason) => tracing::warn!(%client, reason, "refused"),
        ServerEvent::Ended(client, None) => tracing::info!(%client, "ended"),
        ServerEvent::Ended(client, Some(error)) => tracing::warn!(%client, error, "ended"),
        ServerEvent::AcceptFailed(error) => tracing::warn!(error, "accept failed"),
    }
}
