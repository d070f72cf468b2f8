//! What differs between links, item by item.

use std::collections::BTreeMap;

use linerate_link::inventory::Inventory;
use linerate_model::environment::LinkInfo;
use serde::Serialize;
use serde_json::Value;

use crate::layout::{columns, wrapped};

/// Items that differ between any two links, or at any two times.
const OWN: [&str; 11] = [
    "index",
    "mac",
    "addresses",
    "bus",
    "irqs",
    "counters",
    "statistics",
    "unavailable",
    "name",
    "key",
    "numa_node",
];

/// The other side of a comparison.
pub(crate) enum Described {
    /// All that a node tells.
    Whole(Box<Inventory>),
    /// What a record keeps.
    Recorded(Box<LinkInfo>),
}

/// One item of one link that differs.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    link: String,
    item: String,
    ours: Option<String>,
    theirs: Option<String>,
}

/// Compares links of the same name, or the only two whatever their names are.
pub(crate) fn compare(ours: &[Inventory], theirs: &[Described], one_each: bool) -> Vec<Difference> {
    let mut differences = Vec::new();
    for our in ours {
        let name = &our.link.name;
        let their = theirs.iter().find(|their| one_each || their.name() == *name);
        match their {
            Some(their) => differences.extend(between(our, their)),
            None => differences.push(lack(name, Some("there"), None)),
        }
    }
    for their in theirs {
        if !one_each && !ours.iter().any(|our| our.link.name == their.name()) {
            differences.push(lack(their.name(), None, Some("there")));
        }
    }
    differences
}

/// A table of differences.
pub(crate) fn text(ours: &str, theirs: &str, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return wrapped("", "no differences but in names, addresses and counters");
    }
    let mut rows = vec![["LINK", "WHAT", ours, theirs].map(str::to_owned).to_vec()];
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    rows.extend(differences.iter().map(|difference| {
        let item = difference.item.clone();
        vec![difference.link.clone(), item, shown(&difference.ours), shown(&difference.theirs)]
    }));
    columns(&rows)
}

impl Described {
    fn name(&self) -> &str {
        match self {
            Self::Whole(inventory) => &inventory.link.name,
            Self::Recorded(link) => &link.name,
        }
    }
}

fn between(our: &Inventory, their: &Described) -> Vec<Difference> {
    let (ours, theirs) = match their {
        Described::Whole(their) => (items(our), items(their)),
        Described::Recorded(their) => (items(&our.link), items(their.as_ref())),
    };
    let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let differs = keys.into_iter().filter(|item| ours.get(*item) != theirs.get(*item));
    differs
        .map(|item| Difference {
            link: our.link.name.clone(),
            item: item.clone(),
            ours: ours.get(item).cloned(),
            theirs: theirs.get(item).cloned(),
        })
        .collect()
}

fn lack(link: &str, ours: Option<&str>, theirs: Option<&str>) -> Difference {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Difference { link: link.to_owned(), item: "link".to_owned(), ours: own(ours), theirs: own(theirs) }
}

/// A value as text by path (`parameters rings rx value`).
fn items(value: &impl Serialize) -> BTreeMap<String, String> {
    let mut items = BTreeMap::new();
    // Plain data always has a JSON form.
    flatten("", &serde_json::to_value(value).unwrap_or_default(), &mut items);
    items
}

fn flatten(path: &str, value: &Value, items: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path} {key}") };
    match value {
        Value::Null => {}
        Value::Object(object) => {
            // A whole inventory has its features twice, once with what is wanted.
            let whole = object.contains_key("link");
            let told = |key: &str| !(OWN.contains(&key) || whole && key == "features");
            for (key, value) in object.iter().filter(|(key, _)| told(key)) {
                let inner = if path.is_empty() && key == "link" { String::new() } else { below(key) };
                flatten(&inner, value, items);
            }
        }
        Value::Array(list) if list.iter().all(|one| !one.is_object()) => {
            let texts: Vec<_> = list.iter().map(plain).collect();
            items.insert(path.to_owned(), texts.join(" "));
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                flatten(&below(&number.to_string()), value, items);
            }
        }
        other => drop(items.insert(path.to_owned(), plain(other))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::environment::Feature;

    use super::*;

    fn inventory(name: &str, mtu: u32, tso: bool) -> Inventory {
        let feature = Feature { on: tso, changeable: true };
        let features = BTreeMap::from([("tx-tcp-segmentation".to_owned(), feature)]);
        let link = LinkInfo { name: name.to_owned(), mtu, features, index: mtu, ..LinkInfo::default() };
        Inventory { link, ..Inventory::default() }
    }

    #[test]
    fn only_what_matters_is_compared_by_name_or_one_with_the_other() {
        let ours = [inventory("eth0", 1500, true)];
        let theirs = |name: &str| [Described::Whole(Box::new(inventory(name, 9000, false)))];
        let found = compare(&ours, &theirs("eth0"), false);
        let items: Vec<_> = found.iter().map(|one| one.item.as_str()).collect();
        assert_eq!(items, ["features tx-tcp-segmentation on", "mtu"]);
        assert_eq!(found[1].theirs.as_deref(), Some("9000"));
        assert_eq!(compare(&ours, &theirs("eth1"), true).len(), 2);
        assert_eq!(compare(&ours, &theirs("eth1"), false).len(), 2, "each has a link that the other lacks");
        assert!(compare(&ours, &[Described::Recorded(Box::new(ours[0].link.clone()))], false).is_empty());
    }
}
