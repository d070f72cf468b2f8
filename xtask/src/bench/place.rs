//! Where the tools run: one namespace with its loopback link, or two joined by a veth pair.
//!
//! Even the loopback is one of an own namespace, so that the counters of link and stack see the tools and nothing else.

use std::time::Duration;
use std::{fs, process::Command};

use linerate_testkit::{ChildGuard, Netns, Wire};

use super::work::PlaceKind;

/// Namespaces for both ends, removed when dropped.
pub(crate) struct Place {
    ends: Ends,
    /// A process in the server's namespace, through which the kernel shows that namespace's counters.
    server_view: ChildGuard,
}

enum Ends {
    Loopback(Netns),
    Veth(Wire),
}

impl Place {
    pub(crate) fn make(kind: PlaceKind) -> Self {
        let ends = match kind {
            PlaceKind::Loopback => Ends::Loopback(loopback()),
            PlaceKind::Veth => Ends::Veth(Wire::new()),
        };
        let mut sleep = ends.server().command("sleep");
        sleep.arg("infinity");
        let server_view = ChildGuard::spawn(sleep);
        // Until it sleeps it is still on its way into the namespace, and its view is that of ours.
        let asleep = || {
            fs::read_to_string(format!("/proc/{}/comm", server_view.pid()))
                .ok()?
                .trim()
                .eq("sleep")
                .then_some(())
        };
        linerate_testkit::eventually(Duration::from_secs(5), "a process in the server's namespace", asleep);
        Self { ends, server_view }
    }

    /// The server's address.
    pub(crate) fn server_address(&self) -> String {
        match &self.ends {
            Ends::Loopback(_) => "127.0.0.1".to_owned(),
            Ends::Veth(wire) => wire.right_ipv4().to_string(),
        }
    }

    /// A command on CPU 0 in the client's namespace.
    pub(crate) fn client(&self, program: &str) -> Command {
        pinned(self.ends.client(), "0", program)
    }

    /// A command on CPU 1 in the server's namespace.
    pub(crate) fn server(&self, program: &str) -> Command {
        pinned(self.ends.server(), "1", program)
    }

    /// linerate pins its two ends itself and enters their namespaces itself: the command, the peer and the dut.
    pub(crate) fn linerate(&self, program: &str) -> (Command, String, String) {
        match &self.ends {
            Ends::Loopback(netns) => (netns.command(program), "local".to_owned(), "local".to_owned()),
            Ends::Veth(wire) => (Command::new(program), wire.right.node(), wire.left.node()),
        }
    }

    /// Text of a file below `/proc/PID/net` as seen from the server's namespace; empty when it can't be read.
    pub(crate) fn server_net(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/net/{file}", self.server_view.pid())).unwrap_or_default()
    }

    /// The server's link.
    pub(crate) fn server_link(&self) -> &'static str {
        match self.ends {
            Ends::Loopback(_) => "lo",
            Ends::Veth(_) => Wire::RIGHT_LINK,
        }
    }

    /// How many packets the server's link receives for a request and its response: the loopback has both.
    pub(crate) fn packets_per_transaction(&self) -> f64 {
        match self.ends {
            Ends::Loopback(_) => 2.0,
            Ends::Veth(_) => 1.0,
        }
    }
}

impl Ends {
    fn client(&self) -> &Netns {
        match self {
            Self::Loopback(netns) => netns,
            Self::Veth(wire) => &wire.left,
        }
    }

    fn server(&self) -> &Netns {
        match self {
            Self::Loopback(netns) => netns,
            Self::Veth(wire) => &wire.right,
        }
    }
}

/// Its link also has an address of the block for benchmarks: netperf resolves `127.0.0.1` only where the machine has
/// some address that is not of the loopback (`AI_ADDRCONFIG`, getaddrinfo(3)).
fn loopback() -> Netns {
    let netns = Netns::new("bench");
    netns.ip(&["address", "add", "198.18.0.1/32", "dev", "lo"]);
    netns
}

fn pinned(netns: &Netns, cpu: &str, program: &str) -> Command {
    let mut command = netns.command("taskset");
    command.args(["-c", cpu, program]);
    command
}
