//! Network namespaces that go away with their test.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::child::{Finished, run_within};
use crate::program::NO_FOLDER;

/// Long enough for a machine under load, short enough for a test.
const IP_LIMIT: Duration = Duration::from_secs(20);

/// What the names of the namespaces made here begin with; the owner's process id follows.
pub(crate) const NAME_PREFIX: &str = "lr-t";

/// A network namespace made by `ip netns add`, with its loopback link up; deleted when dropped.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes a namespace of the name `lr-tPID-NUMBER-LABEL`, which no other test has.
    ///
    /// # Panics
    /// When it can't be made: the test should [`need!`](crate::need!) `netns()` first.
    pub fn new(label: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME_PREFIX}{}-{number}-{label}", process::id());
        ip(&["netns", "add", &name]);
        let netns = Self { name };
        netns.ip(&["link", "set", "lo", "up"]);
        netns
    }

    /// Its name, as `ip netns` and `netns:NAME` take it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its node URL: `netns:NAME`.
    pub fn node(&self) -> String {
        format!("netns:{}", self.name)
    }

    /// A command that will run inside it, with no place to keep a history of runs.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.env("XDG_DATA_HOME", NO_FOLDER);
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `ip` inside it and returns its output.
    ///
    /// # Panics
    /// When `ip` fails.
    pub fn ip(&self, arguments: &[&str]) -> String {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// A counter of one of its links, from `/sys/class/net/LINK/statistics/NAME`, such as `rx_bytes` (bytes) or
    /// `tx_packets` (packets).
    ///
    /// # Panics
    /// When there is no such link or counter.
    pub fn link_counter(&self, link: &str, counter: &str) -> u64 {
        let path = format!("/sys/class/net/{link}/statistics/{counter}");
        let mut cat = self.command("cat");
        cat.arg(&path);
        let text = run_within(cat, IP_LIMIT).expect_code(0).stdout;
        text.trim().parse().unwrap_or_else(|_| panic!("{path} in {}: {text:?} is no number", self.name))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // No panic: the test may be failing already. A namespace that stays is found by the leak check.
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).output();
    }
}

/// Two namespaces joined by a veth pair, both ends up and addressed without duplicate address detection.
///
/// | | left | right |
/// |---|---|---|
/// | link | `lr-left` | `lr-right` |
/// | IPv4 | 198.18.0.1/24 | 198.18.0.2/24 |
/// | IPv6 | fd00:18::1/64 | fd00:18::2/64 |
///
/// The IPv4 addresses are of the block for benchmarks (RFC 2544, section C.2.2), the IPv6 ones are unique local
/// (RFC 4193). They may be the same in each wire: the namespaces see only each other.
#[derive(Debug)]
pub struct Wire {
    /// The one end.
    pub left: Netns,
    /// The other end.
    pub right: Netns,
}

impl Wire {
    /// The link in [`left`](Self::left).
    pub const LEFT_LINK: &'static str = "lr-left";
    /// The link in [`right`](Self::right).
    pub const RIGHT_LINK: &'static str = "lr-right";

    /// Makes both namespaces and the pair.
    ///
    /// # Panics
    /// When one of the steps fails: the test should [`need!`](crate::need!) `netns()` first.
    #[expect(clippy::new_without_default, reason = "makes namespaces, which a default value should not")]
    pub fn new() -> Self {
        let wire = Self { left: Netns::new("left"), right: Netns::new("right") };
        let (left, right) = (wire.left.name(), wire.right.name());
        let peer = ["type", "veth", "peer", "name", Self::RIGHT_LINK, "netns", right];
        ip(&[["link", "add", Self::LEFT_LINK, "netns", left].as_slice(), &peer].concat());
        address(&wire.left, Self::LEFT_LINK, wire.left_ipv4(), wire.left_ipv6());
        address(&wire.right, Self::RIGHT_LINK, wire.right_ipv4(), wire.right_ipv6());
        wire
    }

    /// The IPv4 address of the left end.
    pub fn left_ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 0, 1)
    }

    /// The IPv4 address of the right end.
    pub fn right_ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 0, 2)
    }

    /// The IPv6 address of the left end.
    pub fn left_ipv6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 1)
    }

    /// The IPv6 address of the right end.
    pub fn right_ipv6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 2)
    }

    /// The right end's address of a family, 4 or 6.
    ///
    /// # Panics
    /// For any other number.
    pub fn right_address(&self, family: u8) -> IpAddr {
        match family {
            4 => self.right_ipv4().into(),
            6 => self.right_ipv6().into(),
            other => panic!("address family {other}: 4 or 6"),
        }
    }
}

fn address(netns: &Netns, link: &str, ipv4: Ipv4Addr, ipv6: Ipv6Addr) {
    netns.ip(&["address", "add", &format!("{ipv4}/24"), "dev", link]);
    netns.ip(&["address", "add", &format!("{ipv6}/64"), "dev", link, "nodad"]);
    netns.ip(&["link", "set", link, "up"]);
}

/// Runs `ip` in the test's own namespace and returns its output.
fn ip(arguments: &[&str]) -> String {
    let mut command = Command::new("ip");
    command.args(arguments);
    let finished: Finished = run_within(command, IP_LIMIT);
    assert!(finished.success(), "ip {}: {}", arguments.join(" "), finished.stderr);
    finished.stdout
}
