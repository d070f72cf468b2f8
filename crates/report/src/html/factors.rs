//! What varies among trials: factors with their levels, and which of them a plot's axis, series and panels show.

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::units::{ByteCount, Rate, RateUnit};

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
    pub(super) name: String,
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
        level(&self.name, sample)
    }
}

/// The factors with two levels or more among the trials.
pub(super) fn varied(samples: &[Sample<'_>]) -> Vec<Varied> {
    let mut all: Vec<Varied> = Vec::new();
    for name in names(samples) {
        let mut levels: Vec<Level> = Vec::new();
        for sample in samples {
            let text = level(&name, sample);
            if !levels.iter().any(|l| l.text == text) {
                levels.push(Level { number: number(&name, &text), text });
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

/// Every factor's word, the run's first.
fn names(samples: &[Sample<'_>]) -> Vec<String> {
    let mut names = vec![RUN.to_owned()];
    for level in samples.iter().flat_map(|s| factor::levels(&s.record.trial)) {
        if !names.contains(&level.factor) {
            names.push(level.factor);
        }
    }
    names
}

/// The level of a factor in a trial; empty where it knows no such factor.
pub(super) fn level(name: &str, sample: &Sample<'_>) -> String {
    if name == RUN {
        return sample.run_name.to_owned();
    }
    factor::level(&sample.record.trial, name).unwrap_or_default()
}

fn number(name: &str, text: &str) -> Option<f64> {
    match name {
        "size" | "request" | "response" | "socket-buffer" => {
            text.parse::<ByteCount>().ok().map(|b| b.0 as f64)
        }
        "rate" => Rate::parse(text, RateUnit::BitsPerSecond).ok().map(|r| r.per_second as f64),
        RUN | "family" => None,
        _ => text.parse().ok(),
    }
}

/// A level as people read it, with its factor's name where it does not speak for itself: `size 64K`, `IPv4`, `sendfile`,
/// `dut.tso=on`.
pub(super) fn phrase(name: &str, level: &str) -> String {
    match (name, level) {
        ("family", version) => format!("IPv{version}"),
        (RUN | "workload" | "send", _) => level.to_owned(),
        (_, "true") => name.to_owned(),
        (_, "false") => format!("no {name}"),
        (setting, _) if setting.contains(['.', ':']) => format!("{setting}={level}"),
        _ => format!("{name} {level}"),
    }
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
        let name: Vec<String> = factors.iter().map(|f| phrase(&f.name, &f.level(sample))).collect();
        let name = name.join(", ");
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(*sample),
            None => groups.push((name, vec![*sample])),
        }
    }
    groups
}
