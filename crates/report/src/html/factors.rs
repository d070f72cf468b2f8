//! What varies among trials: factors with their levels, and which of them a plot's axis, series and panels show.

use linerate_model::Record;
use linerate_model::Trial;
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::Workload;

use crate::trial_text::{FACTORS, default_word, family_text};

/// A trial of one of the runs.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    /// The run's place.
    pub(super) run: usize,
    /// The run's name.
    pub(super) run_name: &'a str,
    /// The trial.
    pub(super) record: &'a Record,
}

/// Something that varies.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Varied {
    /// Its word.
    pub(super) name: &'static str,
    /// Its levels: by rising number where they are numbers, else as first met.
    pub(super) levels: Vec<Level>,
}

/// A value of a factor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    /// As people write it.
    pub(super) text: String,
    /// As a number, where it is one.
    pub(super) number: Option<f64>,
}

/// The name of the factor that tells runs apart.
pub(super) const RUN: &str = "run";

impl Varied {
    /// At least three levels that are numbers: they can be an axis.
    pub(super) fn is_scale(&self) -> bool {
        self.levels.len() >= 3 && self.levels.iter().all(|l| l.number.is_some())
    }

    /// Levels that lie apart by factors rather than by steps.
    pub(super) fn is_logarithmic(&self) -> bool {
        let numbers = || self.levels.iter().filter_map(|l| l.number);
        let (least, most) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max));
        least > 0.0 && most / least >= 8.0
    }

    /// The level of a trial.
    pub(super) fn level(&self, sample: &Sample<'_>) -> String {
        level(self.name, sample)
    }
}

/// The factors with two levels or more among the trials.
pub(super) fn varied(samples: &[Sample<'_>]) -> Vec<Varied> {
    let mut all: Vec<Varied> = Vec::new();
    for name in names() {
        let mut levels: Vec<Level> = Vec::new();
        for sample in samples {
            let text = level(name, sample);
            if !levels.iter().any(|l| l.text == text) {
                levels.push(Level { number: number(name, &text), text });
            }
        }
        if levels.len() < 2 {
            continue;
        }
        if levels.iter().all(|l| l.number.is_some()) {
            levels.sort_by(|a, b| a.number.unwrap_or(0.0).total_cmp(&b.number.unwrap_or(0.0)));
        }
        all.push(Varied { name, levels });
    }
    all
}

/// The factors without those that say nothing new: a later one whose levels go one to one with an earlier one's (the
/// size of a datagram that fills a packet, with the IP version).
pub(super) fn independent(factors: Vec<Varied>, samples: &[Sample<'_>]) -> Vec<Varied> {
    let mut kept: Vec<Varied> = Vec::new();
    for factor in factors {
        let repeats = |known: &Varied| {
            let mut pairs: Vec<(String, String)> = Vec::new();
            for sample in samples {
                let pair = (known.level(sample), factor.level(sample));
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
            known.levels.len() == factor.levels.len() && pairs.len() == factor.levels.len()
        };
        if !kept.iter().any(repeats) {
            kept.push(factor);
        }
    }
    kept
}

/// Every factor's word, the run's included.
fn names() -> impl Iterator<Item = &'static str> {
    [RUN, "workload", "IP", "size", "request", "response", "streams"]
        .into_iter()
        .chain(FACTORS.iter().map(|f| f.name))
}

/// The level of a factor in a trial, a default by its word.
pub(super) fn level(name: &str, sample: &Sample<'_>) -> String {
    if name == RUN {
        return sample.run_name.to_owned();
    }
    trial_level(name, &sample.record.trial)
}

fn trial_level(name: &str, trial: &Trial) -> String {
    match name {
        "workload" => return trial.workload.kind().name().to_owned(),
        "IP" => return family_text(trial.family).to_owned(),
        "streams" => return trial.streams.to_string(),
        "size" => return if exchange(trial).is_none() { trial.workload.size_text() } else { String::new() },
        "request" => return exchange(trial).map_or_else(String::new, |(request, _)| request.to_string()),
        "response" => return exchange(trial).map_or_else(String::new, |(_, response)| response.to_string()),
        _ => {}
    }
    let value = FACTORS.iter().find(|f| f.name == name).map(|f| (f.value)(trial)).unwrap_or_default();
    if value.is_empty() { default_word(name).to_owned() } else { value }
}

fn exchange(trial: &Trial) -> Option<(ByteCount, ByteCount)> {
    match &trial.workload {
        Workload::TcpRr(w) => Some((w.request, w.response)),
        Workload::TcpCrr(w) => Some((w.request, w.response)),
        Workload::UdpRr(w) => Some((w.request, w.response)),
        _ => None,
    }
}

fn number(name: &str, text: &str) -> Option<f64> {
    match name {
        "size" | "request" | "response" | "buffer" => text.parse::<ByteCount>().ok().map(|b| b.0 as f64),
        "streams" | "in-flight" | "mss" => text.parse().ok(),
        "rate" => Rate::parse(text, RateUnit::BitsPerSecond).ok().map(|r| r.per_second as f64),
        _ => None,
    }
}

/// A level with its factor's name where it does not speak for itself: `size 64K`, `IPv4`, `sendfile`.
pub(super) fn phrase(name: &str, level: &str) -> String {
    let needs_name = matches!(name, "size" | "request" | "response" | "streams")
        || level == "default"
        || FACTORS.iter().any(|f| f.name == name && f.phrase("\u{0}") != "\u{0}");
    let has_name = level.starts_with("no ") || level.starts_with("not ");
    if needs_name && !has_name { format!("{name} {level}") } else { level.to_owned() }
}

/// How the factors are shown in plots.
pub(super) struct Roles {
    /// From left to right.
    pub(super) axis: Varied,
    /// By colour.
    pub(super) series: Option<Varied>,
    /// By plots of their own.
    pub(super) panels: Vec<Varied>,
}

/// Most series in one plot.
pub(super) const MOST_SERIES: usize = 8;

/// Gives the factors their roles: a scale is the axis, runs are told by colour; `None` where nothing varies.
pub(super) fn roles(mut factors: Vec<Varied>) -> Option<Roles> {
    let weight = |f: &Varied| (f.is_scale(), f.name != RUN, f.levels.len());
    let axis = (0..factors.len()).max_by_key(|&i| (weight(&factors[i]), usize::MAX - i))?;
    let axis = factors.remove(axis);
    let weight = |f: &Varied| (f.levels.len() <= MOST_SERIES, f.name == RUN, f.levels.len());
    let series = (0..factors.len()).max_by_key(|&i| (weight(&factors[i]), usize::MAX - i));
    let series = series.filter(|&i| factors[i].levels.len() <= MOST_SERIES).map(|i| factors.remove(i));
    Some(Roles { axis, series, panels: factors })
}

/// The trials in groups that agree in these factors, each with its name; as first met.
pub(super) fn panels<'a>(samples: &[Sample<'a>], factors: &[Varied]) -> Vec<(String, Vec<Sample<'a>>)> {
    let mut groups: Vec<(String, Vec<Sample<'a>>)> = Vec::new();
    for sample in samples {
        let name: Vec<String> = factors.iter().map(|f| phrase(f.name, &f.level(sample))).collect();
        let name = name.join(", ");
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(*sample),
            None => groups.push((name, vec![*sample])),
        }
    }
    groups
}
