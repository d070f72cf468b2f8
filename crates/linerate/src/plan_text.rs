//! What would run, in which order and for how long.

use linerate_lab::plan::{Plan, Repeats, trial_ns};
use linerate_report::{numbers, trial_text};

/// Combinations shown in the order of a block, at most.
const SHOWN: usize = 200;

/// A plan in lines.
pub(crate) fn text(plan: &Plan) -> String {
    let count = plan.combinations.len();
    let mut lines =
        vec![format!("{} in randomised blocks, seed {}", counted(count, "combination"), plan.seed)];
    lines.push(match plan.repeats {
        Repeats::Fixed(blocks) => counted(blocks as usize, "block"),
        Repeats::Until(until) => format!(
            "until known within {} % with {} % confidence, {} to {} blocks",
            until.width * 100.0,
            until.confidence_percent,
            plan.fewest_blocks(),
            until.max
        ),
        Repeats::Decide(decide) => format!(
            "until every metric is decided with {} % confidence against a margin of {} %, at most {}",
            decide.confidence_percent,
            decide.margin * 100.0,
            numbers::time(decide.budget_ns)
        ),
    });
    lines.push(match (plan.block_ns(), plan.most_blocks()) {
        (Some(block_ns), Some(most)) => {
            let fewest = plan.fewest_blocks();
            let all = |blocks: u32| duration(block_ns.saturating_mul(u64::from(blocks)));
            let span = if fewest == most { all(most) } else { format!("{} to {}", all(fewest), all(most)) };
            format!("{} a block, {span} in all", duration(block_ns))
        }
        (Some(block_ns), None) => format!("{} a block", duration(block_ns)),
        (None, _) => "counts end the trials: how long it takes is not known".to_owned(),
    });
    lines.push(String::new());
    lines.push("first block:".to_owned());
    for (place, combination) in plan.order(0).into_iter().take(SHOWN).enumerate() {
        let trial = &plan.combinations[combination];
        let time = trial_ns(trial).map(|ns| format!("  {}", duration(ns))).unwrap_or_default();
        lines.push(format!("{:>5}  {}{time}", place + 1, trial_text(trial)));
    }
    if count > SHOWN {
        lines.push(format!("       and {} more", count - SHOWN));
    }
    lines.join("\n") + "\n"
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// `2 h 3 min`, `4 min 10 s`, `5.7 s`.
fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.1} s", ns as f64 / 1e9),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_say_them() {
        assert_eq!(duration(5_650_000_000), "5.7 s");
        assert_eq!(duration(250_000_000_000), "4 min 10 s");
        assert_eq!(duration(7_380_000_000_000), "2 h 3 min");
    }
}
