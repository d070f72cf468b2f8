//! Records as JSON, and back.

use linerate_model::Record;
use linerate_model::record::RECORD_SCHEMA;
use serde::Deserialize;

/// Why a text is not a list of records.
#[derive(Debug, thiserror::Error)]
pub enum ParseRecordsError {
    /// Not JSON, or not what a record looks like.
    #[error("read records: {0}")]
    Json(#[from] serde_json::Error),
    /// A record of a layout that this program does not know.
    #[error("read records: record {index} has schema '{found}'; this program reads {RECORD_SCHEMA}")]
    Schema {
        /// Its place in the list, from 0.
        index: usize,
        /// What it says of itself.
        found: String,
    },
}

/// Records as a pretty-printed JSON array with a newline at its end. Its layout is `schema/record-v1.json`.
pub fn json(records: &[Record]) -> String {
    // Invariant: records hold only strings as map keys and no fallible serializer, the two ways in which this can fail.
    let mut text = serde_json::to_string_pretty(records).expect("a record is always JSON");
    text.push('\n');
    text
}

/// Reads what [`json`] wrote, now or in the past, or records one after the other (a line each, as stand-ins write them).
///
/// # Errors
/// Where the text is not JSON, a field is missing or of the wrong type, or a record names another schema.
pub fn parse_json(text: &str) -> Result<Vec<Record>, ParseRecordsError> {
    let result: Result<Vec<Record>, _> = if text.trim_start().starts_with('{') {
        serde_json::Deserializer::from_str(text).into_iter().collect()
    } else {
        serde_json::from_str(text)
    };
    let schemas: Vec<String> = match &result {
        Ok(records) => records.iter().map(|r| r.schema.clone()).collect(),
        // A record of another layout fails on some field; its schema is the better reason, where it can be read.
        Err(_) => peek_schemas(text),
    };
    if let Some((index, found)) = schemas.into_iter().enumerate().find(|(_, s)| s != RECORD_SCHEMA) {
        return Err(ParseRecordsError::Schema { index, found });
    }
    Ok(result?)
}

fn peek_schemas(text: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Peek {
        schema: String,
    }
    let list = serde_json::from_str::<Vec<Peek>>(text);
    let list = list.or_else(|_| serde_json::Deserializer::from_str(text).into_iter().collect());
    list.unwrap_or_default().into_iter().map(|peek| peek.schema).collect()
}
