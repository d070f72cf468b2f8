//! Rings, channels, interrupt moderation and pause: settings of a driver that are read and set together.

use std::collections::BTreeMap;

use super::part::Values;
use super::value::Allowed;
use crate::error::{LinkError, Result};
use crate::ethtool::{Ethtool, Group, Parameter};

/// What a group's settings begin with, so that `rx` of rings and of channels are told apart.
const fn prefix(group: Group) -> &'static str {
    match group {
        Group::Rings => "ring-",
        Group::Channels => "channels-",
        Group::Coalesce => "",
        Group::Pause => "pause-",
    }
}

/// The key of a parameter.
pub(crate) fn key(group: Group, name: &str) -> String {
    format!("{}{name}", prefix(group))
}

/// The parameter behind a key.
pub(crate) fn find(key: &str) -> Option<(Group, &'static str)> {
    let of = |group: Group| {
        let name = key.strip_prefix(prefix(group))?;
        group.parameters().find(|known| *known == name).map(|name| (group, name))
    };
    Group::ALL.into_iter().find_map(of)
}

/// What kind of parameters a group has, in a few words.
pub(crate) const fn description(group: Group) -> &'static str {
    match group {
        Group::Rings => "descriptors in a ring, and how they are used",
        Group::Channels => "queues",
        Group::Coalesce => "interrupt moderation",
        Group::Pause => "Ethernet flow control",
    }
}

fn is_switch(group: Group, name: &str) -> bool {
    match group {
        Group::Pause => true,
        Group::Coalesce => name.starts_with("adaptive-") || name.starts_with("cqe-mode-"),
        Group::Rings => name == "tx-push" || name == "rx-push",
        Group::Channels => false,
    }
}

/// A group's parameters as text.
pub(crate) fn values(link: &str, group: Group) -> Result<Values> {
    let parameters = Ethtool::open()?.parameters(link, group)?;
    Ok(parameters.into_iter().map(|(name, parameter)| (name, parameter.value.to_string())).collect())
}

/// One parameter, `None` where the driver does not have it.
pub(crate) fn read(link: &str, group: Group, name: &str) -> Result<Option<Parameter>> {
    Ok(Ethtool::open()?.parameters(link, group)?.remove(name))
}

/// A parameter's value as its setting shows it.
pub(crate) fn text(group: Group, name: &str, value: u32) -> String {
    match (is_switch(group, name), value) {
        (true, 0) => "off".to_owned(),
        (true, 1) => "on".to_owned(),
        (_, number) => number.to_string(),
    }
}

/// What a parameter takes.
pub(crate) fn allowed(group: Group, name: &str, maximum: Option<u32>) -> Allowed {
    if is_switch(group, name) {
        return Allowed::Switch;
    }
    // Where a driver tells no limit, or 0 for it, the kernel's word on the value is awaited.
    let max = maximum.filter(|maximum| *maximum > 0).unwrap_or(u32::MAX);
    Allowed::Number { min: 0, max: max.into() }
}

/// Sets one parameter to a checked value.
pub(crate) fn write(link: &str, group: Group, name: &str, value: &str) -> Result<()> {
    let number = match value {
        "on" => 1,
        "off" => 0,
        number => number.parse().map_err(|_| LinkError::Invalid {
            what: format!("{}={value}", key(group, name)),
            why: "a number of 32 bits is needed".to_owned(),
        })?,
    };
    Ethtool::open()?.set_parameters(link, group, &BTreeMap::from([(name.to_owned(), number)]))
}

/// Sets what differs, at once; where the driver refuses that, one by one as far as it lets us.
pub(crate) fn put_back(link: &str, group: Group, before: &Values, now: &Values) -> Result<()> {
    let differs = before.iter().filter(|(name, value)| now.get(*name) != Some(*value));
    let wanted: BTreeMap<_, _> =
        differs.filter_map(|(name, value)| Some((name.clone(), value.parse().ok()?))).collect();
    let mut ethtool = Ethtool::open()?;
    let Err(error) = ethtool.set_parameters(link, group, &wanted) else { return Ok(()) };
    let mut refused = false;
    for (name, value) in wanted {
        refused |= ethtool.set_parameters(link, group, &BTreeMap::from([(name, value)])).is_err();
    }
    if refused { Err(error) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_found_by_its_key_and_no_key_is_taken_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for group in Group::ALL {
            for name in group.parameters() {
                let key = key(group, name);
                assert_eq!(find(&key), Some((group, name)));
                assert!(seen.insert(key));
            }
        }
        assert_eq!(find("ring-rx"), Some((Group::Rings, "rx")));
        assert_eq!(find("rx"), None);
    }
}
