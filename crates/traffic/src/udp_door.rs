//! The door of a UDP server: one socket for each stream, connected to the client that proves itself there.
//!
//! Once a socket is connected the kernel keeps strangers out. Until the start the door goes on reading, to answer
//! repeated proofs and to throw away what strangers had queued before.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recvfrom, sendto};
use socket2::Socket;
use std::os::fd::AsRawFd;

use crate::call;
use crate::listen::Arrival;
use crate::preamble::{Claim, Purpose};
use crate::side::{Token, random};
use crate::udp_handshake::{Answer, Nonce, Request, decode_request, encode_answer};
use crate::wake::Wake;

/// Addresses that may be challenged at once on a socket; a newer one pushes out the oldest.
const CHALLENGED_MAX: usize = 16;

/// Challenges that a socket sends at the most before somebody has proved itself: a stranger who knows the token can't have
/// many sent to others.
const CHALLENGES_MAX: u32 = 256;

/// What the door needs.
pub(crate) struct UdpDoor {
    /// One socket for each stream, in order.
    pub(crate) sockets: Vec<Arc<Socket>>,
    pub(crate) token: Token,
    pub(crate) arrivals: Sender<Arrival>,
    pub(crate) strays: Arc<AtomicU64>,
    pub(crate) wake: Arc<Wake>,
}

#[derive(Default)]
struct Stream {
    challenged: Vec<(SocketAddr, Nonce)>,
    /// Challenges sent.
    sent: u32,
    /// The nonce that was proved, once the socket is connected.
    proved: Option<Nonce>,
}

impl UdpDoor {
    /// Runs until the wake is rung.
    pub(crate) fn run(self) {
        let mut streams: Vec<Stream> = self.sockets.iter().map(|_| Stream::default()).collect();
        let mut set = PollSet::new();
        let wake = set.add(self.wake.fd(), Readiness::READ);
        for socket in &self.sockets {
            set.add(socket.as_fd(), Readiness::READ);
        }
        while set.wait(None).is_ok() && !set.ready(wake).readable {
            for (index, stream) in streams.iter_mut().enumerate() {
                if set.ready(wake + 1 + index).readable {
                    self.read(index, stream);
                }
            }
        }
    }

    fn read(&self, index: usize, stream: &mut Stream) {
        let socket = &self.sockets[index];
        let mut buffer = [0; 256];
        // An error is one that an earlier answer met on its way; the socket goes on.
        let Ok((count, Some(from))) = recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut buffer) else {
            return;
        };
        let Some(address) = internet(&from) else { return };
        match decode_request(&buffer[..count], index as u32, &self.token) {
            None => _ = self.strays.fetch_add(1, Relaxed),
            Some(Request::Hello) if stream.proved.is_none() => self.challenge(index, stream, address, &from),
            Some(Request::Proof(nonce)) => self.proof(index, stream, address, nonce),
            Some(Request::Hello) => {}
        }
    }

    fn challenge(&self, index: usize, stream: &mut Stream, address: SocketAddr, to: &SockaddrStorage) {
        if stream.sent == CHALLENGES_MAX {
            self.strays.fetch_add(1, Relaxed);
            return;
        }
        stream.sent += 1;
        let known = stream.challenged.iter().find(|(a, _)| *a == address).map(|&(_, nonce)| nonce);
        let nonce = match known {
            Some(nonce) => nonce,
            None => {
                // Without randomness there is no safe answer; the client asks again.
                let Ok(nonce) = random() else { return };
                if stream.challenged.len() == CHALLENGED_MAX {
                    stream.challenged.remove(0);
                }
                stream.challenged.push((address, nonce));
                nonce
            }
        };
        let answer = encode_answer(Answer::Challenge(nonce), index as u32);
        // A lost answer is asked for again.
        let _lost = sendto(self.sockets[index].as_raw_fd(), &answer, to, MsgFlags::MSG_DONTWAIT);
    }

    fn proof(&self, index: usize, stream: &mut Stream, address: SocketAddr, nonce: Nonce) {
        let socket = &self.sockets[index];
        if stream.proved.is_none() {
            let right = stream.challenged.contains(&(address, nonce));
            if !right || socket.connect(&address.into()).is_err() {
                self.strays.fetch_add(1, Relaxed);
                return;
            }
            stream.proved = Some(nonce);
            let claim = Claim { stream: index as u32, purpose: Purpose::Data };
            // The endpoint is gone only when it is being dropped.
            let _endpoint_gone = self.arrivals.send(Arrival { claim, socket: socket.clone() });
        }
        if stream.proved == Some(nonce) {
            // Lost answers are asked for again: a refusal tells nothing else.
            let _lost: Result<usize, Errno> =
                call::send_now(&**socket, &encode_answer(Answer::Ready(nonce), index as u32));
        }
    }
}

fn internet(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::from(std::net::SocketAddrV4::from(*v4)));
    }
    address.as_sockaddr_in6().map(|v6| SocketAddr::from(std::net::SocketAddrV6::from(*v6)))
}
