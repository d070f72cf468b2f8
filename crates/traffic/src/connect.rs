//! The client's connections: opened several at a time, each proved to the server.

use std::net::SocketAddr;
use std::thread;

use socket2::Socket;

use crate::error::{Result, TrafficError};
use crate::preamble::{self, Claim};
use crate::side::TrialSide;
use crate::{plan, socket, tcp_rr, udp_handshake};

/// Connections that a client opens at the same time.
const AT_ONCE: usize = 32;

/// Opens and proves every connection of the trial, in order. One after the other, many streams over a long path would
/// take minutes.
pub(crate) fn connect_all(
    side: &TrialSide,
    server_of: impl Fn(Claim) -> SocketAddr + Sync,
) -> Result<Vec<(Claim, Socket)>> {
    let claims = plan::claims(&side.trial);
    let connect = |part: &[Claim]| -> Result<Vec<(Claim, Socket)>> {
        part.iter().map(|&claim| Ok((claim, connect_one(side, claim, server_of(claim))?))).collect()
    };
    let parts = claims.chunks(claims.len().div_ceil(AT_ONCE).max(1));
    thread::scope(|scope| {
        let connect = &connect;
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || connect(part))).collect();
        let mut links = Vec::with_capacity(claims.len());
        for thread in threads {
            let gone = |_| TrafficError::Failed("a connecting thread panicked".to_owned());
            links.extend(thread.join().map_err(gone)??);
        }
        Ok(links)
    })
}

fn connect_one(side: &TrialSide, claim: Claim, server: SocketAddr) -> Result<Socket> {
    let workload = &side.trial.workload;
    if workload.kind().is_udp() {
        let socket = socket::bind_udp(side.local, workload)?;
        udp_handshake::prove(&socket, server, claim.stream, &side.token)?;
        return Ok(socket);
    }
    let socket = socket::new_tcp_client(side.local, workload)?;
    socket::connect_tcp(&socket, server)?;
    tcp_rr::send_whole(&socket, &preamble::encode(claim, &side.token))
        .map_err(|e| socket::connect_error(server, e.into()))?;
    Ok(socket)
}
