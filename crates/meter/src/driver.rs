//! Statistics that a link's driver keeps (`ethtool -S`, linux/ethtool.h).

use std::collections::BTreeMap;

use linerate_sys::ethtool_ioctl::DriverStatistics;

use crate::error::Result;
use crate::growth::{grown64, or_note};

const EOPNOTSUPP: i32 = 95;

/// Opens the statistics of the driver of `link`; `None` where it has none.
pub(crate) fn open(link: &str) -> Result<Option<DriverStatistics>> {
    match DriverStatistics::open(link) {
        Ok(statistics) => Ok(Some(statistics).filter(|statistics| !statistics.names().is_empty())),
        Err(error) if error.raw_os_error() == Some(EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Statistics that grew. Names that the driver gives to several are added up.
pub(crate) fn difference(
    names: &[String],
    earlier: &[u64],
    later: &[u64],
    notes: &mut Vec<String>,
) -> BTreeMap<String, u64> {
    let mut grown = BTreeMap::new();
    for ((name, &before), &after) in names.iter().zip(earlier).zip(later) {
        let growth = or_note(grown64(before, after), &format!("driver statistic {name}"), notes);
        if growth > 0 {
            let sum: &mut u64 = grown.entry(name.clone()).or_default();
            *sum = sum.saturating_add(growth);
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_told_by_name() {
        let names = ["rx", "tx", "queue", "queue", "level"].map(str::to_owned);
        let mut notes = Vec::new();
        let grown = difference(&names, &[1, 2, 3, 4, 9], &[1, 7, 5, 5, 2], &mut notes);
        assert_eq!(grown, BTreeMap::from([("tx".to_owned(), 5), ("queue".to_owned(), 3)]));
        assert_eq!(notes, ["driver statistic level: stepped back within the window"]);
    }

    #[test]
    fn loopback_has_none() {
        assert!(open("lo").unwrap().is_none());
    }
}
