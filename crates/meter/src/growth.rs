//! How far a counter came between two samples.

/// Growth of a 64-bit counter; `None` when it stepped back.
pub(crate) fn grown64(earlier: u64, later: u64) -> Option<u64> {
    later.checked_sub(earlier)
}

/// Growth of a 32-bit counter that wraps; `None` when it stepped back, which is taken to be so when the way forward would
/// be more than half of its range.
pub(crate) fn grown32(earlier: u32, later: u32) -> Option<u64> {
    let growth = later.wrapping_sub(earlier);
    (growth <= u32::MAX / 2).then_some(growth.into())
}

/// Growth of a counter that goes on from 0 after it reached `range`.
pub(crate) fn grown_within(range: u64, earlier: u64, later: u64) -> Option<u64> {
    if later >= earlier {
        return Some(later - earlier);
    }
    range.checked_sub(earlier)?.checked_add(later)
}

/// A growth, or 0 with a note that the counter `name` stepped back.
pub(crate) fn or_note(growth: Option<u64>, name: &str, notes: &mut Vec<String>) -> u64 {
    growth.unwrap_or_else(|| {
        notes.push(format!("{name}: stepped back within the window"));
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_or_step_back() {
        assert_eq!(grown32(u32::MAX - 1, 3), Some(5));
        assert_eq!(grown32(1000, 10), None);
        assert_eq!(grown64(1000, 10), None);
        assert_eq!(grown64(10, 1000), Some(990));
        assert_eq!(grown_within(100, 90, 5), Some(15));
        assert_eq!(grown_within(100, 5, 90), Some(85));
        assert_eq!(grown_within(50, 90, 5), None);
        let mut notes = Vec::new();
        assert_eq!(or_note(None, "x", &mut notes), 0);
        assert_eq!(notes, ["x: stepped back within the window"]);
    }
}
