//! Holm's step-down correction over a table of comparisons (Holm, "A simple sequentially rejective multiple test
//! procedure", Scandinavian Journal of Statistics 6, 1979). It holds whatever the dependence between the metrics.

/// Corrected p-values, in the order given: each may be held against the allowed error of the whole table.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (step, index) in ascending(p_values).into_iter().enumerate() {
        let remaining = (p_values.len() - step) as f64;
        largest = largest.max((p_values[index] * remaining).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

/// By how much the allowed error is divided for each comparison: by the number still open at the step that decided
/// it, or, for all that stay open, at the step where the procedure stopped.
pub fn holm_divisors(p_values: &[f64], alpha: f64) -> Vec<usize> {
    let mut divisors = vec![1; p_values.len()];
    let mut stopped_at = None;
    for (step, index) in ascending(p_values).into_iter().enumerate() {
        let remaining = p_values.len() - step;
        if stopped_at.is_none() && p_values[index] * remaining as f64 > alpha {
            stopped_at = Some(remaining);
        }
        divisors[index] = stopped_at.unwrap_or(remaining);
    }
    divisors
}

fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrects_in_steps() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-12, "{corrected:?}");
        }
    }

    #[test]
    fn one_alone_stays_and_none_gives_none() {
        assert_eq!(holm(&[0.2]), [0.2]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn divisors_follow_the_steps() {
        assert_eq!(holm_divisors(&[0.01, 0.04, 0.03, 0.005], 0.05), [3, 2, 2, 4]);
        assert_eq!(holm_divisors(&[0.5, 0.9], 0.05), [2, 2]);
    }
}
