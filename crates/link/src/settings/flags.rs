//! Private flags, which each driver names as it likes.

use std::collections::BTreeMap;

use super::part::Values;
use super::value::on_off;
use crate::error::{LinkError, Result};
use crate::ethtool::Ethtool;

/// All flags of the driver.
pub(crate) fn values(link: &str) -> Result<Values> {
    let flags = Ethtool::open()?.private_flags(link)?;
    Ok(flags.into_iter().map(|(name, on)| (name, on_off(on).to_owned())).collect())
}

/// One flag.
pub(crate) fn read(link: &str, flag: &str) -> Result<String> {
    let mut flags = values(link)?;
    let found = flags.remove(flag);
    found.ok_or_else(|| LinkError::Invalid {
        what: format!("private flag {flag} of {link}"),
        why: format!("the driver has {}", flags.into_keys().collect::<Vec<_>>().join(", ")),
    })
}

/// Switches one flag.
pub(crate) fn write(link: &str, flag: &str, on: bool) -> Result<()> {
    Ethtool::open()?.set_private_flags(link, &BTreeMap::from([(flag.to_owned(), on)]))
}

/// Switches what differs.
pub(crate) fn put_back(link: &str, before: &Values, now: &Values) -> Result<()> {
    let differs = before.iter().filter(|(name, value)| now.get(*name) != Some(*value));
    let wanted = differs.map(|(name, value)| (name.clone(), value == "on")).collect();
    Ethtool::open()?.set_private_flags(link, &wanted)
}
