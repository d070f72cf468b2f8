//! Kernel parameters: short names for those that change what a link carries, and any other by its own name.

use std::fs;
use std::path::Path;

use super::part::Values;
use super::value::Allowed;
use crate::error::Result;
use crate::sysctl;

/// What a key of any parameter begins with.
pub(crate) const PREFIX: &str = "sysctl:";

/// A short name, the parameter's own, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) name: &'static str,
    pub(crate) sysctl: &'static str,
    pub(crate) description: &'static str,
}

const fn short(name: &'static str, sysctl: &'static str, description: &'static str) -> Short {
    Short { name, sysctl, description }
}

/// Source of the descriptions: the kernel's Documentation/admin-guide/sysctl/net.rst and
/// Documentation/networking/ip-sysctl.rst.
pub(crate) const SHORT_NAMES: &[Short] = &[
    short("busy-poll", "net.core.busy_poll", "poll(2) busy-polls this long, us"),
    short("busy-read", "net.core.busy_read", "reads busy-poll this long, us"),
    short("netdev-budget", "net.core.netdev_budget", "packets a softirq takes at most"),
    short("netdev-budget-usecs", "net.core.netdev_budget_usecs", "time a softirq takes at most, us"),
    short("netdev-max-backlog", "net.core.netdev_max_backlog", "packets that may wait for a CPU"),
    short("dev-weight", "net.core.dev_weight", "packets a poll takes at most"),
    short("gro-normal-batch", "net.core.gro_normal_batch", "packets that GRO passes on at once"),
    short("rps-sock-flow-entries", "net.core.rps_sock_flow_entries", "flows that RFS knows"),
    short("rmem-default", "net.core.rmem_default", "receive buffer of sockets, bytes"),
    short("rmem-max", "net.core.rmem_max", "most for SO_RCVBUF, bytes"),
    short("wmem-default", "net.core.wmem_default", "send buffer of sockets, bytes"),
    short("wmem-max", "net.core.wmem_max", "most for SO_SNDBUF, bytes"),
    short("optmem-max", "net.core.optmem_max", "ancillary data a socket may hold, bytes"),
    short("default-qdisc", "net.core.default_qdisc", "qdisc that new links get"),
    short("tcp-rmem", "net.ipv4.tcp_rmem", "TCP receive buffer: least, default, most"),
    short("tcp-wmem", "net.ipv4.tcp_wmem", "TCP send buffer: least, default, most"),
    short("tcp-congestion-control", "net.ipv4.tcp_congestion_control", "of new connections"),
    short("tcp-autocorking", "net.ipv4.tcp_autocorking", "join small writes"),
    short("tcp-limit-output-bytes", "net.ipv4.tcp_limit_output_bytes", "bytes below the stack, a socket"),
    short("tcp-min-tso-segs", "net.ipv4.tcp_min_tso_segs", "segments a TSO packet has at least"),
    short("tcp-notsent-lowat", "net.ipv4.tcp_notsent_lowat", "unsent bytes before writes wait"),
    short("tcp-timestamps", "net.ipv4.tcp_timestamps", "RFC 7323 timestamps"),
    short("tcp-sack", "net.ipv4.tcp_sack", "selective acknowledgements"),
    short("tcp-ecn", "net.ipv4.tcp_ecn", "explicit congestion notification"),
    short("tcp-slow-start-after-idle", "net.ipv4.tcp_slow_start_after_idle", "shrink the window when idle"),
];

/// What a parameter takes: short texts of the kernel that are a number are told by the kernel alone what they may be.
pub(crate) fn allowed(name: &str) -> Allowed {
    match name {
        "net.ipv4.tcp_congestion_control" => {
            let known = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
            Allowed::Choice { known: known.split_whitespace().map(str::to_owned).collect(), others: true }
        }
        _ => Allowed::Text,
    }
}

/// The parameter at `path` as one value; a link's own is that of `link`, which may have got another name since.
pub(crate) fn values(path: &str, link: &str) -> Result<Values> {
    Ok(Values::from([(path.to_owned(), sysctl::read(&renamed(path, link))?)]))
}

/// Writes what differs.
pub(crate) fn put_back(path: &str, link: &str, before: &Values) -> Result<()> {
    before.get(path).map_or(Ok(()), |value| sysctl::write(&renamed(path, link), value))
}

/// The link that a parameter is of (`net/ipv4/conf/eth0/rp_filter`), if it is of one.
pub(crate) fn link_of(path: &str) -> Option<&str> {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["net", "ipv4" | "ipv6" | "mpls", "conf" | "neigh", link, _, ..] => {
            Some(*link).filter(|link| !["all", "default"].contains(link))
        }
        _ => None,
    }
}

fn renamed(path: &str, link: &str) -> String {
    let Some(old) = link_of(path) else { return path.to_owned() };
    path.replacen(&format!("/{old}/"), &format!("/{link}/"), 1)
}

/// Whether a parameter belongs to a network namespace; others are the machine's.
pub(crate) fn is_of_network(name: &str) -> bool {
    name.starts_with("net.") || name.starts_with("net/")
}

/// Parameters that writing `name` changes too: a switch for all links sets that of each link.
pub(crate) fn dragged_along(name: &str) -> Vec<String> {
    let path = name.replace('.', "/");
    let (family, leaf) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["net", "ipv4", "ip_forward"] => ("ipv4", "forwarding"),
        ["net", family @ ("ipv4" | "ipv6"), "conf", "all" | "default", leaf] => (*family, *leaf),
        _ => return Vec::new(),
    };
    let folder = Path::new("/proc/sys/net").join(family).join("conf");
    let mut names: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|link| format!("net/{family}/conf/{link}/{leaf}"))
        .filter(|other| *other != path && sysctl::exists(other))
        .collect();
    names.sort();
    if leaf == "forwarding" && family == "ipv4" && path != "net/ipv4/ip_forward" {
        names.push("net/ipv4/ip_forward".to_owned());
    }
    names
}

/// The links whose IPv6 addresses writing `name` takes away: one by name, or all.
pub(crate) fn takes_ipv6_of(name: &str) -> Option<Affected> {
    let separator = name.chars().find(|c| matches!(c, '.' | '/')).unwrap_or('.');
    match name.split(separator).collect::<Vec<_>>().as_slice() {
        ["net", "ipv6", "conf", "all" | "default", "disable_ipv6"] => Some(Affected::All),
        ["net", "ipv6", "conf", link, "disable_ipv6"] => {
            let swapped = if separator == '.' { link.replace('/', ".") } else { (*link).to_owned() };
            Some(Affected::One(swapped))
        }
        _ => None,
    }
}

/// Which links a change reaches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Affected {
    One(String),
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_for_all_links_drag_those_of_each_along() {
        let names = dragged_along("net.ipv4.conf.all.forwarding");
        assert!(names.contains(&"net/ipv4/conf/lo/forwarding".to_owned()), "{names:?}");
        assert!(names.contains(&"net/ipv4/ip_forward".to_owned()));
        assert!(dragged_along("net.ipv4.ip_forward").contains(&"net/ipv4/conf/all/forwarding".to_owned()));
        assert!(dragged_along("net.ipv4.tcp_rmem").is_empty());
    }

    #[test]
    fn a_links_own_parameters_follow_its_name() {
        assert_eq!(link_of("net/ipv4/conf/eth0.1/rp_filter"), Some("eth0.1"));
        assert_eq!(link_of("net/ipv4/conf/all/rp_filter"), None);
        assert_eq!(renamed("net/ipv4/conf/eth0/rp_filter", "eth1"), "net/ipv4/conf/eth1/rp_filter");
        assert_eq!(renamed("net/ipv4/tcp_sack", "eth1"), "net/ipv4/tcp_sack");
    }

    #[test]
    fn what_takes_ipv6_away_is_known() {
        assert_eq!(takes_ipv6_of("net.ipv6.conf.all.disable_ipv6"), Some(Affected::All));
        let one = Some(Affected::One("eth0.1".to_owned()));
        assert_eq!(takes_ipv6_of("net.ipv6.conf.eth0/1.disable_ipv6"), one);
        assert_eq!(takes_ipv6_of("net/ipv6/conf/eth0.1/disable_ipv6"), one);
        assert_eq!(takes_ipv6_of("net.ipv6.conf.eth0.mtu"), None);
    }
}
