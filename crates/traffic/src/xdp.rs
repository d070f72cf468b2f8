//! XDP programs on a link: count each frame, move its head and tail, and pass, drop, send back or redirect it.

mod program;

use linerate_model::bench::{XdpAction, XdpCount, XdpMode, XdpSpec};
use linerate_sys::bpf::{Map, XdpAttachment, XdpProgram};
use linerate_sys::{Result, SysError};

/// Bytes of the one entry of the counting map: frames, bytes.
const COUNT_BYTES: u32 = 16;

/// A program that is attached to a link until this is dropped.
#[derive(Debug)]
pub struct Xdp {
    counts: Map,
    _attachment: XdpAttachment,
    /// The attached program redirects by it.
    _devices: Option<Map>,
}

impl Xdp {
    /// Attaches a program to a link in the calling thread's network namespace.
    ///
    /// # Errors
    /// EPERM without `CAP_BPF` and `CAP_NET_ADMIN` in the initial user namespace; what the verifier or the driver
    /// refuses, in their words; ENODEV without such a link.
    pub fn attach(spec: &XdpSpec) -> Result<Self> {
        let counts = Map::array(1, COUNT_BYTES)?;
        let devices = match &spec.action {
            XdpAction::Redirect(link) => Some(device_map(link)?),
            _ => None,
        };
        let instructions = program::assemble(spec, counts.raw_fd(), devices.as_ref().map(Map::raw_fd));
        let program = XdpProgram::load("linerate", &instructions, spec.frags)?;
        let attachment = program.attach(&spec.link, spec.mode == XdpMode::Native)?;
        Ok(Self { counts, _attachment: attachment, _devices: devices })
    }

    /// What it has seen so far.
    ///
    /// # Errors
    /// None that the kernel gives for a map that exists.
    pub fn count(&self) -> Result<XdpCount> {
        let value = self.counts.value(0)?;
        let number = |at: usize| {
            value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Ok(XdpCount { frames: number(0), bytes: number(8) })
    }
}

fn device_map(link: &str) -> Result<Map> {
    let index = nix::net::if_::if_nametoindex(link)
        .map_err(|errno| SysError::new("find a link to redirect to", link, errno.into()))?;
    let devices = Map::devices(1)?;
    devices.set(0, &index.to_ne_bytes())?;
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    use linerate_testkit::Netns;

    use super::*;

    fn spec(action: XdpAction) -> XdpSpec {
        let (link, mode) = ("lo".to_owned(), XdpMode::Generic);
        XdpSpec { link, mode, action, head_bytes: 0, tail_bytes: 0, frags: false }
    }

    /// In a namespace of its own, so that the machine's loopback keeps working.
    fn beside(work: impl FnOnce() + Send) {
        let netns = Netns::new("xdp");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                linerate_sys::netns::enter(netns.name()).unwrap();
                work();
            });
            inside.join().unwrap();
        });
    }

    fn two_sockets() -> (UdpSocket, UdpSocket, SocketAddr) {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let address = to.local_addr().unwrap();
        (from, to, address)
    }

    #[test]
    fn passed_frames_arrive_and_dropped_ones_do_not_and_both_are_counted() {
        linerate_testkit::need!(netns());
        beside(|| {
            let (from, to, address) = two_sockets();
            for (action, arrives) in
                [(XdpAction::Pass, true), (XdpAction::Drop, false), (XdpAction::Aborted, false)]
            {
                let xdp = Xdp::attach(&spec(action.clone())).unwrap();
                for _ in 0..5 {
                    from.send_to(&[7; 100], address).unwrap();
                }
                assert_eq!(to.recv(&mut [0; 200]).is_ok(), arrives, "{action:?}");
                let count = xdp.count().unwrap();
                assert_eq!((count.frames, count.bytes), (5, 5 * 142), "{action:?}");
                while to.recv(&mut [0; 200]).is_ok() {}
            }
            from.send_to(&[7; 100], address).unwrap();
            assert!(to.recv(&mut [0; 200]).is_ok(), "nothing is attached any more");
        });
    }

    #[test]
    fn every_shape_satisfies_the_verifier() {
        linerate_testkit::need!(netns());
        beside(|| {
            let actions = [XdpAction::Pass, XdpAction::Transmit, XdpAction::Redirect("lo".to_owned())];
            for action in actions {
                for (head_bytes, tail_bytes) in [(0, 0), (4, 0), (-4, 0), (0, 8), (0, -8), (14, -1)] {
                    let shape = XdpSpec { head_bytes, tail_bytes, ..spec(action.clone()) };
                    Xdp::attach(&shape).map(drop).unwrap_or_else(|error| panic!("{shape:?}: {error}"));
                }
            }
        });
    }
}
