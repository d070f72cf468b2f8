//! After each variant everything is as it was: what the case opened and made is gone, settings are back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_model::bench::{BenchRequest, LinkAct};
use linerate_model::qualification::ReasonCode;
use linerate_model::trial::Side;

use crate::bench::Bench;
use crate::finding::Finding;
use crate::station::Station;
use crate::trouble::Trouble;

/// Settings that move by themselves.
const RESTLESS: [&str; 1] = ["irq-affinity"];

/// Settings by key.
pub(crate) type Values = BTreeMap<String, String>;

/// Ends what the variant left open, and puts back what it changed; a failure to is a fault of the case (ground rule G4).
pub(crate) fn put_back(bench: &mut Bench) -> Result<(), Trouble> {
    // At both ends before anything goes back at either: a program or a flow at one may bind the settings of the other, as
    // XDP on a veth end does with its partner's offloads.
    for side in [Side::Peer, Side::Dut] {
        bench.station(side).ask_anyway(&BenchRequest::CloseAll)?;
    }
    for side in [Side::Peer, Side::Dut] {
        let station = bench.station(side);
        let reset = match station.ask_anyway(&BenchRequest::Reset) {
            Err(Trouble::Refused(error)) => Some(error.to_string()),
            other => other.map(|_| None)?,
        };
        let report = station.node.restore()?;
        lend_addresses(station)?;
        let case = station.case.clone();
        let complete = report.is_complete() && reset.is_none();
        station
            .journal
            .iter_mut()
            .filter(|entry| entry.case == case && entry.restored.is_none())
            .for_each(|entry| entry.restored = Some(complete));
        let name = station.name();
        let lost = report.not_back.iter().map(|lost| format!("{name}: {lost}"));
        let faults: Vec<Finding> = reset
            .into_iter()
            .chain(lost)
            .map(|text| Finding { code: ReasonCode::ConfigLost, text, evidence: None })
            .collect();
        bench.add(faults);
    }
    Ok(())
}

/// Gives the link the addresses that the suite lends it.
pub(crate) fn lend_addresses(station: &mut Station) -> Result<(), Trouble> {
    let link = station.link().to_owned();
    for (address, prefix) in station.lent.clone() {
        let act = LinkAct::AddAddress { link: link.clone(), address, prefix };
        station.ask_anyway(&BenchRequest::Link(act))?;
    }
    Ok(())
}

/// All settings of a station's link, with its addresses and flags.
pub(crate) fn values(station: &mut Station) -> Result<Values, Trouble> {
    let link = station.link().to_owned();
    let mut values: Values = station
        .node
        .settings(&link)?
        .into_iter()
        .filter(|setting| !RESTLESS.contains(&setting.key.as_str()))
        .filter_map(|setting| Some((setting.key, setting.value?)))
        .collect();
    if let Some(facts) = station.node.links()?.into_iter().find(|one| one.name == link) {
        values.insert("link.up".to_owned(), facts.up.to_string());
        values.insert("link.mac".to_owned(), facts.mac.unwrap_or_default());
        let kept = |address: &IpAddr| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let mut addresses: Vec<String> = facts
            .addresses
            .iter()
            .filter(|one| kept(&one.address))
            .map(|one| format!("{}/{}", one.address, one.prefix))
            .collect();
        addresses.sort();
        values.insert("link.addresses".to_owned(), addresses.join(" "));
    }
    Ok(values)
}

/// What differs between two sets, by key: before and after.
pub(crate) fn differences(before: &Values, after: &Values) -> Vec<(String, String, String)> {
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    let value =
        |values: &Values, key: &String| values.get(key).cloned().unwrap_or_else(|| "absent".to_owned());
    keys.map(|key| (key.clone(), value(before, key), value(after, key)))
        .filter(|(_, before, after)| before != after)
        .collect()
}

/// Compares the whole configuration with what it was; each difference is a fault of the case, and told once.
pub(crate) fn compare(bench: &mut Bench, known: &mut [Values; 2]) -> Result<(), Trouble> {
    for (side, known) in [Side::Dut, Side::Peer].into_iter().zip(known) {
        let station = bench.station(side);
        let now = values(station)?;
        let name = station.name();
        for (key, before, after) in differences(known, &now) {
            bench.fail(ReasonCode::ConfigLost, format!("{name}: {key} was {before} and is {after}"));
        }
        *known = now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_tell_both_values() {
        let set = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let (before, after) = (set(&[("a", "1"), ("b", "2")]), set(&[("a", "1"), ("c", "3")]));
        let told: Vec<String> =
            differences(&before, &after).into_iter().map(|(k, b, a)| format!("{k}:{b}:{a}")).collect();
        assert_eq!(told, ["b:2:absent", "c:absent:3"]);
    }
}
