//! Experiment files: TOML to what is asked for. Every mistake is told with its line and column.

use std::ops::Range;
use std::path::Path;

use linerate_lab::plan::Repeats;
use linerate_model::NodeUrl;
use linerate_model::experiment::Experiment;
use linerate_model::factor::Level;
use linerate_model::units::parse_seconds_ns;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::asked::{Asked, DEFAULT_SETTLE_NS, NodesAsked};
use crate::failure::Failure;
use crate::{options, request};

/// Reads an experiment file.
///
/// # Errors
/// Where it can't be read, or with `FILE:LINE:COLUMN: what is wrong`.
pub(crate) fn read(path: &Path) -> Result<Asked, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
    parse(&text).map_err(|mistake| {
        let (line, column) = place(&text, mistake.at.start);
        Failure::usage(format!("{}:{line}:{column}: {}", path.display(), mistake.what))
    })
}

/// What is wrong, and where.
#[derive(Debug)]
struct Mistake {
    at: Range<usize>,
    what: String,
}

type Parsed<T> = Result<T, Mistake>;
type Entry<'t, 'a> = (&'t str, Range<usize>, &'t Spanned<DeValue<'a>>);

fn mistake<T>(at: Range<usize>, what: impl Into<String>) -> Parsed<T> {
    Err(Mistake { at, what: what.into() })
}

/// Line and column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn parse(text: &str) -> Parsed<Asked> {
    let root = DeTable::parse(text)
        .map_err(|e| Mistake { at: e.span().unwrap_or_default(), what: e.message().to_owned() })?;
    let mut file = File::default();
    // The timing and the factors before the workloads that they hold for, wherever they stand.
    for (name, at, value) in entries(root.get_ref()) {
        match name {
            "nodes" => file.nodes(table(value)?)?,
            "timing" => file.timing(table(value)?)?,
            "repeats" => file.repeats(value.span(), table(value)?)?,
            "factors" => file.factors(table(value)?)?,
            "exclude" => file.exclude(value)?,
            "seed" => file.seed = Some(whole(value)?),
            "skip-refused" => file.skip_refused = list(value)? == "true",
            "workloads" => {}
            _ => {
                return mistake(
                    at,
                    format!(
                        "there is no '{name}'; there are nodes, timing, repeats, factors, workloads, exclude, skip-refused and seed"
                    ),
                );
            }
        }
    }
    let Some(workloads) = root.get_ref().get("workloads") else {
        return mistake(0..0, "no [[workloads]]: name at least one workload");
    };
    file.workloads(workloads)?;
    file.finish()
}

#[derive(Default)]
struct File {
    nodes: NodesAsked,
    base: Experiment,
    settle_ns: Option<u64>,
    repeats: Option<Repeats>,
    /// Name, values and place of each common factor, with how often it was of use.
    factors: Vec<(String, String, Range<usize>, usize)>,
    groups: Vec<Experiment>,
    excluded: Vec<Vec<Level>>,
    skip_refused: bool,
    seed: Option<u64>,
}

impl File {
    fn nodes(&mut self, nodes: &DeTable<'_>) -> Parsed<()> {
        for (name, at, value) in entries(nodes) {
            let text = || list(value);
            let url = || text()?.parse().map_err(|e| Mistake { at: value.span(), what: format!("{e}") });
            match name {
                "dut" => self.nodes.dut = Some(url()?),
                "peer" => {
                    let all = text()?;
                    let urls = all.split(',').map(|one| one.trim().parse());
                    let urls: Result<Vec<NodeUrl>, _> = urls.collect();
                    let urls = urls.map_err(|e| Mistake { at: value.span(), what: format!("{e}") })?;
                    self.nodes.name_peers(urls);
                }
                "link" => self.nodes.link = Some(text()?),
                "peer-link" => self.nodes.peer_link = Some(text()?),
                "push" => self.nodes.push = text()? == "true",
                "remote-program" => self.nodes.remote_program = Some(text()?),
                "secret-file" => self.nodes.secret_file = Some(text()?.into()),
                "kernel" => self.nodes.kernel = Some(text()?),
                _ => {
                    let known = "dut, peer, link, peer-link, push, remote-program, secret-file and kernel";
                    return mistake(at, format!("there is no '{name}' of nodes; there are {known}"));
                }
            }
        }
        Ok(())
    }

    fn timing(&mut self, timing: &DeTable<'_>) -> Parsed<()> {
        for (name, at, value) in entries(timing) {
            let time = || {
                parse_seconds_ns(&list(value)?).map_err(|e| Mistake { at: value.span(), what: e.to_string() })
            };
            match name {
                "time" => self.base.timing.duration_ns = time()?,
                "warmup" => self.base.timing.warmup_ns = time()?,
                "interval" => self.base.timing.interval_ns = Some(time()?),
                "settle" => self.settle_ns = Some(time()?),
                _ => {
                    let known = "time, warmup, interval and settle";
                    return mistake(at, format!("there is no '{name}' of timing; there are {known}"));
                }
            }
        }
        Ok(())
    }

    fn repeats(&mut self, at: Range<usize>, repeats: &DeTable<'_>) -> Parsed<()> {
        let (mut confidence, mut width, mut min, mut max, mut fixed) = (None, None, None, None, None);
        for (name, at, value) in entries(repeats) {
            match name {
                "repeat" => fixed = Some(count(value)?),
                "min-repeat" => min = Some(count(value)?),
                "max-repeat" => max = Some(count(value)?),
                "confidence" => confidence = Some(percent(value)?),
                "width" => width = Some(percent(value)? / 100.0),
                _ => {
                    let known = "repeat, or confidence, width, min-repeat and max-repeat";
                    return mistake(at, format!("there is no '{name}' of repeats; there are {known}"));
                }
            }
        }
        let rule = confidence.is_some() || width.is_some() || min.is_some() || max.is_some();
        self.repeats = Some(match (fixed, rule) {
            (Some(_), true) => return mistake(at, "repeat is a fixed number: it goes with no stop rule"),
            (Some(fixed), false) => Repeats::Fixed(fixed),
            (None, _) => {
                let until = request::until(confidence, width, min, max);
                Repeats::Until(until.map_err(|what| Mistake { at, what })?)
            }
        });
        Ok(())
    }

    fn factors(&mut self, factors: &DeTable<'_>) -> Parsed<()> {
        for (name, at, value) in entries(factors) {
            if !name.contains('.') && !options::NAMES.contains(&name) {
                let known = options::NAMES.join(", ");
                return mistake(
                    at,
                    format!(
                        "there is no option '{name}'; there are {known}, and settings such as \"dut.tso\""
                    ),
                );
            }
            if name == "workload" {
                return mistake(at, "workloads are named under [[workloads]]");
            }
            self.factors.push((name.to_owned(), list(value)?, value.span(), 0));
        }
        Ok(())
    }

    fn exclude(&mut self, value: &Spanned<DeValue<'_>>) -> Parsed<()> {
        for excluded in tables(value)? {
            let mut levels = Vec::new();
            for (name, _, value) in entries(excluded) {
                levels.push(Level { factor: name.to_owned(), value: list(value)? });
            }
            if levels.is_empty() {
                return mistake(value.span(), "an empty exclude would exclude everything");
            }
            self.excluded.push(levels);
        }
        Ok(())
    }

    fn workloads(&mut self, value: &Spanned<DeValue<'_>>) -> Parsed<()> {
        for group in tables(value)? {
            let mut experiment = self.base.clone();
            let Some(kinds) = group.get("workload") else {
                return mistake(value.span(), "a workload needs a name: workload = \"tcp-stream\"");
            };
            set(&mut experiment, "workload", kinds)?;
            let mut named = vec!["workload"];
            for (name, at, value) in entries(group) {
                if name == "workload" {
                    continue;
                }
                if name.contains('.') {
                    add_setting(&mut experiment, name, &list(value)?, &at)?;
                } else if options::NAMES.contains(&name) {
                    set(&mut experiment, name, value)?;
                } else {
                    let known = options::NAMES.join(", ");
                    return mistake(
                        at,
                        format!(
                            "there is no option '{name}'; there are {known}, and settings such as \"dut.tso\""
                        ),
                    );
                }
                named.push(name);
            }
            self.add_factors(&mut experiment, &named)?;
            self.groups.push(experiment);
        }
        if self.groups.is_empty() {
            return mistake(value.span(), "no workload is named");
        }
        Ok(())
    }

    /// The common factors that this group's workloads have a use for, and that it does not set itself.
    fn add_factors(&mut self, experiment: &mut Experiment, named: &[&str]) -> Parsed<()> {
        for (name, text, at, uses) in &mut self.factors {
            let useful = experiment.workloads.iter().any(|kind| options::applies(*kind, name));
            if !useful || named.contains(&name.as_str()) {
                continue;
            }
            *uses += 1;
            if name.contains('.') {
                add_setting(experiment, name, text, at)?;
            } else {
                options::set(experiment, name, text)
                    .map_err(|what| Mistake { at: at.clone(), what: format!("{name}: {what}") })?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Parsed<Asked> {
        if let Some((name, _, at, _)) = self.factors.iter().find(|(.., uses)| *uses == 0) {
            return mistake(
                at.clone(),
                format!("no workload has a use for {name}, or all set it themselves"),
            );
        }
        Ok(Asked {
            nodes: self.nodes,
            usable_families: false,
            groups: self.groups,
            excluded: self.excluded,
            repeats: self.repeats.unwrap_or(Repeats::Fixed(1)),
            settle_ns: self.settle_ns.unwrap_or(DEFAULT_SETTLE_NS),
            skip_refused: self.skip_refused,
            seed: self.seed,
        })
    }
}

fn set(experiment: &mut Experiment, name: &str, value: &Spanned<DeValue<'_>>) -> Parsed<()> {
    options::set(experiment, name, &list(value)?)
        .map_err(|what| Mistake { at: value.span(), what: format!("{name}: {what}") })
}

fn add_setting(experiment: &mut Experiment, name: &str, values: &str, at: &Range<usize>) -> Parsed<()> {
    options::add_setting(experiment, &format!("{name}={values}"))
        .map_err(|what| Mistake { at: at.clone(), what })
}

fn entries<'t, 'a>(table: &'t DeTable<'a>) -> impl Iterator<Item = Entry<'t, 'a>> {
    table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
}

fn table<'t, 'a>(value: &'t Spanned<DeValue<'a>>) -> Parsed<&'t DeTable<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        other => mistake(value.span(), format!("this must be a table, not a {}", other.type_str())),
    }
}

/// An array of tables.
fn tables<'t, 'a>(value: &'t Spanned<DeValue<'a>>) -> Parsed<Vec<&'t DeTable<'a>>> {
    match value.get_ref() {
        DeValue::Array(array) => array.iter().map(table).collect(),
        _ => mistake(value.span(), "this must be a list of tables: [[...]]"),
    }
}

/// A value, or a list of values, as the command line takes it.
fn list(value: &Spanned<DeValue<'_>>) -> Parsed<String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().replace('_', "")),
        DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
        DeValue::Boolean(on) => Ok(on.to_string()),
        DeValue::Array(values) => Ok(values.iter().map(list).collect::<Parsed<Vec<_>>>()?.join(",")),
        other => mistake(
            value.span(),
            format!("this must be a text, a number or a list of them, not a {}", other.type_str()),
        ),
    }
}

fn whole(value: &Spanned<DeValue<'_>>) -> Parsed<u64> {
    let text = list(value)?;
    text.parse().or_else(|_| mistake(value.span(), format!("'{text}' is not a whole number")))
}

fn count(value: &Spanned<DeValue<'_>>) -> Parsed<u32> {
    let number = u32::try_from(whole(value)?).ok().filter(|n| (1..=10_000).contains(n));
    number.map_or_else(|| mistake(value.span(), "this must be 1 to 10000"), Ok)
}

fn percent(value: &Spanned<DeValue<'_>>) -> Parsed<f64> {
    let text = list(value)?;
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let good = number.filter(|v| v.is_finite() && *v >= 0.0);
    good.map_or_else(|| mistake(value.span(), format!("'{text}' is not a percentage, as in \"2%\"")), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: &str = r#"
seed = 7
[timing]
time = "500ms"
warmup = 0
[repeats]
confidence = 95
width = "2%"
max-repeat = 12
[factors]
"dut.tso" = ["on", "off"]
send = ["write", "zerocopy"]
[[workloads]]
workload = "tcp-stream"
streams = 8
[[workloads]]
workload = "tcp-rr"
in-flight = [1, 8]
[[exclude]]
"dut.tso" = "off"
in-flight = 8
"#;

    #[test]
    fn a_file_says_what_runs() {
        let asked = parse(SQUARE).unwrap();
        assert!(matches!(asked.repeats, Repeats::Until(until) if until.max == 12));
        assert_eq!(asked.groups[0].timing.duration_ns, 500_000_000);
        // Four of the stream; request/response has no use for send, and one of its four is excluded.
        assert_eq!(asked.check().unwrap().combinations.len(), 4 + 3);
        assert_eq!(asked.seed, Some(7));
    }

    #[test]
    fn mistakes_have_a_place() {
        let told = |text: &str| {
            let mistake = parse(text).unwrap_err();
            let (line, column) = place(text, mistake.at.start);
            (line, column, mistake.what)
        };
        let (line, column, what) = told("[timing]\ntimes = 5\n");
        assert_eq!((line, column), (2, 1), "{what}");
        let (line, column, what) = told("[[workloads]]\nworkload = \"tcp-steam\"\n");
        assert_eq!((line, column), (2, 12), "{what}");
        assert!(what.contains("tcp-stream"));
        let (line, _, what) = told("[[workloads]]\nworkload = \"tcp-stream\"\nsize = \"1Q\"\n");
        assert_eq!(line, 3, "{what}");
        let (line, _, what) = told("[factors]\nin-flight = 3\n[[workloads]]\nworkload = \"tcp-stream\"\n");
        assert_eq!(line, 2, "{what}");
        let (line, column, what) = told("[[workloads]\n");
        assert_eq!(line, 1, "{what} at {column}");
        assert!(told("[repeats]\nrepeat = 3\nwidth = 2\n").2.contains("fixed"));
        assert!(told("seed = 1\n").2.contains("[[workloads]]"));
    }
}
