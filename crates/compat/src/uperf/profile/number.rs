//! The three ways in which a profile writes numbers.

/// Digits, perhaps a fraction, perhaps a suffix of which the first letter counts: b k m g t p e z, powers of 1024.
///
/// # Errors
/// Not of this form, or 2^31 and more.
pub(crate) fn integer(text: &str) -> Result<u32, String> {
    let (number, suffix) = split(text)?;
    let power = match suffix {
        None => 0,
        Some(letter) => "bkmgtpez".find(letter).ok_or_else(|| format!("cannot parse {text}"))?,
    };
    let value = number * 1024f64.powi(i32::try_from(power).unwrap_or(i32::MAX));
    if value > f64::from(i32::MAX) {
        return Err(format!("{text} is more than {}", i32::MAX));
    }
    Ok(value as u32)
}

/// Digits, perhaps a fraction, and a unit of which the first letter counts: s, m (milliseconds), u, n; none is seconds.
/// Returns nanoseconds.
///
/// # Errors
/// Not of this form, or 0.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    let (number, suffix) = split(text)?;
    let factor = match suffix {
        None | Some('s') => 1e9,
        Some('m') => 1e6,
        Some('u') => 1e3,
        Some('n') => 1.0,
        Some(_) => return Err(format!("{text}: the unit must be s, m (milliseconds), u or n")),
    };
    let value = (number * factor).round();
    if value < 1.0 {
        return Err(format!("{text}: must be more than 0"));
    }
    if value > u64::MAX as f64 / 2.0 {
        return Err(format!("{text}: too long"));
    }
    Ok(value as u64)
}

/// As C's atoi, but what it takes in silence is an error.
///
/// # Errors
/// Not a plain number.
pub(crate) fn plain(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| *n <= i32::MAX as u32);
    number.ok_or_else(|| format!("cannot parse {text}: a plain number is wanted"))
}

/// The number and its suffix's first letter, lower case.
fn split(text: &str) -> Result<(f64, Option<char>), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let number = digits.parse::<f64>().map_err(|_| format!("cannot parse {text}"))?;
    Ok((number, suffix.chars().next().map(|c| c.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_of_a_suffix_counts() {
        for (text, value) in [
            ("8k", 8192),
            ("8kb", 8192),
            ("1.5K", 1536),
            (".5m", 524_288),
            ("1g", 1 << 30),
            ("90", 90),
            ("7b", 7),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        for text in ["2g", "3000000000", "4294967297", "-1", "", "x", "1y", "1.2.3", "+5", "1e400"] {
            assert!(integer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn m_is_milliseconds() {
        for (text, value) in [
            ("1m", 1_000_000),
            ("1min", 1_000_000),
            ("30", 30_000_000_000),
            ("100s", 100_000_000_000),
            ("1.5s", 1_500_000_000),
            ("10us", 10_000),
            ("7n", 7),
        ] {
            assert_eq!(nanoseconds(text), Ok(value), "{text}");
        }
        for text in ["0", "1h", "x", "-1s", "", "99999999999999s"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn plain_numbers_have_no_suffix() {
        assert_eq!(plain("10"), Ok(10));
        assert!(plain("10k").is_err());
        assert!(plain("-1").is_err());
    }
}
