//! Means and confidence intervals over iterations (Student's t, two-sided).

/// Two-sided 95 % and 99 % points of Student's t for 1 to 29 degrees of freedom, from the usual tables.
const T95: [f64; 29] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
];
const T99: [f64; 29] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756,
];

/// Mean of values; 0 of none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Full width of the confidence interval of the mean, as a fraction of the mean; none for fewer than two values.
/// Values that are all the same, as -1 for what was not measured, have the width 0.
pub(crate) fn width(values: &[f64], level: u8) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
    let table = if level == 95 { &T95 } else { &T99 };
    let t = table[degrees.min(table.len()) - 1];
    let middle = mean(values);
    let variance = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / values.len() as f64;
    if variance == 0.0 {
        return Some(0.0);
    }
    Some((2.0 * t * (variance / degrees as f64).sqrt() / middle).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_formula() {
        // s = 1, n = 3: 2 x 4.303 x 1 / sqrt(3) / 10.
        let found = width(&[9.0, 10.0, 11.0], 95).unwrap();
        assert!((found - 2.0 * 4.303 / 3f64.sqrt() / 10.0).abs() < 1e-9, "{found}");
        assert_eq!(width(&[-1.0, -1.0, -1.0], 99), Some(0.0));
        assert_eq!(width(&[1.0], 99), None);
    }
}
