//! Statistics of a link's queues (netdev netlink `qstats-get`, kernel 6.9; include/uapi/linux/netdev.h).

use std::collections::BTreeMap;

use crate::error::Result;
use crate::genetlink::Family;
use crate::rtnetlink::{all_attributes, attribute, long, push_attribute, word};

const QSTATS_GET: u8 = 12;
const IFINDEX: u16 = 1;
const QUEUE_TYPE: u16 = 2;
const QUEUE_ID: u16 = 3;
const SCOPE: u16 = 4;
const SCOPE_QUEUE: u32 = 1;
const FIRST_STATISTIC: u16 = 8;
const EOPNOTSUPP: i32 = 95;

/// From attribute 8 on, as Documentation/netlink/specs/netdev.yaml names them without `rx-` and `tx-`, which the queue tells.
const NAMES: [&str; 27] = [
    "packets",
    "bytes",
    "packets",
    "bytes",
    "alloc-fail",
    "hw-drops",
    "hw-drop-overruns",
    "csum-complete",
    "csum-unnecessary",
    "csum-none",
    "csum-bad",
    "hw-gro-packets",
    "hw-gro-bytes",
    "hw-gro-wire-packets",
    "hw-gro-wire-bytes",
    "hw-drop-ratelimits",
    "hw-drops",
    "hw-drop-errors",
    "csum-none",
    "needs-csum",
    "hw-gso-packets",
    "hw-gso-bytes",
    "hw-gso-wire-packets",
    "hw-gso-wire-bytes",
    "hw-drop-ratelimits",
    "stop",
    "wake",
];

/// Statistics as `rx-0.packets`; a kernel or driver without them has none.
pub(crate) fn statistics(index: u32) -> Result<BTreeMap<String, u64>> {
    let Some(mut family) = Family::open("netdev")? else { return Ok(BTreeMap::new()) };
    let mut request = Vec::new();
    push_attribute(&mut request, IFINDEX, &index.to_ne_bytes());
    push_attribute(&mut request, SCOPE, &SCOPE_QUEUE.to_ne_bytes());
    let object = format!("read queue statistics of link {index}");
    match family.list(&object, QSTATS_GET, &request) {
        Ok(queues) => Ok(queues.iter().flat_map(|queue| read(queue)).collect()),
        Err(crate::MeterError::Netlink(error)) if error.raw_os_error() == Some(EOPNOTSUPP) => {
            Ok(BTreeMap::new())
        }
        Err(error) => Err(error),
    }
}

fn read(queue: &[u8]) -> Vec<(String, u64)> {
    let number = |kind| attribute(queue, kind).and_then(|value| word(value, 0));
    let (Some(kind), Some(id)) = (number(QUEUE_TYPE), number(QUEUE_ID)) else { return Vec::new() };
    let way = if kind == 0 { "rx" } else { "tx" };
    let statistics = all_attributes(queue).filter(|(kind, _)| *kind >= FIRST_STATISTIC);
    let named = statistics.filter_map(|(kind, value)| {
        // The kernel sends 4 bytes where they are enough.
        let value = long(value, 0).or_else(|| word(value, 0).map(u64::from))?;
        let name = match NAMES.get(usize::from(kind - FIRST_STATISTIC)) {
            Some(name) => (*name).to_owned(),
            None => format!("statistic-{kind}"),
        };
        Some((format!("{way}-{id}.{name}"), value))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_queue_is_named_by_its_way_and_number() {
        let mut queue = Vec::new();
        push_attribute(&mut queue, QUEUE_TYPE, &1u32.to_ne_bytes());
        push_attribute(&mut queue, QUEUE_ID, &3u32.to_ne_bytes());
        push_attribute(&mut queue, 10, &9u32.to_ne_bytes());
        push_attribute(&mut queue, 34, &(1u64 << 40).to_ne_bytes());
        let wanted = [("tx-3.packets".to_owned(), 9), ("tx-3.wake".to_owned(), 1 << 40)];
        assert_eq!(read(&queue), wanted);
    }

    #[test]
    fn loopback_has_none() {
        assert_eq!(statistics(1).unwrap(), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            read(&bytes);
        }
    }
}
