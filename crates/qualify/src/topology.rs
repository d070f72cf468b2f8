//! Where a qualification runs, as a file tells it.
//!
//! ```toml
//! medium = "cable"              # veth, hub, cable, switch, tap
//! disruptive = true
//! allow = ["pm"]
//!
//! [local]
//! node = "ssh:root@server"      # local where it is left out
//! link = "0000:03:00.0"         # name, hardware address or bus address
//! v4 = "192.0.2.1"
//!
//! [remote]
//! node = "netns:tester"
//! v4 = "192.0.2.2"
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_model::NodeUrl;
use serde::Deserialize;

use crate::case::OptIn;

/// Where a qualification runs. What is not told is chosen, or asked for on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// The node under test.
    pub dut: Option<NodeUrl>,
    /// Its partner.
    pub peer: Option<NodeUrl>,
    /// Link under test: name, hardware address or bus address.
    pub dut_link: Option<String>,
    /// Link of the peer.
    pub peer_link: Option<String>,
    /// IPv4 addresses of dut and peer.
    pub v4: Option<(Ipv4Addr, Ipv4Addr)>,
    /// IPv6 addresses of dut and peer.
    pub v6: Option<(Ipv6Addr, Ipv6Addr)>,
    /// What joins the ends.
    pub medium: Option<String>,
    /// Cases may take the link down.
    pub disruptive: Option<bool>,
    /// Harm that is allowed.
    pub allow: Vec<OptIn>,
    /// Time limits are loosened: kernels with debugging, emulators.
    pub slow: bool,
}

/// Why a topology can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// It is no TOML, or has a word that there is not.
    #[error("{0}")]
    Syntax(String),
    /// A value that cannot be.
    #[error("{name} = '{value}': {why}")]
    Value {
        /// Which.
        name: String,
        /// What it is.
        value: String,
        /// Why not.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    local: EndInFile,
    #[serde(default)]
    remote: EndInFile,
    medium: Option<String>,
    disruptive: Option<bool>,
    #[serde(default)]
    slow: bool,
    #[serde(default)]
    allow: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct EndInFile {
    node: Option<NodeUrl>,
    link: Option<String>,
    v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
}

impl Topology {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Where it is no TOML, has a word that there is not, or gives an address of one end alone.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let file: File = toml::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))?;
        let allow = |word: &String| {
            word.parse().map_err(|why| TopologyError::Value {
                name: "allow".to_owned(),
                value: word.clone(),
                why,
            })
        };
        Ok(Self {
            v4: pair("v4", file.local.v4, file.remote.v4)?,
            v6: pair("v6", file.local.v6, file.remote.v6)?,
            dut: file.local.node,
            peer: file.remote.node,
            dut_link: file.local.link,
            peer_link: file.remote.link,
            medium: file.medium,
            disruptive: file.disruptive,
            allow: file.allow.iter().map(allow).collect::<Result<_, _>>()?,
            slow: file.slow,
        })
    }
}

/// An IP version needs an address at both ends, or at none.
pub(crate) fn pair<A: ToString>(
    name: &str,
    local: Option<A>,
    remote: Option<A>,
) -> Result<Option<(A, A)>, TopologyError> {
    match (local, remote) {
        (Some(local), Some(remote)) => Ok(Some((local, remote))),
        (None, None) => Ok(None),
        (Some(one), None) | (None, Some(one)) => Err(TopologyError::Value {
            name: name.to_owned(),
            value: one.to_string(),
            why: "an address of one end alone; give both or none".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_tells_both_ends() {
        let text = "medium = \"cable\"\nallow = [\"pm\"]\n[local]\nlink = \"eth1\"\nv4 = \"192.0.2.1\"\n\
                    [remote]\nnode = \"ssh:b\"\nv4 = \"192.0.2.2\"\n";
        let read = Topology::parse(text).unwrap();
        assert_eq!(read.peer, Some(NodeUrl::Ssh("b".to_owned())));
        assert_eq!(read.v4, Some(([192, 0, 2, 1].into(), [192, 0, 2, 2].into())));
        assert_eq!((read.dut_link.as_deref(), read.allow), (Some("eth1"), vec![OptIn::Pm]));
    }

    #[test]
    fn words_that_there_are_not_are_refused() {
        for text in
            ["medum = \"x\"", "[local]\nnode = \"foo:b\"", "allow = [\"fire\"]", "[local]\nv4 = \"1.2.3.4\""]
        {
            assert!(Topology::parse(text).is_err(), "{text}");
        }
    }
}
