//! Verdicts for a terminal, and the words that other forms share with it.

use linerate_model::verdict::{Better, Judged, Judgement, MoreRepeats, Verdict, VerdictRow, VerdictTable};

use crate::metric::{figures, signed};
use crate::text::{printable, wrap};

/// Verdicts as text for a terminal of so many columns (80 and more): what was compared, for each trial a row for each
/// metric, and what the answers come to. Ends with a newline.
pub fn verdicts_text(table: &VerdictTable, width: usize) -> String {
    let mut lines = wrap("", 2, &heading(table), width);
    let widths = Widths::of(table);
    let mut trial = None;
    for row in &table.rows {
        if trial != Some(&row.trial) {
            lines.push(String::new());
            lines.extend(wrap("", 2, &printable(&row.trial), width));
            if trial.is_none() {
                lines.push(widths.head(table));
            }
            trial = Some(&row.trial);
        }
        lines.push(widths.line(row));
        let notes = notes(row);
        if !notes.is_empty() {
            lines.extend(wrap("    ", 6, &printable(&notes.join("; ")), width));
        }
    }
    lines.push(String::new());
    lines.extend(wrap("", 2, &outcome(table), width));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// `base against new`, margin and confidence.
pub(crate) fn heading(table: &VerdictTable) -> String {
    format!(
        "{} against {} (base): margin {} %, confidence {} % over all verdicts together",
        printable(&table.new),
        printable(&table.base),
        table.margin_percent,
        table.confidence_percent,
    )
}

/// What the answers come to: `6 comparisons: 1 worse, 5 same.`, and what weakens them all.
pub(crate) fn outcome(table: &VerdictTable) -> String {
    let judged = table.judged().count();
    let counts: Vec<String> = Verdict::ALL
        .into_iter()
        .filter_map(|verdict| match table.count(verdict) {
            0 => None,
            count => Some(format!("{count} {}", verdict.name())),
        })
        .collect();
    let refused = table.rows.len() - judged;
    let mut text = format!("{judged} comparison{}", if judged == 1 { "" } else { "s" });
    if !counts.is_empty() {
        text += ": ";
        text += &counts.join(", ");
    }
    text.push('.');
    let mut sentences = vec![text];
    if refused > 0 {
        sentences.push(format!("{refused} could not be judged."));
    }
    if table.judged().any(|judged| judged.weaker) {
        let weaker = "Not interleaved: a drift between the two counts as change, so this is weaker than blocks of both.";
        sentences.push(weaker.to_owned());
    }
    sentences.join(" ")
}

/// What has to be said of a row beside its figures.
pub(crate) fn notes(row: &VerdictRow) -> Vec<String> {
    let judged = match &row.judgement {
        Judgement::Judged(judged) => judged,
        Judgement::Refused(why) => return vec![format!("not judged: {why}")],
    };
    let mut notes = Vec::new();
    match (judged.verdict, judged.more_repeats) {
        (Verdict::Undecided, Some(MoreRepeats::Likely(more))) => {
            notes.push(format!(
                "about {more} more repeat{} would settle it",
                if more == 1 { "" } else { "s" }
            ));
        }
        (Verdict::Undecided, Some(MoreRepeats::OutOfReach)) => {
            notes.push("no sensible number of repeats would settle it".to_owned());
        }
        _ => {}
    }
    if judged.dependent {
        notes.push("neighbouring trials are alike: the interval is too narrow".to_owned());
    }
    if judged.uneven {
        notes.push("one side scatters far more than the other: false alarms are likelier".to_owned());
    }
    notes
}

/// `low..high`, percent; empty with too few values for an interval.
pub(crate) fn interval_text(judged: &Judged) -> String {
    let ends = |i: linerate_model::verdict::EffectInterval| {
        format!("{}..{}", signed(i.low_percent), signed(i.high_percent))
    };
    judged.interval.map(ends).unwrap_or_default()
}

/// `higher is better` or `lower is better`.
pub(crate) fn better_text(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    }
}

/// The cells of a row: base, new, change, interval, verdict.
fn cells(row: &VerdictRow) -> [String; 5] {
    match &row.judgement {
        Judgement::Judged(judged) => {
            let [base, new] = figures(judged.base, judged.new, &row.unit);
            let effect = signed(judged.effect_percent);
            [base, new, effect, interval_text(judged), judged.verdict.name().to_owned()]
        }
        Judgement::Refused(_) => [const { String::new() }; 5].map(|_| "-".to_owned()),
    }
}

struct Widths {
    metric: usize,
    cells: [usize; 5],
}

const HEADS: [&str; 5] = ["base", "new", "% diff", "interval", "verdict"];

impl Widths {
    fn of(table: &VerdictTable) -> Self {
        let mut widths = Self { metric: "metric".len(), cells: HEADS.map(str::len) };
        widths.cells[3] = widths.cells[3].max(interval_head(table).len());
        for row in &table.rows {
            widths.metric = widths.metric.max(printable(&row.metric).chars().count());
            for (width, cell) in widths.cells.iter_mut().zip(cells(row)) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    fn head(&self, table: &VerdictTable) -> String {
        let mut heads = HEADS.map(str::to_owned);
        heads[3] = interval_head(table);
        self.join("metric", &heads)
    }

    fn line(&self, row: &VerdictRow) -> String {
        self.join(&printable(&row.metric), &cells(row))
    }

    fn join(&self, metric: &str, cells: &[String; 5]) -> String {
        let mut parts = vec![format!("  {metric:<width$}", width = self.metric)];
        let figures = cells[..4].iter().zip(self.cells);
        parts.extend(figures.map(|(cell, width)| format!("{cell:>width$}")));
        parts.push(cells[4].clone());
        parts.join("  ").trim_end().to_owned()
    }
}

fn interval_head(table: &VerdictTable) -> String {
    format!("{} % interval", table.confidence_percent)
}
