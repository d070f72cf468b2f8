//! Verdicts as a table that reports show.

use linerate_model::factor::{Level, is_plain};
use linerate_model::verdict::{
    Better, EffectInterval, Judged, Judgement, MoreRepeats, Verdict, VerdictRow, VerdictTable,
};

use crate::stats::compare::{Compared, Direction, PercentRange};
use crate::stats::error::StatsError;
use crate::stats::{self, Rule};
use crate::verdicts::{self, Match, Row};

/// What is compared, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// A run's id or tag, a file, or a level of a factor.
    pub base: String,
    /// The same for the new one.
    pub new: String,
}

/// Judges all figures of all matches together, or those that `metrics` choose.
///
/// # Errors
/// For a margin outside 0 to below 1.
pub fn verdict_table(
    matches: &[Match<'_>],
    names: &Names,
    rule: &Rule,
    metrics: &[String],
) -> Result<VerdictTable, StatsError> {
    let rows = verdicts::judge(matches, rule, metrics)?;
    Ok(VerdictTable {
        base: names.base.clone(),
        new: names.new.clone(),
        // Two decimals: what is left of 95 % after several looks has many.
        confidence_percent: (rule.confidence.share() * 1e4).round() / 100.0,
        margin_percent: rule.margin * 100.0,
        rows: rows.into_iter().map(|row| verdict_row(row, matches)).collect(),
    })
}

fn verdict_row(row: Row, matches: &[Match<'_>]) -> VerdictRow {
    let matched = &matches[row.of];
    let judgement = match row.answer {
        Ok(compared) => Judgement::Judged(judged(&compared, row.figure.direction, matched)),
        Err(error) => Judgement::Refused(error.to_string()),
    };
    VerdictRow {
        trial: trial_words(&matched.levels),
        metric: row.figure.name.to_owned(),
        unit: row.figure.unit.to_owned(),
        judgement,
    }
}

/// `tcp-stream IPv4, size 128K, streams 8`: what is at its default goes without saying.
pub fn trial_words(levels: &[Level]) -> String {
    let mut words = String::new();
    for level in levels {
        let (factor, value) = (level.factor.as_str(), level.value.as_str());
        let silent = is_plain(factor, value);
        match factor {
            "workload" => words += value,
            "family" => words.extend([" IPv", value]),
            _ if silent => {}
            _ if value == "true" => words.extend([", ", factor]),
            _ if factor.contains('.') => words.extend([", ", factor, "=", value]),
            _ => words.extend([", ", factor, " ", value]),
        }
    }
    words
}

fn judged(compared: &Compared, direction: Direction, matched: &Match<'_>) -> Judged {
    Judged {
        better: match direction {
            Direction::HigherIsBetter => Better::Higher,
            Direction::LowerIsBetter => Better::Lower,
        },
        base: compared.base,
        new: compared.new,
        base_values: matched.base.len() as u64,
        new_values: matched.new.len() as u64,
        effect_percent: compared.effect_percent,
        interval: compared.interval.map(interval),
        verdict: match compared.verdict {
            stats::Verdict::Better => Verdict::Better,
            stats::Verdict::Worse => Verdict::Worse,
            stats::Verdict::Same => Verdict::Same,
            stats::Verdict::Undecided => Verdict::Undecided,
        },
        weaker: compared.weaker,
        dependent: compared.dependent,
        uneven: compared.uneven,
        more_repeats: compared.more_repeats.map(|more| match more {
            stats::MoreRepeats::Likely(count) => MoreRepeats::Likely(count as u64),
            stats::MoreRepeats::OutOfReach => MoreRepeats::OutOfReach,
        }),
    }
}

fn interval(range: PercentRange) -> EffectInterval {
    EffectInterval { low_percent: range.low, high_percent: range.high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_told_without_their_defaults() {
        let level = |factor: &str, value: &str| Level { factor: factor.to_owned(), value: value.to_owned() };
        let levels = [
            level("workload", "tcp-stream"),
            level("family", "4"),
            level("size", "64K"),
            level("send", "write"),
            level("rate", "default"),
            level("nodelay", "true"),
            level("dut.tso", "off"),
        ];
        assert_eq!(trial_words(&levels), "tcp-stream IPv4, size 64K, nodelay, dut.tso=off");
    }
}
