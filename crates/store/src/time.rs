//! Times as people and records write them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no time: give 2026-11-30T21:05:00Z, 2026-11-30 (UTC), or how long ago: 90m, 12h, 7d, 2w")]
pub struct BadTime(pub String);

/// Parses what `--since` and `--until` take: an RFC 3339 time, a date (its first instant in UTC), or a span before
/// `now` such as `12h` or `7d`.
///
/// # Errors
/// [`BadTime`], which says what would be right.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, BadTime> {
    let bad = || BadTime(text.to_owned());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    // A civil time without a zone could be meant as local time: refused rather than guessed.
    if text.len() == "2026-11-30".len()
        && let Ok(date) = text.parse::<Date>()
    {
        return date.to_zoned_datetime(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| bad());
    }
    let span: Span = text.parse().map_err(|_| bad())?;
    if span.is_negative() {
        return Err(bad());
    }
    let zoned = now.to_zoned_datetime(TimeZone::UTC);
    zoned.checked_sub(span).map(|past| past.timestamp()).map_err(|_| bad())
}

/// Nanoseconds since 1970 of an RFC 3339 text, for sorting; `None` where it is no such text or past the year 2262.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// The limit of a filter as a column value; times that no column can have are pulled to the nearest that can.
pub(crate) fn bound(time: Timestamp) -> i64 {
    let ns = time.as_nanosecond().clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_dates_and_spans() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let parse = |text: &str| parse_time(text, now).map(|time| time.to_string());
        assert_eq!(parse("2026-11-30T12:30:00+01:00").unwrap(), "2026-11-30T11:30:00Z");
        assert_eq!(parse("2026-11-01").unwrap(), "2026-11-01T00:00:00Z");
        assert_eq!(parse("90m").unwrap(), "2026-11-30T10:30:00Z");
        assert_eq!(parse("7d").unwrap(), "2026-11-23T12:00:00Z");
        assert_eq!(parse("2w").unwrap(), "2026-11-16T12:00:00Z");
        for wrong in ["", "yesterday", "-7d", "7", "2026-11-30T12:00:00", "2026-13-01", "99999y"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn order_is_that_of_time_not_of_text() {
        let early = nanoseconds("2026-11-30T12:00:00+02:00").unwrap();
        assert!(early < nanoseconds("2026-11-30T11:00:00.5Z").unwrap());
        assert_eq!(nanoseconds("soon"), None);
        assert_eq!(nanoseconds("2300-01-01T00:00:00Z"), None);
        assert_eq!(bound(Timestamp::MAX), i64::MAX);
        assert_eq!(bound(Timestamp::MIN), i64::MIN);
    }
}
