//! Features (offloads), by kernel name or by the short names of ethtool(8), where one may stand for several.

use std::collections::BTreeMap;

use super::part::Values;
use super::value::on_off;
use crate::error::{LinkError, Result};
use crate::ethtool::{Ethtool, FeatureState};

/// A short name and the features behind it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    start: &'static str,
    /// How the names end; `None` is that `start` is the whole name.
    end: Option<&'static str>,
}

const fn short(
    name: &'static str,
    start: &'static str,
    end: Option<&'static str>,
    description: &'static str,
) -> Short {
    Short { name, description, start, end }
}

/// As ethtool(8) maps them.
pub(crate) const SHORT_NAMES: &[Short] = &[
    short("tso", "tx-tcp", Some("-segmentation"), "the NIC cuts TCP data into segments"),
    short("gso", "tx-generic-segmentation", None, "the stack cuts late what the NIC can't"),
    short("gro", "rx-gro", None, "the stack joins received segments"),
    short("lro", "rx-lro", None, "the NIC joins received segments"),
    short("tx", "tx-checksum-", Some(""), "the NIC computes checksums of what is sent"),
    short("rx", "rx-checksum", None, "the NIC checks checksums of what arrives"),
    short("sg", "tx-scatter-gather", Some(""), "the NIC gathers a packet from several buffers"),
    short("rxvlan", "rx-vlan-hw-parse", None, "the NIC takes VLAN tags off"),
    short("txvlan", "tx-vlan-hw-insert", None, "the NIC puts VLAN tags on"),
    short("rxhash", "rx-hashing", None, "the NIC hashes flows"),
    short("ntuple", "rx-ntuple-filter", None, "the NIC steers flows by rules"),
];

impl Short {
    fn covers(&self, feature: &str) -> bool {
        match self.end {
            Some(end) => feature.starts_with(self.start) && feature.ends_with(end),
            None => feature == self.start,
        }
    }
}

/// Every feature of a link.
pub(crate) fn all(link: &str) -> Result<BTreeMap<String, FeatureState>> {
    Ethtool::open()?.features(link)
}

/// State of a short name's features: of those that can be switched, if any can.
pub(crate) fn short_state(short: &Short, all: &BTreeMap<String, FeatureState>) -> Option<FeatureState> {
    let covered = || all.iter().filter(|(name, _)| short.covers(name)).map(|(_, state)| *state);
    let changeable = covered().any(|state| state.changeable);
    let counted: Vec<_> = covered().filter(|state| state.changeable == changeable).collect();
    if counted.is_empty() {
        return None;
    }
    let active = counted.iter().any(|state| state.active);
    Some(FeatureState { active, changeable, ..FeatureState::default() })
}

/// Switches one feature, or all that a short name stands for and that can be switched.
pub(crate) fn switch(link: &str, covers: impl Fn(&str) -> bool, on: bool) -> Result<()> {
    let mut ethtool = Ethtool::open()?;
    let all = ethtool.features(link)?;
    let wanted: BTreeMap<_, _> = all
        .into_iter()
        .filter(|(name, state)| state.changeable && covers(name))
        .map(|(name, _)| (name, on))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    ethtool.set_features(link, &wanted).map(|_| ())
}

/// Switches what a short name stands for.
pub(crate) fn switch_short(link: &str, short: &Short, on: bool) -> Result<()> {
    switch(link, |name| short.covers(name), on)
}

/// All features that can be switched: `on`, `off`, or what is in force and what is wanted where the two differ.
pub(crate) fn values(link: &str) -> Result<Values> {
    let text = |state: &FeatureState| match (state.active, state.wanted) {
        (active, wanted) if active == wanted => on_off(active).to_owned(),
        (active, wanted) => format!("{} ({} wanted)", on_off(active), on_off(wanted)),
    };
    let changeable = all(link)?.into_iter().filter(|(_, state)| state.changeable);
    Ok(changeable.map(|(name, state)| (name, text(&state))).collect())
}

/// Asks for what was wanted before. What is in force follows from that, once the features that others need are back.
pub(crate) fn put_back(link: &str, before: &Values) -> Result<()> {
    let wanted = |text: &String| !(text == "off" || text.ends_with("(off wanted)"));
    let wanted = before.iter().map(|(name, text)| (name.clone(), wanted(text))).collect();
    match Ethtool::open()?.set_features(link, &wanted) {
        // Some are wanted and yet off, as they were before: the comparison afterwards tells.
        Ok(_) | Err(LinkError::FeatureKept { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stand_for_what_ethtool_maps_them_to() {
        let covered = |name: &str| {
            let short = SHORT_NAMES.iter().find(|short| short.name == name).unwrap();
            let known = [
                "tx-tcp-segmentation",
                "tx-tcp-mangleid-segmentation",
                "tx-tcp6-segmentation",
                "tx-udp-segmentation",
                "rx-gro",
                "rx-gro-list",
                "rx-gro-hw",
                "tx-checksum-ipv4",
                "tx-checksum-ip-generic",
                "tx-scatter-gather",
                "tx-scatter-gather-fraglist",
            ];
            known.into_iter().filter(|name| short.covers(name)).collect::<Vec<_>>()
        };
        assert_eq!(
            covered("tso"),
            ["tx-tcp-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation"]
        );
        assert_eq!(covered("gro"), ["rx-gro"]);
        assert_eq!(covered("tx"), ["tx-checksum-ipv4", "tx-checksum-ip-generic"]);
        assert_eq!(covered("sg"), ["tx-scatter-gather", "tx-scatter-gather-fraglist"]);
    }

    #[test]
    fn a_short_name_goes_by_the_features_that_can_be_switched() {
        let tso = &SHORT_NAMES[0];
        let fixed = FeatureState { active: true, ..FeatureState::default() };
        let off = FeatureState { hardware: true, changeable: true, ..FeatureState::default() };
        let named = |name: &str, state| (name.to_owned(), state);
        let all = BTreeMap::from([named("tx-tcp-segmentation", off), named("tx-tcp6-segmentation", fixed)]);
        let state = short_state(tso, &all).unwrap();
        assert!(!state.active && state.changeable);
        let all = BTreeMap::from([named("tx-tcp6-segmentation", fixed)]);
        let state = short_state(tso, &all).unwrap();
        assert!(state.active && !state.changeable);
        assert_eq!(short_state(tso, &BTreeMap::new()), None);
    }
}
