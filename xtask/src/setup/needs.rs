//! What tests and benchmarks use. Add a line here to have it installed.

/// A package of Debian's.
pub(crate) struct DebianPackage {
    /// The package.
    pub(crate) name: &'static str,
    /// A program of it: where this is on the path, nothing is to be done.
    pub(crate) program: &'static str,
    /// Where in the archive it is.
    pub(crate) component: Component,
    /// Services that it would start at boot.
    pub(crate) services: &'static [&'static str],
    /// Answers for its questions: `PACKAGE QUESTION TYPE VALUE` (debconf-set-selections(1)).
    pub(crate) answers: &'static [&'static str],
    /// What it is for.
    pub(crate) purpose: &'static str,
}

/// A part of Debian's archive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// Part of Debian, so that every machine has a source for it.
    Main,
    /// Has a licence that is not free: needs a source of its own for the time of the install.
    NonFree,
}

const fn main(name: &'static str, program: &'static str, purpose: &'static str) -> DebianPackage {
    DebianPackage { name, program, component: Component::Main, services: &[], answers: &[], purpose }
}

pub(crate) const DEBIAN_PACKAGES: &[DebianPackage] = &[
    main("iproute2", "ip", "tests: namespaces and links"),
    main("ethtool", "ethtool", "tests: a second opinion on link settings"),
    main("tshark", "tshark", "tests: what is on the wire")
        .answering(&["wireshark-common wireshark-common/install-setuid boolean false"]),
    main("openssh-server", "sshd", "tests: nodes reached by ssh").serving(&["ssh"]),
    main("openssh-client", "ssh", "tests: nodes reached by ssh"),
    main("util-linux", "taskset", "benchmarks: every tool is pinned the same way"),
    main("iperf3", "iperf3", "benchmarks and tests: a peer and a second count")
        .answering(&["iperf3 iperf3/start_daemon boolean false"])
        .serving(&["iperf3"]),
    main("iperf", "iperf", "tests: a second count"),
    main("chromium", "chromium", "tests: reports as a browser lays them out"),
    main("qemu-system-x86", "qemu-system-x86_64", "tests: guests with emulated NICs"),
    main("nuttcp", "nuttcp", "benchmarks: a peer"),
    main("sockperf", "sockperf", "benchmarks: a peer"),
    main("qperf", "qperf", "benchmarks: a peer"),
    DebianPackage {
        component: Component::NonFree,
        ..main("netperf", "netperf", "benchmarks and tests: a peer and a second count").serving(&["netperf"])
    },
];

impl DebianPackage {
    const fn serving(self, services: &'static [&'static str]) -> Self {
        Self { services, ..self }
    }

    const fn answering(self, answers: &'static [&'static str]) -> Self {
        Self { answers, ..self }
    }
}

/// A cargo subcommand from crates.io.
pub(crate) struct CargoTool {
    /// The crate.
    pub(crate) name: &'static str,
    /// `cargo SUBCOMMAND`.
    pub(crate) subcommand: &'static str,
    /// The version to install.
    pub(crate) version: &'static str,
    /// Whether no other version will do.
    pub(crate) exact: bool,
    /// What it is for.
    pub(crate) purpose: &'static str,
}

pub(crate) const CARGO_TOOLS: &[CargoTool] = &[
    CargoTool {
        name: "cargo-nextest",
        subcommand: "nextest",
        version: "0.9.151",
        exact: false,
        purpose: "runs the tests",
    },
    // Later versions may know more licences and other keys of deny.toml.
    CargoTool {
        name: "cargo-deny",
        subcommand: "deny",
        version: "0.20.2",
        exact: true,
        purpose: "checks licences, bans and sources",
    },
];
