//! How a UDP client proves itself, so that the server can't be used to flood others.
//!
//! HELLO (token) -> CHALLENGE (nonce made for the sender's address) -> PROOF (token, nonce) -> READY. The server answers
//! only those who know the token, and never with more bytes than it got. It sends payload only to the address that
//! returned the nonce. The client repeats what is not answered.
//!
//! | bytes | content |
//! |---|---|
//! | 0-5 | `LRUDPH` |
//! | 6 | version, 1 |
//! | 7 | kind: 1 HELLO, 2 CHALLENGE, 3 PROOF, 4 READY |
//! | 8-11 | stream number, little-endian |
//! | 12-15 | zero |
//! | 16-31 | nonce; zero in HELLO |
//! | 32-47 | token; HELLO and PROOF only |

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::error::Result;
use crate::side::Token;
use crate::socket;

/// Length of HELLO and PROOF.
pub(crate) const REQUEST_LEN: usize = 48;
/// Length of CHALLENGE and READY.
pub(crate) const ANSWER_LEN: usize = 32;

const MAGIC: &[u8; 6] = b"LRUDPH";
const VERSION: u8 = 1;

/// How long a client waits for an answer before it repeats itself.
const REPEAT_NS: u64 = 100_000_000;

/// What the server makes up for one address.
pub(crate) type Nonce = [u8; 16];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Hello,
    Proof(Nonce),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Challenge(Nonce),
    Ready(Nonce),
}

pub(crate) fn encode_request(request: Request, stream: u32, token: &Token) -> [u8; REQUEST_LEN] {
    let (kind, nonce) = match request {
        Request::Hello => (1, [0; 16]),
        Request::Proof(nonce) => (3, nonce),
    };
    let mut bytes = [0; REQUEST_LEN];
    bytes[..ANSWER_LEN].copy_from_slice(&encode(kind, stream, &nonce));
    bytes[ANSWER_LEN..].copy_from_slice(token.bytes());
    bytes
}

/// The request, if it is for this stream and its token is right.
pub(crate) fn decode_request(bytes: &[u8], stream: u32, token: &Token) -> Option<Request> {
    let bytes: &[u8; REQUEST_LEN] = bytes.try_into().ok()?;
    let proved = token.matches(&bytes[ANSWER_LEN..]);
    let (kind, nonce) = decode(&bytes[..ANSWER_LEN], stream)?;
    match kind {
        1 if proved && nonce == [0; 16] => Some(Request::Hello),
        3 if proved => Some(Request::Proof(nonce)),
        _ => None,
    }
}

pub(crate) fn encode_answer(answer: Answer, stream: u32) -> [u8; ANSWER_LEN] {
    match answer {
        Answer::Challenge(nonce) => encode(2, stream, &nonce),
        Answer::Ready(nonce) => encode(4, stream, &nonce),
    }
}

pub(crate) fn decode_answer(bytes: &[u8], stream: u32) -> Option<Answer> {
    match decode(bytes, stream)? {
        (2, nonce) => Some(Answer::Challenge(nonce)),
        (4, nonce) => Some(Answer::Ready(nonce)),
        _ => None,
    }
}

fn encode(kind: u8, stream: u32, nonce: &Nonce) -> [u8; ANSWER_LEN] {
    let mut bytes = [0; ANSWER_LEN];
    bytes[..6].copy_from_slice(MAGIC);
    bytes[6] = VERSION;
    bytes[7] = kind;
    bytes[8..12].copy_from_slice(&stream.to_le_bytes());
    bytes[16..].copy_from_slice(nonce);
    bytes
}

fn decode(bytes: &[u8], stream: u32) -> Option<(u8, Nonce)> {
    let bytes: &[u8; ANSWER_LEN] = bytes.try_into().ok()?;
    let right = bytes[..6] == *MAGIC && bytes[6] == VERSION && bytes[12..16] == [0; 4];
    if !right || bytes[8..12] != stream.to_le_bytes() {
        return None;
    }
    Some((bytes[7], bytes[16..].try_into().ok()?))
}

/// Connects `socket` to `server` and proves this client there, within [`socket::CONNECT_LIMIT`].
pub(crate) fn prove(socket: &Socket, server: SocketAddr, stream: u32, token: &Token) -> Result<()> {
    socket.connect(&server.into()).map_err(|e| socket::connect_error(server, e))?;
    let deadline_ns = clock::monotonic_ns() + socket::CONNECT_LIMIT.as_nanos() as u64;
    let mut request = Request::Hello;
    let mut refusal = None;
    while clock::monotonic_ns() < deadline_ns {
        // A refusal that came back for an earlier datagram is reported by this call; the server may still be opening.
        if let Err(e) = call::send(socket, &encode_request(request, stream, token)) {
            if !matches!(e, Errno::ECONNREFUSED | Errno::ENOBUFS | Errno::EAGAIN) {
                return Err(socket::connect_error(server, e.into()));
            }
            refusal = (e == Errno::ECONNREFUSED).then_some(e).or(refusal);
        }
        match await_answer(socket, stream) {
            Ok(Some(Answer::Challenge(nonce))) => request = Request::Proof(nonce),
            Ok(Some(Answer::Ready(nonce))) if request == Request::Proof(nonce) => return Ok(()),
            Ok(_) => {}
            Err(e) if e == Errno::ECONNREFUSED && refusal.is_none() => {
                // One refusal may be a race with the server; a second one is an answer.
                refusal = Some(e);
                clock::sleep_until(clock::monotonic_ns() + REPEAT_NS);
            }
            Err(e) => return Err(socket::connect_error(server, e.into())),
        }
    }
    let silence = io::Error::from(io::ErrorKind::TimedOut);
    Err(socket::connect_error(server, refusal.map_or(silence, io::Error::from)))
}

/// The next answer within [`REPEAT_NS`]; other datagrams are skipped.
fn await_answer(socket: &Socket, stream: u32) -> std::result::Result<Option<Answer>, Errno> {
    let until_ns = clock::monotonic_ns() + REPEAT_NS;
    let mut set = PollSet::new();
    set.add(socket.as_fd(), Readiness::READ);
    let mut buffer = [0; 128];
    loop {
        match call::recv_now(socket, &mut buffer) {
            Ok(count) => {
                if let Some(answer) = decode_answer(&buffer[..count], stream) {
                    return Ok(Some(answer));
                }
            }
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(e),
        }
        let now = clock::monotonic_ns();
        if now >= until_ns {
            return Ok(None);
        }
        if set.wait(Some(until_ns - now)).is_err() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let token = Token::from_bytes([9; 16]);
        for request in [Request::Hello, Request::Proof([3; 16])] {
            let bytes = encode_request(request, 5, &token);
            assert_eq!(decode_request(&bytes, 5, &token), Some(request));
            assert_eq!(decode_request(&bytes, 6, &token), None);
            assert_eq!(decode_request(&bytes, 5, &Token::from_bytes([8; 16])), None);
            assert_eq!(decode_request(&bytes[..40], 5, &token), None);
            assert_eq!(decode_answer(&bytes, 5), None);
        }
        for answer in [Answer::Challenge([1; 16]), Answer::Ready([2; 16])] {
            assert_eq!(decode_answer(&encode_answer(answer, 5), 5), Some(answer));
        }
    }

    #[test]
    fn no_bytes_upset_the_decoders() {
        let token = Token::from_bytes([9; 16]);
        let right = encode_request(Request::Proof([3; 16]), 5, &token);
        for length in 0..200 {
            let bytes: Vec<u8> = right.iter().copied().cycle().take(length).collect();
            assert_eq!(decode_request(&bytes, 5, &token).is_some(), length == REQUEST_LEN);
            assert_eq!(decode_answer(&bytes, 5), None);
        }
        for at in 0..REQUEST_LEN {
            let mut wrong = right;
            wrong[at] ^= 0x20;
            assert_ne!(decode_request(&wrong, 5, &token), Some(Request::Proof([3; 16])), "byte {at}");
        }
    }

    #[test]
    fn an_answer_is_never_longer_than_what_it_answers() {
        const { assert!(ANSWER_LEN <= REQUEST_LEN) };
    }

    #[test]
    fn nobody_there_is_a_refusal_that_names_the_address() {
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let gone = std::net::UdpSocket::bind(local).unwrap().local_addr().unwrap();
        let socket = Socket::from(std::net::UdpSocket::bind(local).unwrap());
        let error = prove(&socket, gone, 0, &Token::random().unwrap()).unwrap_err();
        assert!(error.to_string().contains("refused"), "{error}");
        assert!(error.to_string().contains(&gone.to_string()));
    }
}
