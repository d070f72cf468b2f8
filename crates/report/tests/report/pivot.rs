//! Experiments pivot by themselves.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::trial::SettingLevel;
use linerate_model::workload::WorkloadKind;
use linerate_report::{PivotOptions, TableOptions, pivot, pivots, varied_factors};

use crate::samples::{record, sample, with_size};

/// Two sizes by two levels of a setting, each twice.
fn square() -> Vec<Record> {
    let mut records = Vec::new();
    for block in 0..2 {
        for (combination, (size, tso)) in
            [(1024, "on"), (1024, "off"), (2048, "on"), (2048, "off")].into_iter().enumerate()
        {
            let mut made = record(records.len() as u32, &with_size(sample(WorkloadKind::TcpStream), size));
            made.trial.settings.push(SettingLevel { key: "dut.tso".to_owned(), value: tso.to_owned() });
            (made.combination, made.block) = (Some(combination as u32), Some(block));
            made.summary.goodput_bits_per_second = 1e9 * (combination + 1) as f64;
            records.push(made);
        }
    }
    records
}

fn text(records: &[Record], options: &PivotOptions) -> String {
    pivot(records, options, &TableOptions::default()).unwrap()
}

fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().find(|l| l.starts_with(start)).unwrap_or_default().split_whitespace().collect()
}

#[test]
fn two_factors_are_a_grid() {
    let records = square();
    assert_eq!(varied_factors(&records), ["size", "dut.tso"]);
    assert!(pivots(&records));
    let grid = text(&records, &PivotOptions::default());
    assert_eq!(line(&grid, "size"), ["size", "on", "off"]);
    let row = line(&grid, "1K");
    assert_eq!((row[1], row[3]), ("1.000", "2.000"), "{grid}");
    let turned =
        text(&records, &PivotOptions { rows: vec!["dut.tso".to_owned()], cols: Some("size".to_owned()) });
    assert_eq!(line(&turned, "dut.tso"), ["dut.tso", "1K", "2K"]);
}

#[test]
fn one_factor_is_a_column_of_rows() {
    let mut records = square();
    records.retain(|r| r.trial.settings[0].value == "on");
    let rows = text(&records, &PivotOptions::default());
    assert_eq!(line(&rows, "size")[0], "size");
    assert_eq!(line(&rows, "2K")[..2], ["2K", "3.000"], "{rows}");
    assert!(rows.contains("dut.tso on"), "{rows}");
}

#[test]
fn interrupted_trials_are_left_out_and_told() {
    let mut records = square();
    records[4].outcome = Outcome::Interrupted;
    records[4].summary.goodput_bits_per_second = 9e9;
    let grid = text(&records, &PivotOptions::default());
    assert_eq!(line(&grid, "1K")[1], "1.000");
    assert!(grid.contains("1 interrupted trial is left out"), "{grid}");
}

#[test]
fn a_factor_that_is_not_varied_is_refused() {
    let options = PivotOptions { rows: vec!["streams".to_owned()], cols: None };
    let error = pivot(&square(), &options, &TableOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it varies size, dut.tso"), "{error}");
}

#[test]
fn sparse_combinations_are_rows() {
    let mut records: Vec<Record> =
        (0..6).map(|n| record(n, &with_size(sample(WorkloadKind::TcpStream), 1 << (n + 7)))).collect();
    let mut many = record(6, &sample(WorkloadKind::TcpBidir));
    many.trial.streams = 2;
    records.push(many);
    let rows = text(&records, &PivotOptions::default());
    assert_eq!(line(&rows, "workload")[..3], ["workload", "size", "streams"], "{rows}");
}
