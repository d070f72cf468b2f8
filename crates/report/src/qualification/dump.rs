//! The first input that failed, in hex, with the place of the first wrong byte.

use linerate_model::qualification::Evidence;

/// Bytes in a row.
pub(super) const ROW: usize = 16;
/// Rows shown around the wrong byte; the rest is left out.
const ROWS: usize = 8;

/// A piece of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Offset of its first byte.
    pub(super) offset: usize,
    /// Two digits a byte, with whether the byte differs from its counterpart.
    pub(super) bytes: Vec<(String, bool)>,
}

/// Rows of `bytes` around `focus`; bytes that `other` does not have at the same place are marked.
pub(super) fn rows(bytes: &[u8], other: Option<&[u8]>, focus: Option<u64>) -> Vec<Row> {
    let count = bytes.len().div_ceil(ROW);
    let focus = focus.and_then(|at| usize::try_from(at).ok()).unwrap_or(0) / ROW;
    let first = focus.saturating_sub(ROWS / 2).min(count.saturating_sub(ROWS));
    let differs = |at: usize| other.is_some_and(|other| other.get(at) != bytes.get(at));
    let row = |index: usize| {
        let offset = index * ROW;
        let end = (offset + ROW).min(bytes.len());
        let bytes = (offset..end).map(|at| (format!("{:02x}", bytes[at]), differs(at)));
        Row { offset, bytes: bytes.collect() }
    };
    (first..count.min(first + ROWS)).map(row).collect()
}

/// As plain lines: what it was, expected and got, the place.
pub(super) fn dump_lines(evidence: &Evidence) -> Vec<String> {
    let mut lines = vec![evidence.what.clone()];
    if let Some(offset) = evidence.offset {
        lines.push(format!("first difference at offset {offset} (0x{offset:x})"));
    }
    let (expected, got) = (evidence.expected.as_deref(), evidence.got.as_deref());
    for (name, bytes, other) in [("expected", expected, got), ("got", got, expected)] {
        let Some(bytes) = bytes else { continue };
        lines.push(format!("{name}, {} bytes:", bytes.len()));
        let shown = rows(bytes, other, evidence.offset);
        lines.extend(shown.iter().map(|row| {
            let digits: Vec<&str> = row.bytes.iter().map(|(digits, _)| digits.as_str()).collect();
            format!("  {:04x}  {}", row.offset, digits.join(" "))
        }));
        if bytes.len() > shown.len() * ROW {
            lines.push(format!("  ({} bytes more)", bytes.len() - shown.len() * ROW));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_byte_is_within_the_rows_shown() {
        let sent: Vec<u8> = (0..=255).cycle().take(1514).collect();
        for offset in [0, 1, 127, 128, 700, 1513] {
            let mut got = sent.clone();
            got[offset] ^= 1;
            let rows = rows(&got, Some(&sent), Some(offset as u64));
            let marked: Vec<usize> = rows
                .iter()
                .flat_map(|row| row.bytes.iter().enumerate().map(move |(at, byte)| (row.offset + at, byte.1)))
                .filter_map(|(at, marked)| marked.then_some(at))
                .collect();
            assert_eq!(marked, [offset]);
            assert_eq!(rows.len(), ROWS);
        }
    }

    #[test]
    fn what_is_short_or_empty_is_no_trouble() {
        assert!(rows(&[], None, Some(u64::MAX)).is_empty());
        let rows = rows(&[1, 2, 3], Some(&[1, 2]), Some(2));
        assert_eq!(rows[0].bytes, [("01".into(), false), ("02".into(), false), ("03".into(), true)]);
    }
}
