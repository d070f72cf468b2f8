//! Statistics of the standard groups (ethtool netlink `STATS_GET`, kernel 5.13; pause frames, kernel 5.10), named as IEEE Std
//! 802.3 clause 30 and RFC 2819 name them.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::genetlink::Family;
use crate::rtnetlink::{all_attributes, attribute, long, push_attribute, word};

const PAUSE_GET: u8 = 21;
const STATS_GET: u8 = 32;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_STATS: u32 = 1 << 2;
const PAUSE_HEADER: u16 = 1;
const PAUSE_STATS: u16 = 4;
const STATS_HEADER: u16 = 2;
const STATS_GROUPS: u16 = 3;
const STATS_GROUP: u16 = 4;
const GROUP_ID: u16 = 3;
const GROUP_STATISTIC: u16 = 5;
const GROUP_RX_HISTOGRAM: u16 = 6;
const GROUP_TX_HISTOGRAM: u16 = 7;
const BUCKET_LOW: u16 = 8;
const BUCKET_HIGH: u16 = 9;
const BUCKET_VALUE: u16 = 10;
const BITSET_NO_MASK: u16 = 1;
const BITSET_SIZE: u16 = 2;
const BITSET_VALUE: u16 = 4;
const EOPNOTSUPP: i32 = 95;

/// Groups in the kernel's order, with the names of their statistics in the kernel's order.
const GROUPS: [(&str, &[&str]); 4] = [
    ("eth-phy", &["SymbolErrorDuringCarrier"]),
    (
        "eth-mac",
        &[
            "FramesTransmittedOK",
            "SingleCollisionFrames",
            "MultipleCollisionFrames",
            "FramesReceivedOK",
            "FrameCheckSequenceErrors",
            "AlignmentErrors",
            "OctetsTransmittedOK",
            "FramesWithDeferredXmissions",
            "LateCollisions",
            "FramesAbortedDueToXSColls",
            "FramesLostDueToIntMACXmitError",
            "CarrierSenseErrors",
            "OctetsReceivedOK",
            "FramesLostDueToIntMACRcvError",
            "MulticastFramesXmittedOK",
            "BroadcastFramesXmittedOK",
            "FramesWithExcessiveDeferral",
            "MulticastFramesReceivedOK",
            "BroadcastFramesReceivedOK",
            "InRangeLengthErrors",
            "OutOfRangeLengthField",
            "FrameTooLongErrors",
        ],
    ),
    ("eth-ctrl", &["MACControlFramesTransmitted", "MACControlFramesReceived", "UnsupportedOpcodesReceived"]),
    (
        "rmon",
        &["etherStatsUndersizePkts", "etherStatsOversizePkts", "etherStatsFragments", "etherStatsJabbers"],
    ),
];

/// The standard statistics of a link, as `eth-mac.FramesTransmittedOK`; a kernel or driver without them has none.
pub(crate) fn statistics(link: &str) -> Result<BTreeMap<String, u64>> {
    let Some(mut family) = Family::open("ethtool")? else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    let mut groups = plain(BITSET_NO_MASK, &[]);
    groups.extend(plain(BITSET_SIZE, &(GROUPS.len() as u32).to_ne_bytes()));
    groups.extend(plain(BITSET_VALUE, &((1u32 << GROUPS.len()) - 1).to_ne_bytes()));
    let mut request = nest(STATS_HEADER, &name(link));
    request.extend(nest(STATS_GROUPS, &groups));
    let object = format!("read standard statistics of {link}");
    if let Some(reply) = unless_unsupported(family.ask(&object, STATS_GET, &request))? {
        read_groups(&reply, &mut all);
    }
    let mut header = name(link);
    header.extend(plain(HEADER_FLAGS, &FLAG_STATS.to_ne_bytes()));
    let object = format!("read pause statistics of {link}");
    let reply = family.ask(&object, PAUSE_GET, &nest(PAUSE_HEADER, &header));
    if let Some(reply) = unless_unsupported(reply)? {
        read_pause(&reply, &mut all);
    }
    Ok(all)
}

fn unless_unsupported(reply: Result<Vec<u8>>) -> Result<Option<Vec<u8>>> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(crate::MeterError::Netlink(error)) if error.raw_os_error() == Some(EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_groups(reply: &[u8], all: &mut BTreeMap<String, u64>) {
    for (_, group) in all_attributes(reply).filter(|(kind, _)| *kind == STATS_GROUP) {
        let Some(id) = attribute(group, GROUP_ID).and_then(|id| word(id, 0)) else { continue };
        let (group_name, names) = match GROUPS.get(id as usize) {
            Some((name, names)) => ((*name).to_owned(), *names),
            None => (format!("group-{id}"), &[] as &[&str]),
        };
        for (kind, value) in all_attributes(group) {
            match kind {
                GROUP_STATISTIC => {
                    let Some((number, value)) = all_attributes(value).next() else { continue };
                    let Some(value) = long(value, 0) else { continue };
                    let name = match names.get(usize::from(number)) {
                        Some(name) => (*name).to_owned(),
                        None => format!("statistic-{number}"),
                    };
                    all.insert(format!("{group_name}.{name}"), value);
                }
                GROUP_RX_HISTOGRAM | GROUP_TX_HISTOGRAM => {
                    let way = if kind == GROUP_RX_HISTOGRAM { "rx" } else { "tx" };
                    let bound = |kind| attribute(value, kind).and_then(|bound| word(bound, 0)).unwrap_or(0);
                    let Some(count) = attribute(value, BUCKET_VALUE).and_then(|count| long(count, 0)) else {
                        continue;
                    };
                    let (low, high) = (bound(BUCKET_LOW), bound(BUCKET_HIGH));
                    all.insert(format!("{group_name}.{way}-pkts-etherStatsPkts{low}to{high}Octets"), count);
                }
                _ => {}
            }
        }
    }
}

fn read_pause(reply: &[u8], all: &mut BTreeMap<String, u64>) {
    const PAUSE_STATISTICS: [(u16, &str); 2] = [(2, "tx_pause_frames"), (3, "rx_pause_frames")];
    let Some(statistics) = attribute(reply, PAUSE_STATS) else { return };
    for (kind, name) in PAUSE_STATISTICS {
        if let Some(value) = attribute(statistics, kind).and_then(|value| long(value, 0)) {
            all.insert(format!("pause.{name}"), value);
        }
    }
}

fn name(link: &str) -> Vec<u8> {
    plain(HEADER_DEV_NAME, &[link.as_bytes(), &[0]].concat())
}

fn plain(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_attribute(&mut bytes, kind, value);
    bytes
}

/// An attribute that holds others.
fn nest(kind: u16, value: &[u8]) -> Vec<u8> {
    const NLA_F_NESTED: u16 = 0x8000;
    plain(kind | NLA_F_NESTED, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_and_histograms_are_named() {
        let mut histogram = plain(BUCKET_LOW, &0u32.to_ne_bytes());
        histogram.extend(plain(BUCKET_HIGH, &64u32.to_ne_bytes()));
        histogram.extend(plain(BUCKET_VALUE, &7u64.to_ne_bytes()));
        let mut group = plain(GROUP_ID, &1u32.to_ne_bytes());
        group.extend(nest(GROUP_STATISTIC, &plain(3, &5u64.to_ne_bytes())));
        group.extend(nest(GROUP_STATISTIC, &plain(99, &6u64.to_ne_bytes())));
        group.extend(nest(GROUP_RX_HISTOGRAM, &histogram));
        let mut all = BTreeMap::new();
        read_groups(&nest(STATS_GROUP, &group), &mut all);
        let wanted = [
            ("eth-mac.FramesReceivedOK".to_owned(), 5),
            ("eth-mac.rx-pkts-etherStatsPkts0to64Octets".to_owned(), 7),
            ("eth-mac.statistic-99".to_owned(), 6),
        ];
        assert_eq!(all, BTreeMap::from(wanted));
    }

    #[test]
    fn a_link_without_them_has_none() {
        assert_eq!(statistics("lo").unwrap(), BTreeMap::new());
        assert!(statistics("lr-none").is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            read_groups(&bytes, &mut BTreeMap::new());
            read_groups(&nest(STATS_GROUP, &bytes), &mut BTreeMap::new());
            read_pause(&bytes, &mut BTreeMap::new());
        }
    }
}
