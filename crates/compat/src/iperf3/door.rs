//! Where clients come in: leads each TCP connection and each UDP hello to the test that it belongs to.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::Socket;

use super::udp;
use super::wire::Cookie;

/// A data connection of a test, numbered in the order in which connections were accepted.
pub(super) type Arrival = (u64, Socket);

/// What became of a cookie.
pub(super) enum Place {
    /// A test waits for this connection.
    Stream(Sender<Arrival>),
    /// A test with this cookie wants no more.
    Refused,
    /// The cookie is new: its connection is a control connection.
    New,
    /// New, and there is no room.
    Busy,
}

/// Tests that are under way, and what they wait for.
#[derive(Debug, Default)]
pub(super) struct Door {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    tests: HashMap<Cookie, Option<Sender<Arrival>>>,
    /// Addresses from which one test each waits for UDP hellos.
    hellos: HashMap<IpAddr, Sender<SocketAddr>>,
    /// Addresses of ours on which a test has a listener of its own.
    beside: HashSet<IpAddr>,
    /// Addresses of ours on which tests wait for streams through the general listener, and how many.
    plain: HashMap<IpAddr, usize>,
}

/// A test's place; freed when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    door: Arc<Door>,
    cookie: Cookie,
}

/// Hellos from one address come to the holder only; freed when dropped.
#[derive(Debug)]
pub(super) struct HelloLease {
    door: Arc<Door>,
    address: IpAddr,
    pub(super) hellos: Receiver<SocketAddr>,
}

/// The right to listen on one of our addresses; freed when dropped.
#[derive(Debug)]
pub(super) struct BesideLease {
    door: Arc<Door>,
    address: IpAddr,
}

/// The right to streams through the general listener on one of our addresses; freed when dropped.
#[derive(Debug)]
pub(super) struct PlainLease {
    door: Arc<Door>,
    address: IpAddr,
}

impl Door {
    /// Where a connection with this cookie belongs; a new cookie takes a seat, if fewer than `most` are taken.
    pub(super) fn place(self: &Arc<Self>, cookie: &Cookie, most: usize) -> (Place, Option<Seat>) {
        let mut inner = self.lock();
        match inner.tests.get(cookie) {
            Some(Some(sender)) => (Place::Stream(sender.clone()), None),
            Some(None) => (Place::Refused, None),
            None if inner.tests.len() >= most => (Place::Busy, None),
            None => {
                inner.tests.insert(*cookie, None);
                (Place::New, Some(Seat { door: self.clone(), cookie: *cookie }))
            }
        }
    }

    /// How many tests are under way.
    pub(super) fn taken(&self) -> usize {
        self.lock().tests.len()
    }

    /// Waits until no other test expects hellos from `address`; none once `limit` has passed.
    pub(super) fn lease_hellos(self: &Arc<Self>, address: IpAddr, limit: Duration) -> Option<HelloLease> {
        let mut inner = self.wait_while(limit, |inner| inner.hellos.contains_key(&address))?;
        let (sender, hellos) = channel();
        inner.hellos.insert(address, sender);
        Some(HelloLease { door: self.clone(), address, hellos })
    }

    /// Waits until no other test awaits streams on `address`; none once `limit` has passed. Connections that wait on a
    /// listener are lost when it is closed, so nobody else's may be under way.
    pub(super) fn lease_beside(self: &Arc<Self>, address: IpAddr, limit: Duration) -> Option<BesideLease> {
        let taken = |inner: &Inner| inner.beside.contains(&address) || inner.plain.contains_key(&address);
        let mut inner = self.wait_while(limit, taken)?;
        inner.beside.insert(address);
        Some(BesideLease { door: self.clone(), address })
    }

    /// Waits until no test listens on `address` with options of its own; none once `limit` has passed.
    pub(super) fn lease_plain(self: &Arc<Self>, address: IpAddr, limit: Duration) -> Option<PlainLease> {
        let mut inner = self.wait_while(limit, |inner| inner.beside.contains(&address))?;
        *inner.plain.entry(address).or_default() += 1;
        Some(PlainLease { door: self.clone(), address })
    }

    /// Leads a UDP datagram to the test that waits for its sender's address. Anything but a hello is dropped.
    pub(super) fn datagram(&self, content: &[u8], from: SocketAddr) {
        if !udp::is_hello(content) {
            return;
        }
        if let Some(sender) = self.lock().hellos.get(&from.ip()) {
            // The test may be over this very moment.
            let _sent = sender.send(from);
        }
    }

    fn wait_while(&self, limit: Duration, busy: impl Fn(&Inner) -> bool) -> Option<MutexGuard<'_, Inner>> {
        let until = Instant::now() + limit;
        let mut inner = self.lock();
        while busy(&inner) {
            let left = until.checked_duration_since(Instant::now())?;
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(inner)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// From now on connections with this test's cookie come here.
    pub(super) fn expect_streams(&self) -> Receiver<Arrival> {
        let (sender, receiver) = channel();
        self.door.lock().tests.insert(self.cookie, Some(sender));
        receiver
    }

    /// No more are wanted.
    pub(super) fn complete(&self) {
        self.door.lock().tests.insert(self.cookie, None);
    }

    pub(super) fn cookie(&self) -> &Cookie {
        &self.cookie
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.door.lock().tests.remove(&self.cookie);
    }
}

impl Drop for HelloLease {
    fn drop(&mut self) {
        self.door.lock().hellos.remove(&self.address);
        self.door.changed.notify_all();
    }
}

impl Drop for BesideLease {
    fn drop(&mut self) {
        self.door.lock().beside.remove(&self.address);
        self.door.changed.notify_all();
    }
}

impl Drop for PlainLease {
    fn drop(&mut self) {
        let mut inner = self.door.lock();
        if let Some(count) = inner.plain.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                inner.plain.remove(&self.address);
            }
        }
        drop(inner);
        self.door.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn cookies_lead_to_their_tests() {
        let door = Arc::new(Door::default());
        let (place, seat) = door.place(&[1; 37], 1);
        assert!(matches!(place, Place::New));
        assert!(matches!(door.place(&[2; 37], 1).0, Place::Busy));
        assert!(matches!(door.place(&[1; 37], 1).0, Place::Refused));
        let seat = seat.unwrap();
        let _streams = seat.expect_streams();
        assert!(matches!(door.place(&[1; 37], 1).0, Place::Stream(_)));
        seat.complete();
        assert!(matches!(door.place(&[1; 37], 1).0, Place::Refused));
        drop(seat);
        assert_eq!(door.taken(), 0);
    }

    #[test]
    fn hellos_go_only_to_the_test_of_their_sender() {
        let door = Arc::new(Door::default());
        let client: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let stranger: SocketAddr = "192.0.2.2:1000".parse().unwrap();
        let lease = door.lease_hellos(client.ip(), SOON).unwrap();
        assert!(door.lease_hellos(client.ip(), SOON).is_none());
        door.datagram(&udp::HELLO, stranger);
        door.datagram(b"stray", client);
        door.datagram(&udp::HELLO_OLD, client);
        assert_eq!(lease.hellos.try_iter().collect::<Vec<_>>(), [client]);
        drop(lease);
        assert!(door.lease_hellos(client.ip(), SOON).is_some());
    }

    #[test]
    fn one_listener_beside_at_a_time() {
        let door = Arc::new(Door::default());
        let address = "192.0.2.1".parse().unwrap();
        let lease = door.lease_beside(address, SOON).unwrap();
        assert!(door.lease_plain(address, SOON).is_none());
        assert!(door.lease_plain("192.0.2.9".parse().unwrap(), SOON).is_some());
        drop(lease);
        let plain = [door.lease_plain(address, SOON).unwrap(), door.lease_plain(address, SOON).unwrap()];
        assert!(door.lease_beside(address, SOON).is_none());
        drop(plain);
        assert!(door.lease_beside(address, SOON).is_some());
    }
}
