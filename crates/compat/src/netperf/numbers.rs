//! Numbers, pairs and units of netperf's command line and tables.

/// A word that is no number, or no pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number")]
pub struct NotANumber(pub String);

/// A whole number; each suffix letter multiplies it: K, M, G by powers of 1024, k, m, g by powers of 1000.
pub(crate) fn number(text: &str) -> Result<i64, NotANumber> {
    let wrong = || NotANumber(text.to_owned());
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '-' || c == '+')).unwrap_or(text.len());
    let mut value: i64 = text[..end].parse().map_err(|_| wrong())?;
    for letter in text[end..].chars() {
        let factor = match letter {
            'K' => 1 << 10,
            'M' => 1 << 20,
            'G' => 1 << 30,
            'k' => 1_000,
            'm' => 1_000_000,
            'g' => 1_000_000_000,
            _ => return Err(wrong()),
        };
        value = value.checked_mul(factor).ok_or_else(wrong)?;
    }
    Ok(value)
}

/// `a,b` is both, `a,` the first, `,b` the second; `a` alone is both.
pub(crate) fn pair(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (given(text), given(text)),
        Some((first, second)) => (given(first), given(second)),
    }
}

/// As [`pair`], but `a` alone is the first only.
pub(crate) fn explicit_pair(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (given(text), None),
        Some((first, second)) => (given(first), given(second)),
    }
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Microseconds of a time: whole number, then m (also where nothing is said), u or s.
pub(crate) fn micros(text: &str) -> Result<u32, NotANumber> {
    let wrong = || NotANumber(text.to_owned());
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let value: u32 = text[..end].parse().map_err(|_| wrong())?;
    let suffix = &text[end..];
    let factor = if suffix.contains('m') {
        1000
    } else if suffix.contains('u') {
        1
    } else if suffix.contains('s') {
        1_000_000
    } else if suffix.is_empty() {
        1000
    } else {
        return Err(wrong());
    };
    value.checked_mul(factor).ok_or_else(wrong)
}

/// A TOS byte: a DSCP's name, one of the old names, or 0 to 255 in any usual base.
pub(crate) fn tos(text: &str) -> Option<i32> {
    let lower = text.to_ascii_lowercase();
    if let Some(class) = lower.strip_prefix("cs").and_then(|n| n.parse::<i32>().ok()) {
        return (0..8).contains(&class).then_some(class << 5);
    }
    if let Some(digits) = lower.strip_prefix("af") {
        let (class, drop) = (digits.parse::<i32>().ok()? / 10, digits.parse::<i32>().ok()? % 10);
        return ((1..5).contains(&class) && (1..4).contains(&drop)).then_some(class << 5 | drop << 3);
    }
    let value = match lower.as_str() {
        "ef" => Some(0xb8),
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        number => match number.strip_prefix("0x") {
            Some(hex) => i32::from_str_radix(hex, 16).ok(),
            None if number.len() > 1 && number.starts_with('0') => i32::from_str_radix(number, 8).ok(),
            None => number.parse().ok(),
        },
    };
    value.filter(|value| (0..256).contains(value))
}

/// Unit of a throughput, by the letter of `-f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit(pub char);

impl Unit {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self.0 {
            'b' => "10^0bits",
            'B' => "Bytes",
            'k' => "10^3bits",
            'K' => "KBytes",
            'm' => "10^6bits",
            'M' => "MBytes",
            'g' => "10^9bits",
            'G' => "GBytes",
            'x' => "Trans",
            'u' => "Usec",
            _ => "KBytes",
        }
    }

    /// `units` (bytes, or transactions for x) over `seconds`.
    pub fn rate(self, units: f64, seconds: f64) -> f64 {
        let seconds = if seconds > 0.0 { seconds } else { f64::MIN_POSITIVE };
        if self.0 == 'u' {
            return if units > 0.0 { 1e6 * seconds / units } else { 0.0 };
        }
        let divisor = match self.0 {
            'b' | 'B' | 'x' => 1.0,
            'k' => 1e3 / 8.0,
            'm' => 1e6 / 8.0,
            'g' => 1e9 / 8.0,
            'M' => 1024.0 * 1024.0,
            'G' => 1024.0 * 1024.0 * 1024.0,
            _ => 1024.0,
        };
        units / divisor / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_every_suffix() {
        assert_eq!(number("64K"), Ok(65_536));
        assert_eq!(number("10m"), Ok(10_000_000));
        assert_eq!(number("-1000"), Ok(-1000));
        assert_eq!(number("1kk"), Ok(1_000_000));
        assert!(number("ten").is_err() && number("1x").is_err() && number("").is_err());
        assert!(number("9g9").is_err());
    }

    #[test]
    fn pairs_follow_the_comma() {
        assert_eq!(pair("5"), (Some("5"), Some("5")));
        assert_eq!(pair("5,"), (Some("5"), None));
        assert_eq!(pair(",6"), (None, Some("6")));
        assert_eq!(explicit_pair("5"), (Some("5"), None));
        assert_eq!(explicit_pair("5,6"), (Some("5"), Some("6")));
    }

    #[test]
    fn times_and_tos() {
        assert_eq!((micros("10"), micros("10u"), micros("1s")), (Ok(10_000), Ok(10), Ok(1_000_000)));
        assert_eq!((tos("cs7"), tos("af41"), tos("EF")), (Some(0xe0), Some(0x88), Some(0xb8)));
        assert_eq!(
            (tos("0x10"), tos("010"), tos("16"), tos("256"), tos("best")),
            (Some(16), Some(8), Some(16), None, None)
        );
    }

    #[test]
    fn units_divide_as_netperf_does() {
        assert!((Unit('m').rate(125_000.0, 1.0) - 1.0).abs() < 1e-9);
        assert!((Unit('M').rate(1_048_576.0, 2.0) - 0.5).abs() < 1e-9);
        assert!((Unit('x').rate(10.0, 2.0) - 5.0).abs() < 1e-9);
        assert!((Unit('u').rate(10.0, 1.0) - 100_000.0).abs() < 1e-9);
        assert_eq!(Unit('b').name(), "10^0bits");
    }
}
