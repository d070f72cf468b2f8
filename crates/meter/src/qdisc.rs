//! What the queueing disciplines of a link counted (`TCA_STATS2`; the kernel's include/uapi/linux/gen_stats.h).

use linerate_model::counters::QdiscCounters;

use crate::error::{MeterError, Result};
use crate::growth::{grown32, grown64, or_note};
use crate::rtnetlink::{QdiscMessage, attribute, long, word};

const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = 0xffff_ffff;
/// Parent of `ingress` and `clsact`, which stand on the receiving side.
const TC_H_INGRESS: u32 = 0xffff_fff1;
/// Queues have no discipline of their own to count: not even the root does.
const NO_QUEUE: &str = "noqueue";
/// Disciplines whose counters are, when asked, the sums of those of their children.
const SUMMING: [&str; 3] = ["mq", "mqprio", "taprio"];

/// The counters of a link's disciplines at one instant.
///
/// Packets, bytes, drops and requeues are the root's: a packet passes it whatever its child, and drops of children are told
/// to their parents. Times over the limit are counted where the limit is, so children's are kept beside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct QdiscSample {
    kind: String,
    handle: u32,
    packets: u64,
    bytes: u64,
    drops: u32,
    requeues: u32,
    overlimits: Vec<(u32, u32)>,
}

impl QdiscSample {
    /// Picks the root of `qdiscs`; `None` where the link has none that counts.
    pub(crate) fn of(qdiscs: &[QdiscMessage]) -> Result<Option<Self>> {
        let Some(root) = qdiscs.iter().find(|qdisc| qdisc.parent == TC_H_ROOT) else { return Ok(None) };
        let kind = attribute(&root.attributes, TCA_KIND).unwrap_or_default();
        let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
        if kind == NO_QUEUE {
            return Ok(None);
        }
        let counts = Counts::of(root)?;
        let mut overlimits = vec![(root.handle, counts.overlimits)];
        if !SUMMING.contains(&kind.as_str()) {
            let children = qdiscs.iter().filter(|qdisc| !matches!(qdisc.parent, TC_H_ROOT | TC_H_INGRESS));
            for child in children {
                overlimits.push((child.handle, Counts::of(child)?.overlimits));
            }
        }
        Ok(Some(Self {
            kind,
            handle: root.handle,
            packets: counts.packets,
            bytes: counts.bytes,
            drops: counts.drops,
            requeues: counts.requeues,
            overlimits,
        }))
    }
}

struct Counts {
    packets: u64,
    bytes: u64,
    drops: u32,
    requeues: u32,
    overlimits: u32,
}

impl Counts {
    fn of(qdisc: &QdiscMessage) -> Result<Self> {
        let statistics = attribute(&qdisc.attributes, TCA_STATS2).unwrap_or_default();
        Self::parse(statistics)
            .ok_or_else(|| MeterError::malformed("counters of a queueing discipline", "TCA_STATS2 is short"))
    }

    fn parse(statistics: &[u8]) -> Option<Self> {
        // struct gnet_stats_basic: bytes, packets. struct gnet_stats_queue: length, backlog, drops, requeues, overlimits.
        let basic = attribute(statistics, TCA_STATS_BASIC)?;
        let queue = attribute(statistics, TCA_STATS_QUEUE)?;
        // Only sent once the number of packets has outgrown 32 bits.
        let packets = attribute(statistics, TCA_STATS_PKT64).and_then(|value| long(value, 0));
        Some(Self {
            packets: packets.or_else(|| word(basic, 8).map(u64::from))?,
            bytes: long(basic, 0)?,
            drops: word(queue, 8)?,
            requeues: word(queue, 12)?,
            overlimits: word(queue, 16)?,
        })
    }
}

/// Growth between two samples; `None` with a note where the root was replaced.
pub(crate) fn difference(
    earlier: &QdiscSample,
    later: &QdiscSample,
    notes: &mut Vec<String>,
) -> Option<QdiscCounters> {
    if (&earlier.kind, earlier.handle) != (&later.kind, later.handle) {
        notes.push(format!(
            "queueing discipline {}: replaced by {} within the window",
            earlier.kind, later.kind
        ));
        return None;
    }
    let mut grown = |what: &str, growth| or_note(growth, &format!("{what} of {}", later.kind), notes);
    let mut overlimits = 0;
    for &(handle, count) in &later.overlimits {
        let Some((_, before)) = earlier.overlimits.iter().find(|(other, _)| *other == handle) else {
            continue;
        };
        overlimits += grown("overlimits", grown32(*before, count));
    }
    Some(QdiscCounters {
        packets: grown("packets", grown64(earlier.packets, later.packets)),
        bytes: grown("bytes", grown64(earlier.bytes, later.bytes)),
        drops: grown("drops", grown32(earlier.drops, later.drops)),
        requeues: grown("requeues", grown32(earlier.requeues, later.requeues)),
        overlimits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtnetlink::push_attribute;
    use proptest::prelude::*;

    fn qdisc(kind: &str, handle: u32, parent: u32, counts: [u32; 5]) -> QdiscMessage {
        let [packets, bytes, drops, requeues, overlimits] = counts;
        let mut basic = u64::from(bytes).to_ne_bytes().to_vec();
        basic.extend(packets.to_ne_bytes());
        let queue: Vec<u8> =
            [0, 0, drops, requeues, overlimits].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let mut statistics = Vec::new();
        push_attribute(&mut statistics, TCA_STATS_BASIC, &basic);
        push_attribute(&mut statistics, TCA_STATS_QUEUE, &queue);
        let mut attributes = Vec::new();
        push_attribute(&mut attributes, TCA_KIND, format!("{kind}\0").as_bytes());
        push_attribute(&mut attributes, TCA_STATS2, &statistics);
        QdiscMessage { index: 1, handle, parent, attributes }
    }

    fn difference_of(
        before: &[QdiscMessage],
        after: &[QdiscMessage],
    ) -> (Option<QdiscCounters>, Vec<String>) {
        let mut notes = Vec::new();
        let of = |qdiscs| QdiscSample::of(qdiscs).unwrap().unwrap();
        (difference(&of(before), &of(after), &mut notes), notes)
    }

    #[test]
    fn children_of_a_summing_root_are_not_counted_twice() {
        let before = [qdisc("mq", 0, TC_H_ROOT, [0; 5]), qdisc("fq", 0, 1, [0; 5])];
        let after = [qdisc("mq", 0, TC_H_ROOT, [9, 900, 1, 2, 3]), qdisc("fq", 0, 1, [9, 900, 1, 2, 3])];
        let expected = QdiscCounters { packets: 9, bytes: 900, drops: 1, requeues: 2, overlimits: 3 };
        assert_eq!(difference_of(&before, &after), (Some(expected), vec![]));
    }

    #[test]
    fn a_limit_below_the_root_is_seen_and_ingress_is_not() {
        let ingress = qdisc("clsact", 0xffff_0000, TC_H_INGRESS, [5; 5]);
        let before = [qdisc("prio", 0x10000, TC_H_ROOT, [0; 5]), qdisc("tbf", 0x20000, 0x10001, [0; 5])];
        let after = [
            qdisc("prio", 0x10000, TC_H_ROOT, [9, 900, 1, 0, 0]),
            qdisc("tbf", 0x20000, 0x10001, [9, 900, 1, 0, 7]),
            ingress,
        ];
        let expected = QdiscCounters { packets: 9, bytes: 900, drops: 1, requeues: 0, overlimits: 7 };
        assert_eq!(difference_of(&before, &after), (Some(expected), vec![]));
    }

    #[test]
    fn counters_wrap_and_a_new_root_is_noted() {
        let before = [qdisc("fq", 1, TC_H_ROOT, [1, 2, u32::MAX, 0, 0])];
        let (grown, _) = difference_of(&before, &[qdisc("fq", 1, TC_H_ROOT, [1, 2, 4, 0, 0])]);
        assert_eq!(grown.unwrap().drops, 5);
        let (grown, notes) = difference_of(&before, &[qdisc("sfq", 2, TC_H_ROOT, [0; 5])]);
        assert_eq!(grown, None);
        assert_eq!(notes, ["queueing discipline fq: replaced by sfq within the window"]);
    }

    #[test]
    fn no_queue_is_none_and_a_short_reply_is_refused() {
        assert_eq!(QdiscSample::of(&[]).unwrap(), None);
        assert_eq!(QdiscSample::of(&[qdisc("noqueue", 0, TC_H_ROOT, [0; 5])]).unwrap(), None);
        let short = QdiscMessage { parent: TC_H_ROOT, ..QdiscMessage::default() };
        assert!(QdiscSample::of(&[short]).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(attributes in proptest::collection::vec(any::<u8>(), 0..96)) {
            let _ = Counts::parse(&attributes);
            let _ = QdiscSample::of(&[QdiscMessage { parent: TC_H_ROOT, attributes, ..QdiscMessage::default() }]);
        }
    }
}
