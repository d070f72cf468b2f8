//! A relay between a client and a server that remembers what passes, and can be cut or be silent.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Relays TCP connections from a port of 127.0.0.1 to a server, until dropped.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Vec<u8>>,
    streams: Mutex<Vec<TcpStream>>,
    silent: AtomicBool,
    over: AtomicBool,
}

impl Relay {
    /// Starts a relay to an address.
    ///
    /// # Panics
    /// When there is no port, or no such address.
    pub fn start(server: impl ToSocketAddrs) -> Self {
        let server = server.to_socket_addrs().expect("look up the server").next().expect("an address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind a port of the relay");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let shared = Arc::new(Shared::default());
        let relay = Self { port, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.over.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(far) = TcpStream::connect_timeout(&server, Duration::from_secs(5)) {
                    shared.join(client, far);
                }
            }
        });
        relay
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All bytes that passed so far, in both directions.
    pub fn seen(&self) -> Vec<u8> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on takes bytes and passes none on, as a network that drops packets.
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
            let shared = Arc::clone(self);
            thread::spawn(move || shared.copy(from, to));
        }
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).extend([client, server]);
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..count]);
            if self.silent.load(Ordering::Relaxed) {
                continue;
            }
            if to.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_and_are_remembered_until_the_cut() {
        let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(echo.local_addr().unwrap());
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap();
        let (mut server, _) = echo.accept().unwrap();
        client.write_all(b"ask").unwrap();
        let mut got = [0; 3];
        server.read_exact(&mut got).unwrap();
        server.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!((&got, &answer), (b"ask", b"answer"));
        assert_eq!(relay.seen(), b"askanswer");
        relay.cut();
        assert_eq!(client.read(&mut answer).unwrap(), 0);
    }
}
