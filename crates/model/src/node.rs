//! Where an agent runs.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::trial::Side;

/// TCP port on which `linerate serve` listens unless told otherwise.
pub const DEFAULT_SERVE_PORT: u16 = 5212;

/// How a URL ends that means the other end of a guest's wire.
const PEER_SEAT: &str = "/peer";

/// A node's address: `local`, `netns:NAME`, `ssh:[USER@]HOST`, `tcp:HOST[:PORT]`, `vm:PROFILE[/peer]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum NodeUrl {
    /// This machine, in the namespace that the command was started in.
    Local,
    /// A named network namespace of this machine (`/run/netns/NAME`).
    Netns(String),
    /// A machine reached with the user's own ssh; the text is what ssh takes as its destination.
    Ssh(String),
    /// A `linerate serve`: traffic only.
    Tcp {
        /// Host name or address, without brackets.
        host: String,
        /// TCP port of the server.
        port: u16,
    },
    /// A guest that linerate boots in QEMU, with an emulated NIC.
    Vm {
        /// Name of a shipped profile, or the path of a profile's file.
        profile: String,
        /// Which place in the guest: the dut is where the NIC of the profile is; the peer, at the other end of that NIC's
        /// wire, is a namespace of the same guest with a virtio-net.
        seat: Side,
    },
}

/// Why a text is not a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeUrlError {
    /// The scheme is not one of those offered.
    #[error(
        "node '{0}': unknown kind; use local, netns:NAME, ssh:[USER@]HOST, tcp:HOST[:PORT] or vm:PROFILE"
    )]
    UnknownKind(String),
    /// The part behind the colon is missing or has characters it can't have.
    #[error("node '{url}': {reason}")]
    BadName {
        /// The whole text.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl NodeUrl {
    /// Whether this node may change settings and run commands (all but `tcp:`).
    pub fn is_managed(&self) -> bool {
        !matches!(self, Self::Tcp { .. })
    }

    /// The other end of the same guest's wire; `None` for a node that is no guest.
    pub fn other_seat(&self) -> Option<Self> {
        let Self::Vm { profile, seat } = self else { return None };
        let seat = match seat {
            Side::Dut => Side::Peer,
            Side::Peer => Side::Dut,
        };
        Some(Self::Vm { profile: profile.clone(), seat })
    }
}

impl FromStr for NodeUrl {
    type Err = NodeUrlError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let bad = |reason| NodeUrlError::BadName { url: url.to_owned(), reason };
        if url == "local" {
            return Ok(Self::Local);
        }
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(NodeUrlError::UnknownKind(url.to_owned()));
        };
        match scheme {
            "netns" => {
                if rest.is_empty() || rest == "." || rest == ".." || rest.contains(['/', '\0']) {
                    return Err(bad("a namespace name is a file name in /run/netns"));
                }
                Ok(Self::Netns(rest.to_owned()))
            }
            "ssh" => {
                if rest.is_empty() || rest.starts_with('-') || rest.contains(char::is_whitespace) {
                    return Err(bad("ssh: needs [USER@]HOST as ssh takes it"));
                }
                Ok(Self::Ssh(rest.to_owned()))
            }
            "tcp" => parse_host_port(rest).map(|(host, port)| Self::Tcp { host, port }).map_err(bad),
            "vm" => {
                let (profile, seat) = match rest.strip_suffix(PEER_SEAT) {
                    Some(profile) => (profile, Side::Peer),
                    None => (rest, Side::Dut),
                };
                if profile.is_empty() || profile.starts_with('-') || profile.contains(char::is_control) {
                    return Err(bad("vm: needs a profile: a name that `linerate vm list` shows, or a file"));
                }
                Ok(Self::Vm { profile: profile.to_owned(), seat })
            }
            _ => Err(NodeUrlError::UnknownKind(url.to_owned())),
        }
    }
}

fn parse_host_port(text: &str) -> Result<(String, u16), &'static str> {
    const BAD_PORT: &str = "the port is a number from 1 to 65535";
    const NO_HOST: &str = "tcp: needs HOST[:PORT], an IPv6 address in brackets";
    let parse_port = |port: &str| port.parse().ok().filter(|&p| p != 0).ok_or(BAD_PORT);
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) = rest.split_once(']').filter(|(host, _)| is_ipv6(host)).ok_or(NO_HOST)?;
        match tail.strip_prefix(':') {
            Some(port) => (host, parse_port(port)?),
            None if tail.is_empty() => (host, DEFAULT_SERVE_PORT),
            None => return Err(NO_HOST),
        }
    } else if is_ipv6(text) {
        (text, DEFAULT_SERVE_PORT)
    } else if let Some((host, port)) = text.split_once(':') {
        (host, parse_port(port)?)
    } else {
        (text, DEFAULT_SERVE_PORT)
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '[' | ']' | '/');
    if host.is_empty() || host.contains(odd) {
        return Err(NO_HOST);
    }
    Ok((host.to_owned(), port))
}

/// An IPv6 address, with a zone where it has one (RFC 4007: `fe80::1%eth0`).
fn is_ipv6(text: &str) -> bool {
    let address = match text.split_once('%') {
        Some((_, "")) => return false,
        Some((address, _zone)) => address,
        None => text,
    };
    address.parse::<Ipv6Addr>().is_ok()
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Netns(name) => write!(f, "netns:{name}"),
            Self::Ssh(destination) => write!(f, "ssh:{destination}"),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Self::Vm { profile, seat: Side::Dut } => write!(f, "vm:{profile}"),
            Self::Vm { profile, seat: Side::Peer } => write!(f, "vm:{profile}{PEER_SEAT}"),
        }
    }
}

impl TryFrom<String> for NodeUrl {
    type Error = NodeUrlError;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        url.parse()
    }
}

impl From<NodeUrl> for String {
    fn from(node: NodeUrl) -> Self {
        node.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_round_trips() {
        for url in [
            "local",
            "netns:blue",
            "ssh:me@host",
            "ssh:alias",
            "tcp:host:99",
            "tcp:[fd00::1]:5212",
            "tcp:[fe80::1%eth0]:5",
            "vm:e1000",
            "vm:e1000/peer",
            "vm:./my own.toml",
            "vm:/etc/cards/mine.toml/peer",
        ] {
            assert_eq!(url.parse::<NodeUrl>().unwrap().to_string(), url);
        }
        assert_eq!("tcp:fd00::1".parse::<NodeUrl>().unwrap().to_string(), "tcp:[fd00::1]:5212");
        assert_eq!("tcp:[fd00::1]".parse::<NodeUrl>().unwrap().to_string(), "tcp:[fd00::1]:5212");
        assert_eq!("tcp:h".parse::<NodeUrl>().unwrap().to_string(), "tcp:h:5212");
    }

    #[test]
    fn wrong_texts_are_refused() {
        for url in [
            "",
            "lo",
            "netns:",
            "netns:a/b",
            "netns:..",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "ssh:a b",
            "tcp:",
            "tcp::5",
            "tcp:h:0",
            "tcp:h:x",
            "tcp:[::1",
            "tcp:[h]:5",
            "tcp:a:b:c",
            "tcp:h:5:6",
            "tcp:fe80::1%",
            "tcp:a b",
            "tcp:::1]:5",
            "udp:x",
            "vm:",
            "vm:/peer",
            "vm:-x",
        ] {
            assert!(url.parse::<NodeUrl>().is_err(), "{url}");
        }
    }
}
