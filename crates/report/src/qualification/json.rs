//! Qualifications as JSON, and back.

use linerate_model::qualification::{QUALIFICATION_SCHEMA, Qualification};
use serde::Deserialize;

/// Why a text is no qualification.
#[derive(Debug, thiserror::Error)]
pub enum ParseQualificationError {
    /// Not JSON, or not what a qualification looks like.
    #[error("read a qualification: {0}")]
    Json(#[from] serde_json::Error),
    /// A layout that this program does not know.
    #[error("read a qualification: its schema is '{0:.64}'; this program reads {QUALIFICATION_SCHEMA}")]
    Schema(String),
}

/// A qualification as pretty-printed JSON with a newline at its end. Its layout is `schema/qualification-v1.json`.
pub fn qualification_json(qualification: &Qualification) -> String {
    // Invariant: only strings as map keys and no fallible serializer, the two ways in which this can fail.
    let mut text = serde_json::to_string_pretty(qualification).expect("a qualification is always JSON");
    text.push('\n');
    text
}

/// Whether a text says of itself that it is a qualification, of any version.
pub fn is_qualification(text: &str) -> bool {
    let family = QUALIFICATION_SCHEMA.split('/').next().unwrap_or_default();
    peek(text).is_some_and(|schema| schema.split('/').next() == Some(family))
}

/// Reads what [`qualification_json`] wrote, now or in the past.
///
/// # Errors
/// Where the text is not JSON, a field is missing or of the wrong type, or it names another schema.
pub fn parse_qualification(text: &str) -> Result<Qualification, ParseQualificationError> {
    if let Some(found) = peek(text).filter(|schema| schema != QUALIFICATION_SCHEMA) {
        return Err(ParseQualificationError::Schema(found));
    }
    Ok(serde_json::from_str(text)?)
}

fn peek(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Peek {
        schema: String,
    }
    serde_json::from_str::<Peek>(text).ok().map(|peek| peek.schema)
}
