//! `linerate uperf`: uperf's command line, lines and exit codes.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use linerate_compat::uperf::slave::{Limits, SlaveSummary, serve_connection};
use linerate_compat::uperf::{self, Io, Options, Served};
use linerate_model::exit::ExitCode;

use crate::cli::RawArgs;
use crate::failure::Failure;
use crate::{signals, stand_in};

/// uperf's code for a run that a signal ended is 2, as ours is for a bad command line.
const UPERF_INTERRUPTED: u8 = 2;

/// Control connections at once: one for each group of each master.
const MOST_CONNECTIONS: usize = 1024;

/// How often the accept loop looks at the stop flag.
const POLL: Duration = Duration::from_millis(100);

pub(crate) fn run(args: RawArgs) -> Result<ExitCode, Failure> {
    let stop = signals::stop_flag()?;
    let environment = |name: &str| std::env::var(name).ok();
    let mut io = Io { stdout: &mut io::stdout(), stderr: &mut io::stderr(), keep: stand_in::keep };
    match uperf::main(&args.words, &environment, &stop, &mut io) {
        Served::Done(0) => Ok(ExitCode::Good),
        Served::Done(UPERF_INTERRUPTED) => Ok(ExitCode::Usage),
        Served::Done(_) => Ok(ExitCode::Failed),
        Served::Slave(options) => serve(&options, &stop),
    }
}

fn serve(options: &Options, stop: &Arc<AtomicBool>) -> Result<ExitCode, Failure> {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, options.port));
    let say = |e: io::Error| Failure::node(format!("listen on port {}: {e}", options.port));
    let listener =
        TcpListener::bind(address).or_else(|_| TcpListener::bind(("0.0.0.0", options.port))).map_err(say)?;
    listener.set_nonblocking(true).map_err(say)?;
    let count = Arc::new(AtomicUsize::new(0));
    let verbose = options.verbose;
    let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
    while !stop.load(Relaxed) {
        threads.retain(|t| !t.is_finished());
        match listener.accept() {
            Ok((stream, peer)) if count.load(Relaxed) < MOST_CONNECTIONS => {
                let (stop, count) = (Arc::clone(stop), Arc::clone(&count));
                count.fetch_add(1, Relaxed);
                threads.push(thread::spawn(move || {
                    serve_one(stream, peer, &stop, verbose);
                    count.fetch_sub(1, Relaxed);
                }));
            }
            Ok((_, peer)) => eprintln!("uperf: {peer}: refused, {MOST_CONNECTIONS} connections are open"),
            Err(_) => thread::sleep(POLL),
        }
    }
    threads.into_iter().for_each(|t| drop(t.join()));
    Ok(ExitCode::Good)
}

fn serve_one(stream: TcpStream, peer: SocketAddr, stop: &AtomicBool, verbose: bool) {
    let outcome =
        stream.set_nonblocking(false).and_then(|()| serve_connection(&stream, &Limits::default(), stop));
    match outcome {
        Ok(SlaveSummary { failure: Some(failure), .. }) => eprintln!("uperf: {peer}: {failure}"),
        Ok(summary) if verbose && summary.strands > 0 => eprintln!(
            "uperf: {peer}: {} threads, {} bytes, {} operations",
            summary.strands, summary.bytes, summary.operations
        ),
        Ok(_) => {}
        Err(e) => eprintln!("uperf: {peer}: {e}"),
    }
}
