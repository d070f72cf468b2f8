//! A figure with its unit, as people read it.

use crate::numbers;

/// `value` in the named unit (see [`linerate_model::verdict::VerdictRow::unit`]), scaled where the unit has multiples.
pub(crate) fn figure(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => numbers::bit_rate(value),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
        "ns" => numbers::time(value as u64),
        "%" => format!("{} %", numbers::cpu_percent(value)),
        "us/KiB" => format!("{} us/KB", numbers::demand(value)),
        "us/transaction" => format!("{} us/tr", numbers::demand(value)),
        "" => numbers::count(value),
        other => format!("{} {other}", numbers::count(value)),
    }
}

/// Two values in the unit that suits both: the first without the unit's name, the second with it.
pub(crate) fn figures(base: f64, new: f64, unit: &str) -> [String; 2] {
    let (scaled, suffix) = match unit {
        "bit/s" => {
            let unit = numbers::column_unit(&numbers::BIT_RATES, [base, new].into_iter());
            ([base, new].map(|v| unit.show(v)), unit.name)
        }
        "ns" => {
            let unit = numbers::column_unit(&numbers::TIMES, [base, new].into_iter());
            ([base, new].map(|v| unit.show(v)), unit.name)
        }
        "%" => ([base, new].map(numbers::cpu_percent), "%"),
        "us/KiB" => ([base, new].map(numbers::demand), "us/KB"),
        "us/transaction" => ([base, new].map(numbers::demand), "us/tr"),
        "packets/s" | "transactions/s" => ([base, new].map(numbers::count), "/s"),
        other => ([base, new].map(numbers::count), other),
    };
    let [base, new] = scaled;
    [base, format!("{new} {suffix}").trim_end().to_owned()]
}

/// A difference in percent with its sign: `+1.20 %`, `-12.3 %`.
pub(crate) fn effect(percent: f64) -> String {
    format!("{} %", signed(percent))
}

/// A percentage with its sign and without its unit.
pub(crate) fn signed(percent: f64) -> String {
    if percent == 0.0 {
        return "0".to_owned();
    }
    let digits = if percent.abs() < 9.995 { 2 } else { 1 };
    format!("{percent:+.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_scaled() {
        assert_eq!(figure(23.4e9, "bit/s"), "23.40 Gbit/s");
        assert_eq!(figure(12_300.0, "ns"), "12.3 us");
        assert_eq!(figure(-1.0, "ns"), "0 ns");
        assert_eq!(figure(101.4, "%"), "101 %");
        assert_eq!(figure(0.4123, "us/KiB"), "0.412 us/KB");
        assert_eq!(figure(25_300.0, "transactions/s"), "25.3k transactions/s");
        assert_eq!(figure(12.0, ""), "12");
    }

    #[test]
    fn effects_have_a_sign() {
        assert_eq!(effect(1.2), "+1.20 %");
        assert_eq!(effect(-12.34), "-12.3 %");
        assert_eq!(effect(9.999), "+10.0 %");
    }
}
