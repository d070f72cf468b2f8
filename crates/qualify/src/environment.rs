//! The names by which the kernel's own network selftests are told where to run (`tools/testing/selftests/drivers/net`):
//! `NETIF`, `LOCAL_V4`, `REMOTE_TYPE` and others, from the process's environment or from a file `net.config`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_model::NodeUrl;

use crate::topology::{Topology, TopologyError, pair};

/// Names that are read.
pub const NAMES: [&str; 9] = [
    "NETIF",
    "LOCAL_V4",
    "LOCAL_V6",
    "REMOTE_V4",
    "REMOTE_V6",
    "REMOTE_TYPE",
    "REMOTE_ARGS",
    "DISRUPTIVE",
    "KSFT_MACHINE_SLOW",
];

/// What the names tell. `None` where neither a link nor a remote is named: then this is no kernel selftest.
///
/// # Errors
/// A value that cannot be.
pub fn read(values: &BTreeMap<String, String>) -> Result<Option<Topology>, TopologyError> {
    let value = |name: &str| values.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
    if value("NETIF").is_none() && value("REMOTE_TYPE").is_none() {
        return Ok(None);
    }
    let peer = match (value("REMOTE_TYPE"), value("REMOTE_ARGS")) {
        (None, _) => None,
        (Some(kind), args) => Some(remote(kind, args.unwrap_or_default())?),
    };
    Ok(Some(Topology {
        dut: Some(NodeUrl::Local),
        peer,
        dut_link: value("NETIF").map(str::to_owned),
        v4: pair(
            "LOCAL_V4, REMOTE_V4",
            parsed::<Ipv4Addr>("LOCAL_V4", value("LOCAL_V4"))?,
            parsed("REMOTE_V4", value("REMOTE_V4"))?,
        )?,
        v6: pair(
            "LOCAL_V6, REMOTE_V6",
            parsed::<Ipv6Addr>("LOCAL_V6", value("LOCAL_V6"))?,
            parsed("REMOTE_V6", value("REMOTE_V6"))?,
        )?,
        disruptive: value("DISRUPTIVE").map(|text| truth("DISRUPTIVE", text)).transpose()?,
        slow: value("KSFT_MACHINE_SLOW").map(|text| truth("KSFT_MACHINE_SLOW", text)).transpose()?
            == Some(true),
        ..Topology::default()
    }))
}

/// Reads `net.config`: lines `NAME=VALUE`, the value perhaps in quotes; `#` begins a comment.
pub fn parse_file(text: &str) -> BTreeMap<String, String> {
    let entry = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        Some((name.trim().to_owned(), value.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

fn remote(kind: &str, args: &str) -> Result<NodeUrl, TopologyError> {
    let wrong = |name: &str, value: &str, why: String| TopologyError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        why,
    };
    match kind {
        "netns" | "ssh" => {
            format!("{kind}:{args}").parse().map_err(|error| wrong("REMOTE_ARGS", args, format!("{error}")))
        }
        // Our own kind: any node by its URL.
        "agent" => args.parse().map_err(|error| wrong("REMOTE_ARGS", args, format!("{error}"))),
        _ => Err(wrong("REMOTE_TYPE", kind, "there are netns, ssh and agent".to_owned())),
    }
}

fn parsed<A: std::str::FromStr>(name: &str, value: Option<&str>) -> Result<Option<A>, TopologyError>
where
    A::Err: std::fmt::Display,
{
    // The selftests allow a prefix length behind an address.
    let address = value.map(|text| text.split('/').next().unwrap_or(text));
    address
        .map(|text| {
            text.parse().map_err(|error| TopologyError::Value {
                name: name.to_owned(),
                value: text.to_owned(),
                why: format!("{error}"),
            })
        })
        .transpose()
}

fn truth(name: &str, text: &str) -> Result<bool, TopologyError> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "true" | "1" => Ok(true),
        "no" | "n" | "false" | "0" => Ok(false),
        _ => Err(TopologyError::Value {
            name: name.to_owned(),
            value: text.to_owned(),
            why: "yes or no".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<Topology>, TopologyError> {
        read(&parse_file(text))
    }

    #[test]
    fn the_selftests_names_tell_where_to_run() {
        let text = "# a comment\nNETIF=eth0\nLOCAL_V4=\"192.0.2.1\" # here\nREMOTE_V4=192.0.2.2/24\n\
                    REMOTE_TYPE=netns\nREMOTE_ARGS=tester\nDISRUPTIVE=no\nKSFT_MACHINE_SLOW=1\n";
        let read = of(text).unwrap().unwrap();
        assert_eq!(read.dut_link.as_deref(), Some("eth0"));
        assert_eq!(read.peer, Some(NodeUrl::Netns("tester".to_owned())));
        assert_eq!(read.v4, Some(([192, 0, 2, 1].into(), [192, 0, 2, 2].into())));
        assert_eq!((read.disruptive, read.slow), (Some(false), true));
    }

    #[test]
    fn without_a_link_or_a_remote_it_is_no_selftest_and_nonsense_is_refused() {
        assert_eq!(of("DISRUPTIVE=no"), Ok(None));
        for text in [
            "NETIF=e\nLOCAL_V4=192.0.2.1",
            "NETIF=e\nREMOTE_TYPE=carrier-pigeon",
            "NETIF=e\nDISRUPTIVE=perhaps",
            "NETIF=e\nLOCAL_V6=x\nREMOTE_V6=::1",
            "NETIF=e\nREMOTE_TYPE=netns\nREMOTE_ARGS=a/b",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
