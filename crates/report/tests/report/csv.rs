//! CSV: names, shape and precision.

use std::collections::HashMap;

use linerate_model::Record;
use linerate_model::workload::WorkloadKind;
use linerate_report::{CSV_COLUMNS, csv};
use proptest::prelude::*;

use crate::random::any_record;
use crate::samples::{record, sample};

fn rows(records: &[Record]) -> Vec<HashMap<String, String>> {
    let text = csv(records);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// Names are an interface: they may only be added to.
#[test]
fn names_are_kept() {
    let names: Vec<&str> = CSV_COLUMNS.iter().map(|c| c.name).collect();
    insta::assert_snapshot!(names.join("\n"));
}

#[test]
fn a_row_a_trial() {
    let records: Vec<Record> =
        WorkloadKind::ALL.into_iter().zip(0..).map(|(kind, n)| record(n, &sample(kind))).collect();
    let rows = rows(&records);
    assert_eq!(rows.len(), 7);
    for (row, r) in rows.iter().zip(&records) {
        assert_eq!(row["workload"], r.trial.workload.kind().name());
        assert_eq!(row["goodput_bits_per_second"].parse(), Ok(r.summary.goodput_bits_per_second));
        assert_eq!(row["cpu_shared_percent"], "");
        assert_eq!(row["transactions"].is_empty(), r.summary.transactions.is_none());
    }
    assert_eq!(rows[0]["window_dut_seconds"], "10.000300000");
    assert_eq!(rows[0]["asked_duration_seconds"], "10.000000000");
    assert_eq!(rows[0]["size_bytes"], "131072");
    assert_eq!((rows[3]["request_bytes"].as_str(), rows[3]["nodelay"].as_str()), ("1", "true"));
    assert_eq!((rows[5]["nodelay"].as_str(), rows[5]["dropped_receiver_socket"].as_str()), ("", "0"));
}

#[test]
fn names_with_commas_and_quotes_come_back() {
    let mut r = record(0, &sample(WorkloadKind::TcpStream));
    r.dut.node = "ssh:a,\"b\"".parse().unwrap();
    assert_eq!(rows(&[r])[0]["dut"], "ssh:a,\"b\"");
}

/// Service demand in the CSV is busy seconds over KiB or transactions of the same row, worked out here anew.
fn demand_from_the_row(row: &HashMap<String, String>, end: &str) -> Option<(f64, f64)> {
    let number = |name: &str| row[name].parse::<f64>().ok();
    let busy_us = number(&format!("busy_{end}_seconds"))? * 1e6;
    if let Some(transactions) = number("transactions") {
        let told = number(&format!("demand_{end}_us_per_transaction"))?;
        return Some((told, busy_us / transactions));
    }
    Some((number(&format!("demand_{end}_us_per_kib"))?, busy_us / (number("goodput_bytes")? / 1024.0)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn figures_have_all_their_digits(r in any_record()) {
        let rows = rows(std::slice::from_ref(&r));
        let row = &rows[0];
        let exact = |name: &str| row[name].parse::<f64>().ok();
        prop_assert_eq!(exact("packets_per_second"), r.summary.packets_per_second);
        prop_assert_eq!(exact("lost_percent"), r.summary.loss.as_ref().map(|l| l.lost_percent));
        prop_assert_eq!(exact("latency_mean_ns"), r.summary.latency.as_ref().map(|l| l.mean_ns));
        for end in ["shared", "dut", "peer"] {
            if let Some((told, ours)) = demand_from_the_row(row, end) {
                prop_assert!((told - ours).abs() <= ours.abs() * 1e-12, "{end}: {told} {ours}");
            }
        }
    }
}
