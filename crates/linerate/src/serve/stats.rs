//! `--stats ADDR`: what the server has done, as Prometheus text over HTTP.
//!
//! One page, read-only, so the answer is written by hand: tiny_http has had no release since 2022, and axum would bring an
//! async runtime into every build (it stays behind the feature `web`).

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_agent::server::{Admission, ServerEvent};
use linerate_report::{MetricFamily, MetricKind, prometheus};

use crate::failure::Failure;

/// How long a scraper may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);

/// Counts by protocol.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stats(Arc<Mutex<BTreeMap<&'static str, Counts>>>);

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    connections: u64,
    refused: u64,
    ended: u64,
    failed: u64,
}

impl Stats {
    /// Takes notice of what happened.
    pub(crate) fn count(&self, protocol: &'static str, event: &ServerEvent) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = all.entry(protocol).or_default();
        match event {
            ServerEvent::Knocked(_) => counts.connections += 1,
            ServerEvent::Refused(..) => counts.refused += 1,
            ServerEvent::Ended(_, None) => counts.ended += 1,
            ServerEvent::Ended(_, Some(_)) | ServerEvent::AcceptFailed(_) => counts.failed += 1,
        }
    }

    /// Serves them at `address` on a thread of its own, for as long as the process lives.
    pub(crate) fn serve(&self, address: SocketAddr, admission: Admission) -> Result<SocketAddr, Failure> {
        let failed = |e: io::Error| Failure::node(format!("listen on {address} for --stats: {e}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let stats = self.clone();
        let answer_all = move || {
            for stream in listener.incoming() {
                match stream {
                    // One at a time: a scraper that dawdles delays only other scrapers, and not for long.
                    Ok(stream) => drop(answer(stream, &stats.text(&admission))),
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        };
        std::thread::Builder::new().name("stats".to_owned()).spawn(answer_all).map_err(failed)?;
        Ok(bound)
    }

    fn text(&self, admission: &Admission) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let family = |name, help, pick: fn(&Counts) -> u64| MetricFamily {
            name,
            help,
            kind: MetricKind::Counter,
            samples: all.iter().map(|(p, c)| (vec![("protocol", (*p).to_owned())], pick(c))).collect(),
        };
        let clients = MetricFamily {
            name: "linerate_clients",
            help: "Clients being served.",
            kind: MetricKind::Gauge,
            samples: vec![(Vec::new(), admission.clients() as u64)],
        };
        prometheus(&[
            clients,
            family("linerate_connections_total", "Connections that were let in.", |c| c.connections),
            family("linerate_refused_total", "Connections and clients that were turned away.", |c| c.refused),
            family("linerate_clients_ended_total", "Clients that were served to their end.", |c| c.ended),
            family("linerate_clients_failed_total", "Clients that ended with an error.", |c| c.failed),
        ])
    }
}

fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 2048];
    let length = stream.read(&mut request)?;
    let (status, body) = match &request[..length] {
        r if r.starts_with(b"GET /metrics ") || r.starts_with(b"GET / ") => ("200 OK", text),
        _ => ("404 Not Found", "only /metrics is here\n"),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
