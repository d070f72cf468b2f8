//! Quantiles of the normal and of Student's t distribution (crate statrs).

use statrs::distribution::{Continuous as _, ContinuousCDF as _, Normal, StudentsT};

/// Standard normal quantile; `probability` is clamped to what a double can tell from 0 and 1.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(inside(probability))
}

/// Standard normal distribution function.
pub(super) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Quantile of Student's t with `freedom` degrees of freedom (at least 1).
pub(super) fn t_quantile(probability: f64, freedom: usize) -> f64 {
    let distribution =
        StudentsT::new(0.0, 1.0, freedom.max(1) as f64).expect("scale 1 and freedom of at least 1 are valid");
    let guess = distribution.inverse_cdf(inside(probability));
    // One Newton step: the library's search stops at an absolute error that shows in the printed digits.
    let density = distribution.pdf(guess);
    let better = guess - (distribution.cdf(guess) - inside(probability)) / density;
    if better.is_finite() { better } else { guess }
}

fn inside(probability: f64) -> f64 {
    probability.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed tables: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.1 and 1.3.6.7.2.
    #[test]
    fn agrees_with_printed_tables() {
        for (freedom, table) in [(1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (29, 2.045)] {
            let t = t_quantile(0.975, freedom);
            assert!((t - table).abs() < 6e-4, "{freedom}: {t}");
        }
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-6);
        assert!((normal_cdf(1.96) - 0.975_002).abs() < 1e-6);
    }

    #[test]
    fn stays_finite_at_the_ends() {
        assert!(normal_quantile(0.0).is_finite() && normal_quantile(1.0).is_finite());
    }
}
