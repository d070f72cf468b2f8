//! JSON whose keys keep their order, written with tabs as iperf3 writes it.

use std::fmt::Write as _;

use serde_json::Value;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Object(Vec<(&'static str, Self)>),
    Array(Vec<Self>),
    Text(String),
    Int(i128),
    Float(f64),
    Bool(bool),
    Raw(Value),
}

impl Json {
    pub(super) fn object(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Object(fields.into_iter().collect())
    }

    /// On one line.
    pub(super) fn compact(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, None);
        text
    }

    /// Over many lines, indented with tabs.
    pub(super) fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, Some(0));
        text
    }

    fn write(&self, text: &mut String, depth: Option<usize>) {
        match self {
            Self::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| (Some(*key), value));
                write_group(text, depth, ('{', '}'), entries);
            }
            Self::Array(values) => write_array(text, depth, values),
            Self::Text(value) => text.push_str(&Value::from(value.as_str()).to_string()),
            Self::Int(value) => put(text, format_args!("{value}")),
            Self::Float(value) if value.is_finite() => put(text, format_args!("{value}")),
            Self::Float(_) => text.push_str("null"),
            Self::Bool(value) => put(text, format_args!("{value}")),
            Self::Raw(value) => put(text, format_args!("{value}")),
        }
    }
}

fn put(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _written = text.write_fmt(content);
}

fn indent(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n('\t', depth));
}

fn write_group<'a>(
    text: &mut String,
    depth: Option<usize>,
    (open, close): (char, char),
    entries: impl Iterator<Item = (Option<&'static str>, &'a Json)>,
) {
    text.push(open);
    let inner = depth.map(|d| d + 1);
    let mut any = false;
    for (key, value) in entries {
        if any {
            text.push(',');
        }
        any = true;
        if let Some(depth) = inner {
            indent(text, depth);
        }
        if let Some(key) = key {
            put(text, format_args!("\"{key}\":{}", if inner.is_some() { "\t" } else { "" }));
        }
        value.write(text, inner);
    }
    if let Some(depth) = depth
        && any
    {
        indent(text, depth);
    }
    text.push(close);
}

/// Items stay on the line of the bracket; objects in it are indented one step more.
fn write_array(text: &mut String, depth: Option<usize>, values: &[Json]) {
    text.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push_str(if depth.is_some() { ", " } else { "," });
        }
        value.write(text, depth.map(|d| d + 1));
    }
    text.push(']');
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::Raw(value.clone())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

macro_rules! from_integer {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Json {
            fn from(value: $kind) -> Self {
                Self::Int(i128::from(value))
            }
        })*
    };
}

from_integer!(i32, i64, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Json {
        let inner = Json::object([("b", 1.into()), ("a", Json::from(1.5))]);
        Json::object([
            ("z", Json::Array(vec![inner.clone(), inner])),
            ("t", "x\"\ty".into()),
            ("e", Json::Array(vec![])),
            ("o", Json::object([])),
            ("i", Json::from(2.0)),
            ("big", u64::MAX.into()),
        ])
    }

    #[test]
    fn the_layout_is_iperf3s() {
        let expected = "{\n\t\"z\":\t[{\n\t\t\t\"b\":\t1,\n\t\t\t\"a\":\t1.5\n\t\t}, {\n\t\t\t\"b\":\t1,\n\t\t\t\"a\":\t1.5\n\t\t}],\n\t\"t\":\t\"x\\\"\\ty\",\n\t\"e\":\t[],\n\t\"o\":\t{},\n\t\"i\":\t2,\n\t\"big\":\t18446744073709551615\n}";
        assert_eq!(sample().pretty(), expected);
    }

    #[test]
    fn both_forms_are_json() {
        let pretty: Value = serde_json::from_str(&sample().pretty()).unwrap();
        let compact: Value = serde_json::from_str(&sample().compact()).unwrap();
        assert_eq!(pretty, compact);
        assert!(!sample().compact().contains('\n'));
    }
}
