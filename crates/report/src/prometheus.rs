//! Counts in the Prometheus text format, version 0.0.4.

use std::fmt::Write as _;

/// What a family of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Samples of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricFamily {
    /// Name, with its unit where it has one; counters end in `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// Labels with their values, and the count.
    pub samples: Vec<(Vec<(&'static str, String)>, u64)>,
}

/// The text that a scrape gets.
pub fn prometheus(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families {
        let kind = match family.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // A String takes everything that is written.
        let _ = writeln!(
            text,
            "# HELP {} {}",
            family.name,
            family.help.replace('\\', r"\\").replace('\n', r"\n")
        );
        let _ = writeln!(text, "# TYPE {} {kind}", family.name);
        for (labels, value) in &family.samples {
            let _ = writeln!(text, "{}{} {value}", family.name, label_text(labels));
        }
    }
    text
}

fn label_text(labels: &[(&'static str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escape = |value: &str| value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_the_format_has_it() {
        let family = MetricFamily {
            name: "linerate_clients_total",
            help: "Clients.",
            kind: MetricKind::Counter,
            samples: vec![(vec![("protocol", "a\"b\\".to_owned())], 3), (Vec::new(), 4)],
        };
        let text = "# HELP linerate_clients_total Clients.\n# TYPE linerate_clients_total counter\n\
                    linerate_clients_total{protocol=\"a\\\"b\\\\\"} 3\nlinerate_clients_total 4\n";
        assert_eq!(prometheus(&[family]), text);
    }
}
