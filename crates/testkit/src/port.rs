//! Ports nobody listens on.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};

/// A TCP port that was free a moment ago on all addresses of this network namespace. Another process may take it
/// before the test does: prefer port 0 where the program under test can tell which port it got.
///
/// # Panics
/// When no port can be bound.
pub fn free_tcp_port() -> u16 {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).expect("bind a free TCP port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A UDP port that was free a moment ago; see [`free_tcp_port`].
///
/// # Panics
/// When no port can be bound.
pub fn free_udp_port() -> u16 {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).expect("bind a free UDP port");
    socket.local_addr().expect("a bound socket has an address").port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_can_be_bound() {
        assert!(TcpListener::bind(("::", free_tcp_port())).is_ok());
        assert!(UdpSocket::bind(("::", free_udp_port())).is_ok());
    }
}
