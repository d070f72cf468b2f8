//! Sizes, rates and times as people write and read them.
//!
//! Sizes take `K`, `M`, `G` as powers of 1024 bytes; rates take `k`, `m`, `g` as powers of 1000 (either case is
//! taken in input for both, since no meaning is lost: a size is always 1024, a rate always 1000).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct UnitError {
    /// The text that was given.
    pub text: String,
    /// What would be right, with an example.
    pub expected: &'static str,
}

/// A count of bytes. Text form: a whole number with an optional K, M or G (1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// As `usize`, for buffer sizes; saturates on 32-bit machines.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_scaled(text, 1024).map(Self).ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "a size (bytes, or with K, M, G of 1024: 128, 64K, 1M)",
        })
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            n if n >= 1 << 30 && n.is_multiple_of(1 << 30) => format!("{}G", n >> 30),
            n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
            n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{}K", n >> 10),
            n => n.to_string(),
        };
        f.pad(&text)
    }
}

fn parse_scaled(text: &str, kilo: u64) -> Option<u64> {
    let (digits, scale) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], kilo),
        (at, 'm' | 'M') => (&text[..at], kilo.pow(2)),
        (at, 'g' | 'G') => (&text[..at], kilo.pow(3)),
        (at, 't' | 'T') => (&text[..at], kilo.pow(4)),
        _ => (text, 1),
    };
    if let Ok(whole) = digits.parse::<u64>() {
        return if digits.starts_with('+') { None } else { whole.checked_mul(scale) };
    }
    // A fraction is taken only where it gives a whole number of units (1.5G, never 1.5 bytes).
    let (int, frac) = digits.split_once('.')?;
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(int) || !all_digits(frac) || frac.len() > 9 {
        return None;
    }
    let denominator = 10_u128.pow(u32::try_from(frac.len()).ok()?);
    let numerator = u128::from(int.parse::<u64>().ok()?) * denominator + frac.parse::<u128>().ok()?;
    let scaled = numerator.checked_mul(u128::from(scale))?;
    if !scaled.is_multiple_of(denominator) {
        return None;
    }
    u64::try_from(scaled / denominator).ok()
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RateUnit {
    /// Payload bits a second.
    BitsPerSecond,
    /// Packets (datagrams or calls) a second.
    PacketsPerSecond,
    /// Requests a second.
    RequestsPerSecond,
}

/// A rate asked for, a total over all streams. Text form: a number with an optional k, m or g (1000) and an
/// optional unit: `bit` (default for streams), `pps`, `rps` (default for request/response).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// How many a second, at least 1.
    pub per_second: u64,
    /// Of what.
    pub unit: RateUnit,
}

impl Rate {
    /// Parses a rate; `default_unit` is meant where the text names none.
    ///
    /// # Errors
    /// Where the text is not a rate, or is zero.
    pub fn parse(text: &str, default_unit: RateUnit) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "a rate above 0 (a second, with k, m, g of 1000: 100m, 2.5g bits; 50kpps packets; 10krps requests)",
        };
        let lower = text.to_ascii_lowercase();
        let (number, unit) = if let Some(n) = lower.strip_suffix("pps") {
            (n, RateUnit::PacketsPerSecond)
        } else if let Some(n) = lower.strip_suffix("rps") {
            (n, RateUnit::RequestsPerSecond)
        } else if let Some(n) = lower
            .strip_suffix("bit/s")
            .or_else(|| lower.strip_suffix("bit"))
            .or_else(|| lower.strip_suffix("bps"))
        {
            (n, RateUnit::BitsPerSecond)
        } else {
            (lower.as_str(), default_unit)
        };
        match parse_scaled(number, 1000) {
            Some(per_second) if per_second > 0 => Ok(Self { per_second, unit }),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            RateUnit::BitsPerSecond => "bit",
            RateUnit::PacketsPerSecond => "pps",
            RateUnit::RequestsPerSecond => "rps",
        };
        let text = match self.per_second {
            n if n >= 1_000_000_000 && n.is_multiple_of(1_000_000_000) => {
                format!("{}g{unit}", n / 1_000_000_000)
            }
            n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{}m{unit}", n / 1_000_000),
            n if n >= 1000 && n.is_multiple_of(1000) => format!("{}k{unit}", n / 1000),
            n => format!("{n}{unit}"),
        };
        f.pad(&text)
    }
}

/// Parses seconds (`10`, `0.5`, also `500ms`, `2m`) to nanoseconds.
///
/// # Errors
/// Where the text is no time, or is over a year.
pub fn parse_seconds_ns(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        expected: "a time (seconds, or with ms, s, m, h: 10, 0.5, 500ms, 2m)",
    };
    let (number, unit_ns) = if let Some(n) = text.strip_suffix("ms") {
        (n, 1_000_000.0)
    } else if let Some(n) = text.strip_suffix('s') {
        (n, 1e9)
    } else if let Some(n) = text.strip_suffix('m') {
        (n, 60e9)
    } else if let Some(n) = text.strip_suffix('h') {
        (n, 3600e9)
    } else {
        (text, 1e9)
    };
    let starts_like_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = number.parse().map_err(|_| error())?;
    let ns = value * unit_ns;
    if !starts_like_number || !ns.is_finite() || ns > 3.2e16 {
        return Err(error());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: finite, not negative, below 2^55"
    )]
    Ok(ns.round() as u64)
}

/// Sum that stops at the largest number: counts come from other machines, which can claim anything.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// `bytes` in `ns` as bits a second; 0 for an empty time.
pub fn bits_per_second(bytes: u64, ns: u64) -> f64 {
    per_second(bytes, ns) * 8.0
}

/// `count` in `ns` as a figure a second; 0 for an empty time.
pub fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        let size = |t: &str| t.parse::<ByteCount>().map(|b| b.0);
        assert_eq!(size("128"), Ok(128));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("1m"), Ok(1 << 20));
        assert_eq!(size("1.5K"), Ok(1536));
        for wrong in [
            "",
            "K",
            "-1",
            "+1",
            "1.5",
            "1.0001K",
            "12x",
            "1e3",
            "99999999999999999999",
            "18446744073709551615K",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ByteCount(65536).to_string(), "64K");
        assert_eq!(ByteCount(1500).to_string(), "1500");
        assert_eq!(ByteCount(0).to_string(), "0");
    }

    #[test]
    fn rates_are_powers_of_1000_with_their_unit() {
        let rate = |t: &str| Rate::parse(t, RateUnit::BitsPerSecond).map(|r| (r.per_second, r.unit));
        assert_eq!(rate("2.5g"), Ok((2_500_000_000, RateUnit::BitsPerSecond)));
        assert_eq!(rate("50kpps"), Ok((50_000, RateUnit::PacketsPerSecond)));
        assert_eq!(rate("10rps"), Ok((10, RateUnit::RequestsPerSecond)));
        assert_eq!(rate("100Mbit"), Ok((100_000_000, RateUnit::BitsPerSecond)));
        assert!(rate("0").is_err() && rate("fast").is_err() && rate("").is_err());
        assert_eq!(Rate::parse("1500kpps", RateUnit::BitsPerSecond).unwrap().to_string(), "1500kpps");
    }

    #[test]
    fn times() {
        assert_eq!(parse_seconds_ns("10"), Ok(10_000_000_000));
        assert_eq!(parse_seconds_ns("0.5"), Ok(500_000_000));
        assert_eq!(parse_seconds_ns("250ms"), Ok(250_000_000));
        assert_eq!(parse_seconds_ns("2m"), Ok(120_000_000_000));
        for wrong in ["", "-1", "nan", "inf", "1e99", "s", "1w"] {
            assert!(parse_seconds_ns(wrong).is_err(), "{wrong}");
        }
    }
}
