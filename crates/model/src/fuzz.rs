//! For fuzzers: every parser of users' words over any bytes.

use crate::node::NodeUrl;
use crate::units::{ByteCount, Rate, RateUnit, parse_seconds_ns};
use crate::values::{expand_sizes, parse_cpu_list};

/// Feeds any bytes to each parser: none may panic, and what a parser took must come back from its own text.
///
/// # Panics
/// Where a node or a size does not survive being written and read again.
pub fn fuzz_parse(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(node) = text.parse::<NodeUrl>() {
        assert_eq!(node.to_string().parse(), Ok(node));
    }
    if let Ok(size) = text.parse::<ByteCount>() {
        assert_eq!(size.to_string().parse(), Ok(size));
    }
    for unit in [RateUnit::BitsPerSecond, RateUnit::PacketsPerSecond, RateUnit::RequestsPerSecond] {
        let _ = Rate::parse(&text, unit);
    }
    let _ = parse_seconds_ns(&text);
    let _ = expand_sizes(&text);
    let _ = parse_cpu_list(&text);
}
