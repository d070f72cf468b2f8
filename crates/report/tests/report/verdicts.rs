//! Verdicts for a terminal of 80 columns.

use linerate_model::verdict::{
    Better, EffectInterval, Judged, Judgement, MoreRepeats, Verdict, VerdictRow, VerdictTable,
};
use linerate_report::verdicts_text;

pub(crate) fn judged(verdict: Verdict, base: f64, new: f64) -> Judged {
    let effect_percent = (new / base - 1.0) * 100.0;
    Judged {
        better: Better::Higher,
        base,
        new,
        base_values: 8,
        new_values: 8,
        effect_percent,
        interval: Some(EffectInterval {
            low_percent: effect_percent - 0.6,
            high_percent: effect_percent + 0.6,
        }),
        verdict,
        weaker: false,
        dependent: false,
        uneven: false,
        more_repeats: None,
    }
}

pub(crate) fn row(trial: &str, metric: &str, unit: &str, judgement: Judgement) -> VerdictRow {
    VerdictRow { trial: trial.to_owned(), metric: metric.to_owned(), unit: unit.to_owned(), judgement }
}

pub(crate) fn verdict_table() -> VerdictTable {
    let stream = "tcp-stream 64K x8 IPv4";
    let lower = |judged: Judged| Judged { better: Better::Lower, ..judged };
    let undecided = Judged {
        more_repeats: Some(MoreRepeats::Likely(12)),
        uneven: true,
        weaker: true,
        ..lower(judged(Verdict::Undecided, 0.512, 0.508))
    };
    let few = Judged {
        interval: None,
        more_repeats: Some(MoreRepeats::OutOfReach),
        ..lower(judged(Verdict::Undecided, 41_300.0, 43_900.0))
    };
    VerdictTable {
        base: "dut.tso=on".to_owned(),
        new: "dut.tso=off".to_owned(),
        confidence_percent: 95.0,
        margin_percent: 1.0,
        rows: vec![
            row(stream, "goodput", "bit/s", Judgement::Judged(judged(Verdict::Worse, 23.41e9, 21.02e9))),
            row(stream, "cpu-dut", "%", Judgement::Judged(lower(judged(Verdict::Same, 101.2, 101.3)))),
            row(stream, "service-demand-dut", "us/KiB", Judgement::Judged(undecided)),
            row("tcp-rr 1/1 x1 IPv4", "p99", "ns", Judgement::Judged(few)),
            row(
                "tcp-rr 1/1 x1 IPv4",
                "transactions",
                "transactions/s",
                Judgement::Judged(judged(Verdict::Better, 25_300.0, 27_100.0)),
            ),
            row(
                "udp-rr 1/1 x1 IPv4",
                "loss",
                "%",
                Judgement::Refused("a value is not above zero".to_owned()),
            ),
        ],
    }
}

#[test]
fn verdicts_fit_80_columns() {
    let text = verdicts_text(&verdict_table(), 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_verdict_table_round_trips() {
    let table = verdict_table();
    let json = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<VerdictTable>(&json).unwrap(), table);
}
