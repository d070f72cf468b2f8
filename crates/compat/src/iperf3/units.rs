//! Numbers as iperf3 reads and writes them.

/// How rates are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateFormat {
    /// Bits, with the prefix that fits.
    #[default]
    Adaptive,
    /// Bits with a fixed prefix: 0 is K, 1 M, 2 G, 3 T.
    Bits(u8),
    /// Bytes (1024) with a fixed prefix.
    Bytes(u8),
}

impl RateFormat {
    /// From the letter of `-f`: kmgt are bits, KMGT bytes.
    pub fn from_letter(letter: char) -> Option<Self> {
        let index = |set: &str| set.find(letter).map(|i| i as u8);
        index("kmgt").map(Self::Bits).or_else(|| index("KMGT").map(Self::Bytes))
    }
}

/// Bytes with a prefix of 1024: `2.40 GBytes`.
pub fn bytes(value: f64) -> String {
    const NAMES: [&str; 5] = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
    let (value, step) = scale(value, 1024.0, NAMES.len() - 1);
    format!("{} {}", number(value), NAMES[step])
}

/// A rate in bits a second: `20.6 Gbits/sec`.
pub fn rate(bits_per_second: f64, format: RateFormat) -> String {
    const BITS: [&str; 5] = ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"];
    const BYTES: [&str; 4] = ["KBytes/sec", "MBytes/sec", "GBytes/sec", "TBytes/sec"];
    match format {
        RateFormat::Adaptive => {
            let (value, step) = scale(bits_per_second, 1000.0, BITS.len() - 1);
            format!("{} {}", number(value), BITS[step])
        }
        RateFormat::Bits(step) => {
            let value = bits_per_second / 1000_f64.powi(i32::from(step) + 1);
            format!("{} {}", number(value), BITS[usize::from(step) + 1])
        }
        RateFormat::Bytes(step) => {
            let value = bits_per_second / 8.0 / 1024_f64.powi(i32::from(step) + 1);
            format!("{} {}", number(value), BYTES[usize::from(step)])
        }
    }
}

fn scale(mut value: f64, base: f64, most: usize) -> (f64, usize) {
    let mut step = 0;
    while value >= base && step < most {
        value /= base;
        step += 1;
    }
    (value, step)
}

/// Three significant digits, width 4.
fn number(value: f64) -> String {
    if value < 9.995 {
        format!("{value:4.2}")
    } else if value < 99.95 {
        format!("{value:4.1}")
    } else {
        format!("{value:4.0}")
    }
}

/// A number with a suffix of 1024 (`K`, `M`, `G`, `T`, either case; decimals allowed), as sizes are written.
pub fn parse_binary(text: &str) -> Option<u64> {
    parse(text, 1024.0)
}

/// A number with a suffix of 1000, as rates are written.
pub fn parse_decimal(text: &str) -> Option<u64> {
    parse(text, 1000.0)
}

fn parse(text: &str, base: f64) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let value: f64 = digits.parse().ok()?;
    let power = match suffix.chars().next().map(|c| c.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return None,
    };
    let value = value * base.powi(power);
    (value.is_finite() && value < 1.8e19).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits() {
        assert_eq!(bytes(2.4 * 1024.0 * 1024.0 * 1024.0), "2.40 GBytes");
        assert_eq!(bytes(245.0 * 1024.0), " 245 KBytes");
        assert_eq!(bytes(1023.0 * 1024.0), "1023 KBytes");
        assert_eq!(bytes(0.0), "0.00 Bytes");
        assert_eq!(rate(2_000_000.0, RateFormat::Adaptive), "2.00 Mbits/sec");
        assert_eq!(rate(20_600_000_000.0, RateFormat::Adaptive), "20.6 Gbits/sec");
        assert_eq!(rate(998_000_000.0, RateFormat::Adaptive), " 998 Mbits/sec");
        assert_eq!(rate(1e9, RateFormat::from_letter('m').unwrap()), "1000 Mbits/sec");
        assert_eq!(rate(8.0 * 1024.0 * 1024.0, RateFormat::from_letter('M').unwrap()), "1.00 MBytes/sec");
        assert_eq!(RateFormat::from_letter('x'), None);
    }

    #[test]
    fn suffixes_are_binary_or_decimal() {
        assert_eq!(parse_binary("1.5K"), Some(1536));
        assert_eq!(parse_binary("128kB"), Some(131_072));
        assert_eq!(parse_decimal("10m"), Some(10_000_000));
        assert_eq!(parse_decimal("2.5G"), Some(2_500_000_000));
        assert_eq!(parse_decimal("10x"), None);
        assert_eq!(parse_decimal(""), None);
        assert_eq!(parse_decimal("-5"), None);
    }
}
