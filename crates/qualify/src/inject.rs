//! A software NIC with faults, between the ends of the private lab: the suite must find each of them.
//!
//! Both ends become TAP links. The dut's leaves checksums and segmentation to this side, as a card's driver does, and is
//! filtered as a card filters; the peer's leaves nothing. A relay thread is the card and the wire. Faults begin when they
//! are [armed](Injector::arm), so that ends can be joined and calibrated before.

mod faults;
mod nic;
mod packet;
pub mod proof;
mod relay;
mod vnet;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_link::lab::{EndAddresses, LabEnd, PrivateLab, set_up_end};
use linerate_link::{LinkError, in_netns, links};
use linerate_sys::SysError;
use linerate_sys::tun::{Tap, TapOffload};

pub use faults::{FAULTS, Fault, UnknownFault, parse_faults};

/// Frames that a TAP link keeps for a relay that is not scheduled for a moment.
const QUEUE_FRAMES: u32 = 32_768;

/// The software NIC; it ends, and its links with it, when this is dropped.
#[derive(Debug)]
pub struct Injector {
    stop: Arc<AtomicBool>,
    armed: Arc<AtomicBool>,
    relay: Option<JoinHandle<Result<(), LinkError>>>,
}

impl Injector {
    /// Puts the software NIC in the place of a lab's pair of links: same names, same addresses.
    ///
    /// # Errors
    /// The kernel has no TAP links or does not allow them, or what else could not be made.
    pub fn between(lab: &PrivateLab, faults: &[&'static Fault]) -> Result<Self, LinkError> {
        let (dut, peer) = (lab.dut().clone(), lab.peer().clone());
        in_netns(&dut.netns, || links::remove(&dut.link))?;
        let dut_tap = tap(&dut, true)?;
        let peer_tap = tap(&peer, false)?;
        let (stop, armed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let relay = relay::Relay::new(dut_tap, peer_tap, faults, Arc::clone(&stop), Arc::clone(&armed));
        let netns = dut.netns.clone();
        let relay = std::thread::Builder::new()
            .name("injector".to_owned())
            .spawn(move || in_netns(&netns, || relay.run(&dut.link)))
            .map_err(|cause| SysError::new("start", "the injector's thread", cause))?;
        Ok(Self { stop, armed, relay: Some(relay) })
    }

    /// Lets the faults begin, or end.
    pub fn arm(&self, on: bool) {
        self.armed.store(on, Ordering::SeqCst);
    }

    /// The switch of [`Self::arm`], for the runner.
    pub fn switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.armed)
    }

    /// Ends it and says what went wrong in it.
    ///
    /// # Errors
    /// What ended the relay early.
    pub fn finish(mut self) -> Result<(), LinkError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LinkError> {
        self.stop.store(true, Ordering::SeqCst);
        match self.relay.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.end();
    }
}

fn tap(end: &LabEnd, is_dut: bool) -> Result<Tap, LinkError> {
    in_netns(&end.netns, || {
        let tap = Tap::create(&end.link, is_dut)?;
        if is_dut {
            // USO came to TAP links with Linux 6.2.
            tap.set_offload(TapOffload::CHECKSUM_TSO_USO)
                .or_else(|_| tap.set_offload(TapOffload::CHECKSUM_TSO))?;
        }
        links::set_tx_queue_length(&end.link, QUEUE_FRAMES)?;
        let ipv6 = end.ipv6.unwrap_or(std::net::Ipv6Addr::UNSPECIFIED);
        set_up_end(&end.link, EndAddresses { ipv4: end.ipv4, ipv6 }, None)?;
        Ok(tap)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::time::Duration;

    use linerate_link::lab::LabOptions;
    use linerate_testkit::need;

    #[test]
    fn a_card_without_faults_carries_tcp_and_lets_the_stack_leave_checksums_and_segments() {
        need!(tun());
        let lab = PrivateLab::create(LabOptions::default()).unwrap();
        let injector = Injector::between(&lab, &[]).unwrap();
        injector.arm(true);
        let sent: Vec<u8> = (0..4_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (from, to) in [(lab.dut(), lab.peer()), (lab.peer(), lab.dut())] {
            let listener = in_netns(&to.netns, || Ok(TcpListener::bind((to.ipv4, 0)).unwrap())).unwrap();
            let at = listener.local_addr().unwrap();
            let received = std::thread::spawn(move || {
                let mut bytes = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let mut stream = in_netns(&from.netns, || Ok(TcpStream::connect(at).unwrap())).unwrap();
            stream.write_all(&sent).unwrap();
            drop(stream);
            assert!(received.join().unwrap() == sent);
        }
        injector.finish().unwrap();
    }

    #[test]
    fn faults_begin_when_armed_and_end_again() {
        need!(tun());
        let lab = PrivateLab::create(LabOptions::default()).unwrap();
        let injector = Injector::between(&lab, &parse_faults("drop-all").unwrap()).unwrap();
        let (dut, peer) = (lab.dut(), lab.peer());
        let there = in_netns(&peer.netns, || Ok(UdpSocket::bind((peer.ipv4, 0)).unwrap())).unwrap();
        let here = in_netns(&dut.netns, || Ok(UdpSocket::bind((dut.ipv4, 0)).unwrap())).unwrap();
        there.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let arrives = |armed: bool| {
            injector.arm(armed);
            std::thread::sleep(Duration::from_millis(20));
            here.send_to(b"x", there.local_addr().unwrap()).unwrap();
            there.recv(&mut [0; 8]).is_ok()
        };
        assert!(arrives(false));
        assert!(!arrives(true));
        assert!(arrives(false));
    }
}
