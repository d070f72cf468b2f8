//! The environment of every node, fact by fact, and what differs.

use std::collections::BTreeSet;

use linerate_model::Record;
use linerate_model::environment::Environment;
use linerate_model::record::NodeRecord;
use serde_json::Value;

use super::Run;
use crate::numbers;

/// Names with values.
type Facts = Vec<(String, String)>;

/// A node of a record; none where it took no part.
type End = Box<dyn Fn(&Record) -> Option<&NodeRecord>>;

/// The environment as a table: a row for each fact, a column for each node of each run.
pub(super) struct EnvironmentTable {
    /// Heads of the columns.
    pub(super) nodes: Vec<String>,
    /// The facts.
    pub(super) facts: Vec<Fact>,
}

/// A fact about all nodes.
pub(super) struct Fact {
    /// Its name.
    pub(super) name: String,
    /// What it is on each node; several values where it changed between trials.
    pub(super) values: Vec<String>,
    /// The nodes do not agree, or it changed between trials.
    pub(super) differs: bool,
    /// It says something about results; names and addresses differ between any two nodes.
    pub(super) tells: bool,
}

impl EnvironmentTable {
    /// The environments of all nodes of these runs.
    pub(super) fn of(runs: &[Run<'_>]) -> Self {
        let mut nodes = Vec::new();
        let mut columns: Vec<Vec<Facts>> = Vec::new();
        for run in runs.iter().filter(|r| !r.records.is_empty()) {
            for (side, node) in ends(run.records) {
                let run_name = if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() };
                let Some(first) = run.records.iter().find_map(&node) else { continue };
                nodes.push(format!("{run_name}{side} ({})", first.node));
                let mut distinct: Vec<(&Environment, Facts)> = Vec::new();
                for record in run.records {
                    let Some(node) = node(record) else { continue };
                    let known = (&node.environment, settings(side, record));
                    if !distinct.contains(&known) {
                        distinct.push(known);
                    }
                }
                let of =
                    |(environment, settings): (&Environment, Facts)| [settings, facts(environment)].concat();
                columns.push(distinct.into_iter().map(of).collect());
            }
        }
        let mut names: Vec<String> = Vec::new();
        for (name, _) in columns.iter().flatten().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let facts = names.into_iter().map(|name| {
            let values: Vec<String> = columns.iter().map(|column| value(column, &name)).collect();
            let differs =
                values.windows(2).any(|w| w[0] != w[1]) || columns.iter().any(|c| changes(c, &name));
            let tells = !OWN.iter().any(|own| name == *own || name.starts_with(&format!("{own} ")));
            Fact { name, values, differs, tells }
        });
        Self { nodes, facts: facts.collect() }
    }
}

/// The dut, and the peer or each of several.
fn ends(records: &[Record]) -> Vec<(&'static str, End)> {
    let most = records.iter().map(|r| r.peers.len()).max().unwrap_or_default();
    let peer = |at: usize| -> End {
        Box::new(
            move |r: &Record| if at == 0 && r.peers.is_empty() { Some(&r.peer) } else { r.peers.get(at) },
        )
    };
    let dut: End = Box::new(|r: &Record| Some(&r.dut));
    std::iter::once(("dut", dut)).chain((0..most.max(1)).map(|at| ("peer", peer(at)))).collect()
}

impl EnvironmentTable {
    /// Whether any difference says something.
    pub(super) fn has_differences(&self) -> bool {
        self.facts.iter().any(|f| f.differs && f.tells)
    }

    /// Those that belong in a short list.
    pub(super) fn main_facts(&self) -> impl Iterator<Item = &Fact> {
        MAIN.iter().filter_map(|name| self.facts.iter().find(|f| f.name == *name))
    }
}

/// The facts of a short list.
const MAIN: [&str; 22] = [
    "host",
    "kernel",
    "architecture",
    "cpu model",
    "cpus online",
    "numa nodes",
    "memory bytes",
    "hypervisor",
    "governor",
    "link name",
    "link kind",
    "link driver",
    "link driver version",
    "link firmware",
    "link bus",
    "link speed mbit",
    "link mtu",
    "link qdisc",
    "link tx queues",
    "link rx queues",
    "link features tx-tcp-segmentation",
    "link features rx-gro",
];

/// Facts that no two nodes or boots share, so that a difference says nothing.
const OWN: [&str; 8] =
    ["boot id", "link name", "link index", "link mac", "link addresses", "link bus", "link irqs", "host"];

fn values<'a>(column: &'a [Facts], name: &str) -> BTreeSet<&'a str> {
    let of = |facts: &'a Facts| {
        facts.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    };
    column.iter().map(of).collect()
}

fn value(column: &[Facts], name: &str) -> String {
    let distinct: Vec<&str> =
        values(column, name).into_iter().map(|v| if v.is_empty() { "-" } else { v }).collect();
    distinct.join(" | ")
}

fn changes(column: &[Facts], name: &str) -> bool {
    values(column, name).len() > 1
}

/// What was set on a node for a trial. Its environment is that from before, so both are told.
fn settings(side: &str, record: &Record) -> Facts {
    let of_side = |key: &str| {
        let (node, name) = key.split_once('.')?;
        (node == side || node == "both").then(|| format!("set for the trial: {name}"))
    };
    record.trial.settings.iter().filter_map(|s| Some((of_side(&s.key)?, s.value.clone()))).collect()
}

/// Name and value of all that is known. Made from the serialized form, so that no field is forgotten.
fn facts(environment: &Environment) -> Facts {
    let mut facts = Vec::new();
    if let Ok(value) = serde_json::to_value(environment) {
        collect("", &value, &mut facts);
    }
    facts
}

fn collect(path: &str, value: &Value, facts: &mut Facts) {
    match value {
        Value::Null => {}
        Value::Object(fields) => match feature(value) {
            Some(state) => facts.push((path.to_owned(), state)),
            None => {
                for (field, inner) in fields {
                    let field = if path.is_empty() || path == "link" {
                        field.replace('_', " ")
                    } else {
                        field.clone()
                    };
                    collect(format!("{path} {field}").trim_start(), inner, facts);
                }
            }
        },
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(text).collect();
            facts.push((path.to_owned(), texts.join(", ")));
        }
        other => facts.push((path.to_owned(), with_unit(path, text(other)))),
    }
}

/// Bytes as people read them.
fn with_unit(name: &str, value: String) -> String {
    match value.parse() {
        Ok(count) if name.ends_with(" bytes") => format!("{value} ({})", numbers::bytes(count)),
        _ => value,
    }
}

/// `on`, `off`, and whether it can be changed, for a link's feature.
fn feature(value: &Value) -> Option<String> {
    let fields = value.as_object().filter(|f| f.len() == 2)?;
    let (on, changeable) = (fields.get("on")?.as_bool()?, fields.get("changeable")?.as_bool()?);
    let state = if on { "on" } else { "off" };
    Some(if changeable { state.to_owned() } else { format!("{state} (fixed)") })
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Object(fields) => {
            let parts: Vec<String> = fields.iter().map(|(name, v)| format!("{name} {}", text(v))).collect();
            parts.join(" ")
        }
        other => other.to_string(),
    }
}
