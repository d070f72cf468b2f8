//! Finds out which layout a slave speaks, by connections that are thrown away.
//!
//! An acknowledgement carries no version. But a header of a version that there never was, in the short form, is refused at
//! once by B to F, while A waits for more. And a workorder of one flowop is answered as soon as it is whole: after 928
//! bytes by C and D, 936 by E, 944 by F. B can't be told from C, nor D; no release has either.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::uperf::wire::{ACK_BYTES, Header, Layout, Order, Phase, encode_workorder};
use crate::uperf::workorder::{Flowop, Group, Transaction};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long a slave that has all it needs may take to answer.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);

/// A version that no uperf has.
const NO_VERSION: &str = "0.0.0";

/// The layout of the slave at `address`.
pub(crate) fn layout_of(address: SocketAddr) -> io::Result<Layout> {
    let order = Order::native();
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    let patience = LEAST_PATIENCE.max(begun.elapsed() * 4);
    let header = |phase, version: &str| {
        Header { order, phase, infos: 0, protocols: Vec::new(), version: version.into() }.encode(Layout::F)
    };
    stream.write_all(&header(Phase::One, NO_VERSION))?;
    if !answers(&mut stream, patience)? {
        // Only the long form takes more than 352 bytes.
        stream.write_all(&[0; 112])?;
        return if answers(&mut stream, ANSWER_LIMIT)? { Ok(Layout::A) } else { Err(silent()) };
    }
    drop(stream);

    let mut stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    stream.set_nodelay(true)?;
    let version = Layout::F.version();
    stream.write_all(&header(Phase::One, version))?;
    if !answers(&mut stream, ANSWER_LIMIT)? {
        return Err(silent());
    }
    let transaction =
        Transaction { iterations: 1, flowops: vec![Flowop::default()], ..Transaction::default() };
    let group = Group { strands: 1, transactions: vec![transaction], ..Group::default() };
    stream.write_all(&[header(Phase::Two, version), encode_workorder(&group, Layout::C, order)].concat())?;
    for layout in [Layout::C, Layout::E] {
        if answers(&mut stream, patience)? {
            return Ok(layout);
        }
        stream.write_all(&[0; 8])?;
    }
    if answers(&mut stream, ANSWER_LIMIT)? { Ok(Layout::F) } else { Err(silent()) }
}

fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "does not answer as a uperf slave does")
}

/// Whether an acknowledgement comes in time; it is taken off.
fn answers(stream: &mut TcpStream, limit: Duration) -> io::Result<bool> {
    stream.set_read_timeout(Some(limit))?;
    let mut ack = [0; ACK_BYTES];
    match stream.read(&mut ack) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed the connection")),
        Ok(count) => {
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            stream.read_exact(&mut ack[count..])?;
            Ok(true)
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
        Err(e) => Err(e),
    }
}
