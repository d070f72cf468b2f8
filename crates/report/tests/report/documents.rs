//! `docs/record.md` tells of every field of a record and every column of the CSV form.

use std::path::PathBuf;

use linerate_model::Record;
use linerate_report::CSV_COLUMNS;

fn document() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/record.md");
    std::fs::read_to_string(path).expect("docs/record.md")
}

#[test]
fn every_column_is_told() {
    let document = document();
    let missing: Vec<&str> =
        CSV_COLUMNS.iter().map(|c| c.name).filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_field_is_told() {
    let document = document();
    let schema = schemars::schema_for!(Record).to_value();
    let mut missing = Vec::new();
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        // Told as a whole, by the kernel's names.
        if name == "LinkCounters" {
            continue;
        }
        let fields = definition["properties"].as_object().into_iter().flatten();
        let unknown = fields.filter(|(field, _)| !document.contains(&format!("`{field}`")));
        missing.extend(unknown.map(|(field, _)| format!("{name}.{field}")));
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_word_is_told() {
    let document = document();
    let schema = schemars::schema_for!(Record).to_value();
    let mut words = Vec::new();
    for definition in schema["$defs"].as_object().expect("definitions").values() {
        let variants = definition["oneOf"].as_array().into_iter().flatten();
        words.extend(variants.filter_map(|v| v["const"].as_str()).map(str::to_owned));
    }
    assert!(words.contains(&"steal-time".to_owned()));
    // The families are told as `"4"`.
    words.retain(|word| {
        !document.contains(&format!("`{word}`")) && !document.contains(&format!("`\"{word}\"`"))
    });
    assert_eq!(words, Vec::<String>::new());
}
