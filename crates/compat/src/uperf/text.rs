//! Sizes, rates and times as uperf writes them.

/// Bytes of base 1024: `5.00GB`, `8.00KB`, `12.00B`; nothing is `0`.
pub(crate) fn size(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KB", "MB", "GB", "TB", "PB", "EB"])
}

/// Bits a second of base 1000: `13.41Gb/s`.
pub(crate) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 1000.0, &["b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s"])
}

/// Nanoseconds: `3.64us`, `0.00ns`.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = scale(ns, 1000.0, &["ns", "us", "ms", "s"]);
    format!("{value:.2}{unit}")
}

fn scaled(value: f64, base: f64, units: &[&'static str]) -> String {
    if value <= 0.0 {
        return "0".into();
    }
    let (value, unit) = scale(value, base, units);
    format!("{value:.2}{unit}")
}

fn scale(mut value: f64, base: f64, units: &[&'static str]) -> (f64, &'static str) {
    let mut at = 0;
    while value >= base && at + 1 < units.len() {
        value /= base;
        at += 1;
    }
    (value, units[at])
}

/// The text right in a column, cut to one less than its width as uperf does.
pub(crate) fn column(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width - 1).collect();
    format!("{cut:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_in_the_captures() {
        assert_eq!(size(5_366_169_600.0), "5.00GB");
        assert_eq!(size(51200.0), "50.00KB");
        assert_eq!(size(0.0), "0");
        assert_eq!(rate(13.41e9), "13.41Gb/s");
        assert_eq!(time(36480.0), "36.48us");
        assert_eq!(time(0.0), "0.00ns");
        assert_eq!(time(5.31e9), "5.31s");
        assert_eq!(column("351.56KB", 8), " 351.56K");
        assert_eq!(column("5.00GB", 8), "  5.00GB");
    }
}
