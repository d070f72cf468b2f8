//! JSON out and back in, and old records for ever.

use std::path::PathBuf;

use linerate_model::workload::WorkloadKind;
use linerate_report::{ParseRecordsError, json, parse_json};
use proptest::prelude::*;

use crate::random::any_record;
use crate::samples::{record, sample};

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The fixtures are records as they were written at some time; they are never written anew. A new field in the model
/// needs a default, so that these still parse.
#[test]
fn old_records_stay_readable() {
    let mut files = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let records = parse_json(&std::fs::read_to_string(&path).unwrap());
        let records = records.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!records.is_empty(), "{}", path.display());
        files += 1;
    }
    assert!(files > 0);
}

#[test]
fn the_first_fixture_has_every_workload() {
    let text = std::fs::read_to_string(fixtures().join("records-2026-12.json")).unwrap();
    let kinds: Vec<WorkloadKind> =
        parse_json(&text).unwrap().iter().map(|r| r.trial.workload.kind()).collect();
    assert_eq!(kinds, WorkloadKind::ALL);
}

#[test]
fn one_record_is_a_list_of_one() {
    let r = record(3, &sample(WorkloadKind::UdpRr));
    assert_eq!(parse_json(&serde_json::to_string(&r).unwrap()).unwrap(), [r]);
    assert_eq!(json(&[]), "[]\n");
    assert_eq!(parse_json("[]").unwrap(), []);
}

#[test]
fn other_layouts_are_named() {
    let newer = r#"[{"schema": "linerate.record/2", "all": "new"}]"#;
    let error = parse_json(newer).unwrap_err();
    assert!(matches!(&error, ParseRecordsError::Schema { index: 0, found } if found == "linerate.record/2"));
    assert_eq!(
        error.to_string(),
        "read records: record 0 has schema 'linerate.record/2'; this program reads linerate.record/1"
    );
    let text = json(&[record(0, &sample(WorkloadKind::TcpRr))]).replace("linerate.record/1", "else");
    assert!(matches!(parse_json(&text), Err(ParseRecordsError::Schema { .. })));
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "[1]", "null", "{\"schema\": \"linerate.record/1\"}", &"[".repeat(100_000)] {
        assert!(matches!(parse_json(text), Err(ParseRecordsError::Json(_))), "{text:.20}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_comes_back_to_the_last_bit(records in prop::collection::vec(any_record(), 0..3)) {
        prop_assert_eq!(parse_json(&json(&records)).unwrap(), records);
    }

    #[test]
    fn strangers_text_does_no_harm(text in "\\PC*") {
        let _ = parse_json(&text);
    }
}
