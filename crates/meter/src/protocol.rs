//! Protocol counters of a network namespace: `/proc/net/snmp`, `netstat` (pairs of lines) and `snmp6` (a counter a line).

use std::collections::BTreeMap;

use crate::error::{MeterError, Result};
use crate::growth::{grown64, or_note};

/// Counters as `Group.Name`.
pub(crate) type Counters = BTreeMap<String, u64>;

/// States and settings that stand among the counters (RFC 1213, RFC 2012; net/mptcp/mib.c).
const NOT_COUNTERS: [&str; 8] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
    "MPTcpExt.MPCurrEstab",
];

/// Groups of `snmp6`, whose names run into those of the counters; a longer one comes before its own beginning.
const SNMP6_GROUPS: [&str; 4] = ["UdpLite6", "Udp6", "Icmp6", "Ip6"];

/// Parses `snmp` or `netstat`: for each group a line of names and one of values.
pub(crate) fn parse_pairs(object: &str, text: &str) -> Result<Counters> {
    let malformed = |detail: String| MeterError::malformed(object, detail);
    let mut counters = Counters::new();
    let mut lines = text.lines();
    while let Some(names) = lines.next() {
        let (group, names) = names.split_once(':').ok_or_else(|| malformed("no group".to_owned()))?;
        let values = lines.next().and_then(|line| line.strip_prefix(group)?.strip_prefix(':'));
        let values = values.ok_or_else(|| malformed(format!("group {group} has no values")))?;
        let (mut names, mut values) = (names.split_ascii_whitespace(), values.split_ascii_whitespace());
        loop {
            let (name, value) = match (names.next(), values.next()) {
                (None, None) => break,
                (Some(name), Some(value)) => (format!("{group}.{name}"), value),
                _ => return Err(malformed(format!("group {group} has not as many values as names"))),
            };
            insert(object, &mut counters, name, value)?;
        }
    }
    Ok(counters)
}

/// Parses `snmp6`: a name and a value a line.
pub(crate) fn parse_snmp6(object: &str, text: &str) -> Result<Counters> {
    let mut counters = Counters::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(name), Some(value), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(MeterError::malformed(object, "a line that is not a name and a value"));
        };
        let split = SNMP6_GROUPS.iter().find_map(|&group| Some((group, name.strip_prefix(group)?)));
        let name = split.map_or_else(|| name.to_owned(), |(group, rest)| format!("{group}.{rest}"));
        insert(object, &mut counters, name, value)?;
    }
    Ok(counters)
}

fn insert(object: &str, counters: &mut Counters, name: String, value: &str) -> Result<()> {
    if NOT_COUNTERS.contains(&name.as_str()) {
        return Ok(());
    }
    let value = value.parse().map_err(|_| MeterError::malformed(object, format!("{name} is no count")))?;
    counters.insert(name, value);
    Ok(())
}

/// Counters that grew. One that is new was 0 before: the kernel lists ICMP types only once they have occurred.
pub(crate) fn difference(earlier: &Counters, later: &Counters, notes: &mut Vec<String>) -> Counters {
    let mut grown = Counters::new();
    for (name, &value) in later {
        let before = earlier.get(name).copied().unwrap_or_default();
        let growth = or_note(grown64(before, value), name, notes);
        if growth > 0 {
            grown.insert(name.clone(), growth);
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 6972179
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn CurrEstab RetransSegs
Tcp: 1 200 120000 -1 4 99
";

    #[test]
    fn counters_are_named_by_group_and_settings_left_out() {
        let counters = parse_pairs("snmp", SNMP).unwrap();
        let expected = [("Ip.InReceives".to_owned(), 6_972_179), ("Tcp.RetransSegs".to_owned(), 99)];
        assert_eq!(counters, Counters::from(expected));
    }

    #[test]
    fn groups_of_snmp6_are_told_apart() {
        let text = "Ip6InReceives   \t1\nUdp6NoPorts\t2\nUdpLite6NoPorts\t3\nIcmp6InType135 4\n";
        let counters = parse_snmp6("snmp6", text).unwrap();
        let names: Vec<_> = counters.keys().map(String::as_str).collect();
        assert_eq!(names, ["Icmp6.InType135", "Ip6.InReceives", "Udp6.NoPorts", "UdpLite6.NoPorts"]);
    }

    #[test]
    fn only_what_grew_is_told_and_steps_back_are_noted() {
        let before = Counters::from([("A.x".to_owned(), 5), ("A.y".to_owned(), 7), ("A.z".to_owned(), 9)]);
        let after = Counters::from([
            ("A.x".to_owned(), 5),
            ("A.y".to_owned(), 8),
            ("A.z".to_owned(), 1),
            ("A.new".to_owned(), 2),
        ]);
        let mut notes = Vec::new();
        let grown = difference(&before, &after, &mut notes);
        assert_eq!(grown, Counters::from([("A.new".to_owned(), 2), ("A.y".to_owned(), 1)]));
        assert_eq!(notes, ["A.z: stepped back within the window"]);
    }

    #[test]
    fn damage_is_refused() {
        for text in ["x", "Ip: a b\nIp: 1\n", "Ip: a\nTcp: 1\n", "Ip: a\n", "Ip: a\nIp: x\n"] {
            assert!(parse_pairs("snmp", text).is_err(), "{text:?}");
        }
        for text in ["Ip6", "Ip6X 1 2", "Ip6X y"] {
            assert!(parse_snmp6("snmp6", text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "(([A-Z]{0,2}:?)?( ?[a-z0-9é-]{0,22}){0,4}\n){0,6}") {
            let _ = parse_pairs("snmp", &text);
            let _ = parse_snmp6("snmp6", &text);
        }

        #[test]
        fn any_text_never_panics(text in ".{0,200}") {
            let _ = parse_pairs("snmp", &text);
            let _ = parse_snmp6("snmp6", &text);
        }
    }
}
