//! Whether what arrived is what was sent: each frame once, in order, with its length and bytes, and nothing behind them.

use std::collections::HashMap;

use linerate_model::bench::probe::{MAGIC, ProbeId};
use linerate_model::bench::{Bytes, FrameIn};
use linerate_model::qualification::{Evidence, ReasonCode};

use super::checksum;
use crate::finding::Finding;
use crate::frame::{SHORTEST_BYTES, on_the_wire};

/// What must hold of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// They arrive in the order sent.
    pub ordered: bool,
    /// Padding, where there is any, is zero.
    pub clean_padding: bool,
    /// Frames below 60 bytes arrive padded to 60.
    pub padded: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { ordered: true, clean_padding: true, padded: false }
    }
}

/// Judges what arrived against the frames that must, as they are on the wire. One finding for each fault; frames that are
/// none of ours must have been left out before.
pub fn judge(expected: &[Vec<u8>], arrived: &[FrameIn], rules: Rules) -> Vec<Finding> {
    let mut table = Table::new(expected);
    let mut findings = Vec::new();
    let mut highest = None;
    let mut strangers = Vec::new();
    for frame in arrived {
        let bytes = on_the_wire(frame);
        let Some(index) = table.find(&bytes) else {
            strangers.push(bytes);
            continue;
        };
        let sent = &expected[index];
        table.arrivals[index] += 1;
        if table.arrivals[index] > 1 {
            findings.push(finding(ReasonCode::Dup, index, expected, &bytes, None, "arrived again"));
            continue;
        }
        if rules.ordered && highest.is_some_and(|highest| index < highest) {
            findings.push(finding(ReasonCode::Reorder, index, expected, &bytes, None, "arrived late"));
        }
        highest = highest.max(Some(index));
        if let Some((code, offset, words)) = compare(sent, &bytes, rules) {
            findings.push(finding(code, index, expected, &bytes, offset, &words));
        }
    }
    findings.extend(table.missing(expected, strangers, rules));
    findings
}

/// Compares a frame with what it must be. `None` is equal; otherwise the kind of fault, the first byte that is wrong, and
/// the fault in words.
pub fn compare(sent: &[u8], got: &[u8], rules: Rules) -> Option<(ReasonCode, Option<usize>, String)> {
    let differs = sent.iter().zip(got).position(|(sent, got)| sent != got);
    if let Some(offset) = differs {
        let words = format!("byte {offset} is {:#04x}, was sent as {:#04x}", got[offset], sent[offset]);
        let sum_at = checksum::check(got).err().and_then(|error| error.offset());
        let is_sum =
            sum_at.is_some_and(|at| offset == at || offset == at + 1) && rest_equal(sent, got, offset);
        if is_sum && checksum::check(sent).is_ok() {
            let told = checksum::check(got).err().map_or(words, |error| error.to_string());
            return Some((ReasonCode::CsumTx, Some(offset), told));
        }
        return Some((ReasonCode::Data, Some(offset), words));
    }
    let shortest = if rules.padded { sent.len().max(SHORTEST_BYTES) } else { sent.len() };
    let longest = sent.len().max(SHORTEST_BYTES);
    if got.len() < shortest || got.len() > longest {
        let words = format!("has {} bytes, was sent with {}", got.len(), sent.len());
        return Some((ReasonCode::Len, Some(got.len().min(sent.len())), words));
    }
    let dirty = got[sent.len()..].iter().position(|byte| *byte != 0).filter(|_| rules.clean_padding)?;
    let offset = sent.len() + dirty;
    Some((ReasonCode::Pad, Some(offset), format!("padding byte {offset} is {:#04x}", got[offset])))
}

/// Everything but the two bytes of a checksum is equal.
fn rest_equal(sent: &[u8], got: &[u8], offset: usize) -> bool {
    let behind = (offset + 2).min(sent.len());
    got.len() >= sent.len() && sent[behind..] == got[behind..sent.len()]
}

/// The probe that a frame carries, wherever in it.
pub fn probe_id(bytes: &[u8]) -> Option<(ProbeId, usize)> {
    let at = bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let number = |from: usize, to: usize| {
        let bytes = bytes.get(at + from..at + to)?;
        Some(bytes.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)))
    };
    let id = ProbeId { run: number(4, 12)?, stream: number(12, 16)? as u32, sequence: number(16, 24)? };
    Some((id, at))
}

struct Table<'a> {
    expected: &'a [Vec<u8>],
    by_probe: HashMap<ProbeId, usize>,
    plain: Vec<usize>,
    arrivals: Vec<u32>,
}

impl<'a> Table<'a> {
    fn new(expected: &'a [Vec<u8>]) -> Self {
        let mut by_probe = HashMap::new();
        let mut plain = Vec::new();
        for (index, bytes) in expected.iter().enumerate() {
            match probe_id(bytes) {
                Some((id, _)) => drop(by_probe.insert(id, index)),
                None => plain.push(index),
            }
        }
        Self { expected, by_probe, plain, arrivals: vec![0; expected.len()] }
    }

    /// The frame that these bytes are, or were.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        if let Some((id, _)) = probe_id(bytes)
            && let Some(index) = self.by_probe.get(&id)
        {
            return Some(*index);
        }
        let whole = |index: &&usize| {
            let sent = &self.expected[**index];
            bytes.starts_with(sent) && bytes.len() <= sent.len().max(SHORTEST_BYTES)
        };
        // Equal frames are told apart by their number alone.
        let mut same = self.plain.iter().filter(whole);
        let first = same.clone().next();
        same.find(|index| self.arrivals[**index] == 0).or(first).copied()
    }

    /// What did not arrive. What arrived and is nothing that was sent is taken for it in turn.
    fn missing(&self, expected: &[Vec<u8>], strangers: Vec<Vec<u8>>, rules: Rules) -> Vec<Finding> {
        let mut strangers = strangers.into_iter();
        let mut findings = Vec::new();
        for index in (0..expected.len()).filter(|index| self.arrivals[*index] == 0) {
            findings.push(match strangers.next() {
                Some(bytes) => {
                    let (code, offset, words) = compare(&expected[index], &bytes, rules)
                        .unwrap_or_else(|| (ReasonCode::Data, None, "arrived as something else".to_owned()));
                    finding(code, index, expected, &bytes, offset, &words)
                }
                None => Finding {
                    code: ReasonCode::Loss,
                    text: format!("{} did not arrive", name(index, expected)),
                    evidence: Some(Evidence {
                        what: name(index, expected),
                        expected: Some(Bytes(expected[index].clone())),
                        got: None,
                        offset: None,
                    }),
                },
            });
        }
        findings.extend(strangers.map(|bytes| Finding {
            code: ReasonCode::Data,
            text: format!("a frame of {} bytes arrived that was not sent", bytes.len()),
            evidence: Some(Evidence {
                what: "a frame that was not sent".to_owned(),
                expected: None,
                got: Some(Bytes(bytes)),
                offset: None,
            }),
        }));
        findings
    }
}

fn name(index: usize, expected: &[Vec<u8>]) -> String {
    format!("frame {index} of {} bytes", expected[index].len())
}

fn finding(
    code: ReasonCode,
    index: usize,
    expected: &[Vec<u8>],
    got: &[u8],
    offset: Option<usize>,
    words: &str,
) -> Finding {
    let what = name(index, expected);
    Finding {
        code,
        text: format!("{what} {words}"),
        evidence: Some(Evidence {
            what,
            expected: Some(Bytes(expected[index].clone())),
            got: Some(Bytes(got.to_vec())),
            offset: offset.map(|offset| offset as u64),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Hosts, Packet, Sum, Version, probe};
    use linerate_model::bench::frame::{Addressed, ChecksumWord};

    fn captured(bytes: &[u8]) -> FrameIn {
        FrameIn {
            bytes: Bytes(bytes.to_vec()),
            length_bytes: bytes.len() as u32,
            time_ns: 0,
            tag: None,
            checksum: ChecksumWord::None,
            addressed: Addressed::Host,
            offload: None,
        }
    }

    fn sent(count: u64) -> Vec<Vec<u8>> {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let id = |sequence| ProbeId { run: 9, stream: 0, sequence };
        // The first ones are too short to tell their number.
        (0..count).map(|n| probe(&hosts, id(n), 30 + 10 * n as usize)).collect()
    }

    fn codes(sent: &[Vec<u8>], arrived: &[Vec<u8>]) -> Vec<ReasonCode> {
        let arrived: Vec<FrameIn> = arrived.iter().map(|bytes| captured(bytes)).collect();
        judge(sent, &arrived, Rules::default()).into_iter().map(|f| f.code).collect()
    }

    #[test]
    fn what_arrives_as_sent_is_right_padded_or_not() {
        let sent = sent(8);
        assert!(codes(&sent, &sent).is_empty());
        let padded: Vec<Vec<u8>> = sent
            .iter()
            .cloned()
            .map(|mut bytes| {
                bytes.resize(bytes.len().max(60), 0);
                bytes
            })
            .collect();
        assert!(codes(&sent, &padded).is_empty());
    }

    #[test]
    fn each_fault_has_its_code() {
        let sent = sent(8);
        let changed = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
            let mut arrived = sent.clone();
            change(&mut arrived);
            codes(&sent, &arrived)
        };
        assert_eq!(changed(&|f| drop(f.remove(0))), [ReasonCode::Loss]);
        assert_eq!(changed(&|f| drop(f.remove(6))), [ReasonCode::Loss]);
        assert_eq!(changed(&|f| f.push(sent[5].clone())), [ReasonCode::Dup]);
        assert_eq!(changed(&|f| f.swap(4, 5)), [ReasonCode::Reorder]);
        assert_eq!(changed(&|f| f[6][50] ^= 4), [ReasonCode::Data]);
        assert_eq!(changed(&|f| f[0][20] ^= 4), [ReasonCode::Data]);
        assert_eq!(changed(&|f| f[6].truncate(89)), [ReasonCode::Len]);
        assert_eq!(changed(&|f| f[6].push(0)), [ReasonCode::Len]);
        assert_eq!(changed(&|f| f[0].extend([0, 0, 7])), [ReasonCode::Pad]);
    }

    #[test]
    fn a_wrong_checksum_alone_is_told_as_one() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let packet = Packet::udp(&hosts, Version::V4, vec![1; 100]);
        let wrong = Packet { sum: Sum::Flipped(0x0101), ..packet.clone() };
        assert_eq!(codes(&[packet.frame()], &[wrong.frame()]), [ReasonCode::CsumTx]);
    }
}
