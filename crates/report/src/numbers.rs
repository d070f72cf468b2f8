//! Numbers as people read them: three or four significant digits, factors of 1000.

/// `value` with `digits` significant digits and never an exponent; whole numbers are never cut.
///
/// # Examples
/// ```
/// use linerate_report::numbers::significant;
/// assert_eq!(significant(23.414, 4), "23.41");
/// assert_eq!(significant(0.05234, 3), "0.0523");
/// assert_eq!(significant(123456.7, 4), "123457");
/// assert_eq!(significant(0.0, 4), "0");
/// ```
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let text = format!("{value:.*}", decimals(value, digits));
    // Rounding can carry into a further digit: 9.9996 at four digits is 10.00, not 10.000.
    let rounded: f64 = text.parse().unwrap_or(value);
    format!("{value:.*}", decimals(rounded, digits))
}

fn decimals(value: f64, digits: usize) -> usize {
    let mut before_point: usize = 1;
    let mut rest = value.abs();
    while rest >= 10.0 && before_point < digits {
        rest /= 10.0;
        before_point += 1;
    }
    if rest >= 1.0 {
        return digits - before_point;
    }
    let mut zeros = 0;
    while rest < 1.0 && zeros < 9 {
        rest *= 10.0;
        zeros += 1;
    }
    zeros + digits - 1
}

/// A count, or a count a second, with `k`, `M` or `G` (1000) and three significant digits; whole below 1000 if it is.
///
/// # Examples
/// ```
/// use linerate_report::numbers::count;
/// assert_eq!(count(0.0), "0");
/// assert_eq!(count(12.0), "12");
/// assert_eq!(count(1_953_123.0), "1.95M");
/// assert_eq!(count(999_950.0), "1.00M");
/// ```
pub fn count(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
    for (at, (scale, suffix)) in STEPS.iter().enumerate() {
        let scaled = value / scale;
        let is_last = at + 1 == STEPS.len();
        // 999.5 would round to 1000 at three digits: it belongs to the next step.
        if is_last || scaled.abs() < 999.5 {
            let whole = scaled.fract() == 0.0 && suffix.is_empty();
            return if whole { format!("{scaled:.0}") } else { significant(scaled, 3) + suffix };
        }
    }
    value.to_string()
}

/// A whole count up to 99999 as it is, above that as [`count`] has it.
pub fn exact_count(value: f64) -> String {
    if value <= 99_999.0 && value.fract() == 0.0 { format!("{value:.0}") } else { count(value) }
}

/// CPU use in percent: three significant digits, whole from 100.
pub fn cpu_percent(value: f64) -> String {
    if value > 0.0 && value < 0.1 { format!("{value:.2}") } else { significant(value, 3) }
}

/// A part in percent, small parts kept visible.
pub fn part_percent(value: f64) -> String {
    if value > 0.0 && value < 0.001 { "<0.001".to_owned() } else { significant(value, 3) }
}

/// Service demand in microseconds a unit: four significant digits, three below 1.
pub fn demand(value: f64) -> String {
    significant(value, if value < 0.9995 { 3 } else { 4 })
}

/// A unit that a whole column of numbers is shown in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Its name for the header.
    pub name: &'static str,
    /// How many base units it is.
    pub scale: f64,
}

impl Unit {
    /// `value`, given in base units, in this unit with four significant digits.
    pub fn show(self, value: f64) -> String {
        significant(value / self.scale, 4)
    }
}

const PLAIN: Unit = Unit { name: "", scale: 1.0 };

/// Bits a second, small to large.
pub const BIT_RATES: [Unit; 4] = [
    Unit { name: "bit/s", scale: 1.0 },
    Unit { name: "kbit/s", scale: 1e3 },
    Unit { name: "Mbit/s", scale: 1e6 },
    Unit { name: "Gbit/s", scale: 1e9 },
];

/// Times given in nanoseconds, small to large.
pub const TIMES: [Unit; 2] = [Unit { name: "us", scale: 1e3 }, Unit { name: "ms", scale: 1e6 }];

/// The unit for a column: the largest that leaves the smallest value at 1 or above, but one in which the largest
/// value stays below a million.
pub fn column_unit(units: &[Unit], values: impl Iterator<Item = f64>) -> Unit {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for value in values.filter(|v| *v > 0.0) {
        least = least.min(value);
        most = most.max(value);
    }
    let fits_least = units.iter().rev().find(|u| least >= u.scale);
    let fits_most = units.iter().find(|u| most / u.scale < 1e6);
    let larger = |a: Unit, b: Unit| if a.scale >= b.scale { a } else { b };
    match (fits_least, fits_most, units.last()) {
        _ if most == 0.0 => units.get(2).or_else(|| units.first()).copied().unwrap_or(PLAIN),
        (Some(&a), Some(&b), _) => larger(a, b),
        (None, Some(&b), _) => b,
        (_, None, Some(&last)) => last,
        (_, None, None) => PLAIN,
    }
}

/// A bit rate with its own unit: `23.41 Gbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    let unit = column_unit(&BIT_RATES, std::iter::once(bits_per_second));
    format!("{} {}", unit.show(bits_per_second), unit.name)
}

/// A time given in nanoseconds, with its own unit: `12.30 us`, `2.1 s`.
pub fn time(ns: u64) -> String {
    const UNITS: [Unit; 4] = [
        Unit { name: "ns", scale: 1.0 },
        Unit { name: "us", scale: 1e3 },
        Unit { name: "ms", scale: 1e6 },
        Unit { name: "s", scale: 1e9 },
    ];
    let unit = UNITS.iter().rev().find(|u| ns as f64 >= u.scale).unwrap_or(&UNITS[0]);
    let text = unit.show(ns as f64);
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {}", unit.name)
}

/// A byte count with `K`, `M`, `G` or `T` (1024) and three significant digits: `12.3G`.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for suffix in ["", "K", "M", "G"] {
        if value < 1000.0 {
            return if suffix.is_empty() { format!("{value:.0}") } else { significant(value, 3) + suffix };
        }
        value /= 1024.0;
    }
    significant(value, 3) + "T"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_carries_without_an_extra_digit() {
        assert_eq!(significant(9.9996, 4), "10.00");
        assert_eq!(significant(99.996, 4), "100.0");
        assert_eq!(significant(0.099_96, 3), "0.100");
        assert_eq!(significant(999.96, 4), "1000");
        assert_eq!(significant(1.0, 3), "1.00");
    }

    #[test]
    fn counts_step_by_1000() {
        assert_eq!(count(999.0), "999");
        assert_eq!(count(999.9), "1.00k");
        assert_eq!(count(1000.0), "1.00k");
        assert_eq!(count(0.5), "0.500");
        assert_eq!(count(123_456_789_012.0), "123G");
        assert_eq!(exact_count(12_345.0), "12345");
        assert_eq!(exact_count(123_456.0), "123k");
    }

    #[test]
    fn a_column_has_one_unit() {
        let unit = |v: &[f64]| column_unit(&BIT_RATES, v.iter().copied()).name;
        assert_eq!(unit(&[23e9, 1.2e9]), "Gbit/s");
        assert_eq!(unit(&[60e9, 300e6]), "Mbit/s");
        assert_eq!(unit(&[60e9, 3.0]), "Mbit/s");
        assert_eq!(unit(&[2e12, 3.0]), "Gbit/s");
        assert_eq!(unit(&[0.0]), "Mbit/s");
        assert_eq!(unit(&[0.5]), "bit/s");
        assert_eq!(bit_rate(23_414_000_000.0), "23.41 Gbit/s");
    }

    #[test]
    fn small_and_large_stay_readable() {
        assert_eq!(part_percent(0.0), "0");
        assert_eq!(part_percent(0.0001), "<0.001");
        assert_eq!(demand(0.4123), "0.412");
        assert_eq!(demand(12.3456), "12.35");
        assert_eq!(cpu_percent(101.4), "101");
        assert_eq!(time(2_100_000_000), "2.1 s");
        assert_eq!(time(999), "999 ns");
        assert_eq!(bytes(131_072), "128K");
        assert_eq!(bytes(500), "500");
    }
}
