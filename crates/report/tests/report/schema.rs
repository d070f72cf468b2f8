//! `schema/record-v1.json` says what is written, and every record keeps to it.

use std::path::PathBuf;

use linerate_model::Record;
use linerate_model::workload::WorkloadKind;
use linerate_report::json;
use proptest::prelude::*;
use serde_json::Value;

use crate::random::any_record;
use crate::samples::{record, sample};

fn schema_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/record-v1.json")
}

fn schema_of_the_model() -> Value {
    let mut schema = schemars::schema_for!(Record).to_value();
    schema["title"] = "linerate record, version 1".into();
    schema["properties"]["schema"]["const"] = linerate_model::record::RECORD_SCHEMA.into();
    schema
}

fn validator() -> jsonschema::Validator {
    let text = std::fs::read_to_string(schema_path()).expect("schema/record-v1.json");
    jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a JSON schema")
}

/// `LINERATE_BLESS=1 cargo test -p linerate-report schema` writes it anew after an intended change of the model.
#[test]
fn the_file_is_what_the_model_says() {
    let made = serde_json::to_string_pretty(&schema_of_the_model()).unwrap() + "\n";
    if std::env::var_os("LINERATE_BLESS").is_some() {
        std::fs::write(schema_path(), &made).unwrap();
    }
    let kept = std::fs::read_to_string(schema_path()).unwrap_or_default();
    assert!(
        kept == made,
        "schema/record-v1.json is not that of the model: see this test for how to renew it"
    );
}

#[test]
fn every_field_is_described() {
    let schema = schema_of_the_model();
    let undescribed: Vec<String> = schema["$defs"]
        .as_object()
        .unwrap()
        .iter()
        // Their names are the kernel's, told by the type's own description.
        .filter(|(name, _)| *name != "LinkCounters")
        .flat_map(|(name, def)| {
            let fields = def["properties"].as_object().into_iter().flatten();
            fields.filter(|(_, f)| f.get("description").is_none()).map(move |(f, _)| format!("{name}.{f}"))
        })
        .filter(|field| field != "Workload.kind")
        .collect();
    assert_eq!(undescribed, Vec::<String>::new());
}

#[test]
fn records_of_every_workload_keep_to_it() {
    let validator = validator();
    for kind in WorkloadKind::ALL {
        let written: Value = serde_json::from_str(&json(&[record(0, &sample(kind))])).unwrap();
        if let Err(error) = validator.validate(&written[0]) {
            panic!("{kind}: {} at {}", error, error.instance_path());
        }
    }
}

#[test]
fn it_refuses_what_is_no_record() {
    let validator = validator();
    let mut value = serde_json::to_value(record(0, &sample(WorkloadKind::TcpRr))).unwrap();
    value["schema"] = "linerate.record/2".into();
    assert!(!validator.is_valid(&value));
    value["schema"] = linerate_model::record::RECORD_SCHEMA.into();
    assert!(validator.is_valid(&value));
    value["summary"]["goodput_bytes"] = "many".into();
    assert!(!validator.is_valid(&value));
    value.as_object_mut().unwrap().remove("summary");
    assert!(!validator.is_valid(&value));
}

#[test]
fn random_records_keep_to_it() {
    let validator = validator();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&any_record(), |record| {
            let value = serde_json::to_value(&record).unwrap();
            prop_assert!(validator.is_valid(&value), "{:?}", validator.validate(&value).err());
            Ok(())
        })
        .unwrap();
}
