//! Reading JSON of every iperf3 version: numbers of any notation, keys of a wrong type as if absent.

use serde_json::Value;

/// A number as a signed integer. Versions 3.12 and 3.13 write -1 as 18446744073709551615.
pub(crate) fn integer(object: &Value, key: &str) -> Option<i64> {
    let value = object.get(key)?;
    value
        .as_i64()
        .or_else(|| value.as_u64().map(|u| u as i64))
        .or_else(|| value.as_f64().map(|f| if f >= 1.8e19 { -1 } else { f as i64 }))
}

/// A number that is not negative; a negative one counts as absent.
pub(crate) fn unsigned(object: &Value, key: &str) -> Option<u64> {
    let value = object.get(key)?;
    value.as_u64().or_else(|| integer(object, key).and_then(|i| u64::try_from(i).ok()))
}

/// A finite number.
pub(crate) fn float(object: &Value, key: &str) -> Option<f64> {
    object.get(key)?.as_f64().filter(|f| f.is_finite())
}

/// A string.
pub(crate) fn text(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

/// Whether a flag is set: true, or a number other than 0.
pub(crate) fn flag(object: &Value, key: &str) -> bool {
    match object.get(key) {
        Some(Value::Bool(on)) => *on,
        Some(Value::Number(_)) => integer(object, key) != Some(0),
        _ => false,
    }
}
