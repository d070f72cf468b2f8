//! From turns to medians and ratios.

use super::{
    tools::Tool,
    turn::Turn,
    work::{PlaceKind, Work},
};

/// All that was run for one work at one place.
pub(crate) struct Contest {
    pub(crate) place: PlaceKind,
    pub(crate) work: Work,
    pub(crate) entries: Vec<Entry>,
}

/// One tool's part.
pub(crate) struct Entry {
    pub(crate) tool: Tool,
    pub(crate) result: Result<Vec<Turn>, Absence>,
}

/// Why there are no figures.
#[derive(Clone, Debug)]
pub(crate) enum Absence {
    /// The tool can't do this.
    Cannot(String),
    /// It was tried.
    Failed(String),
}

/// A median and the least and greatest value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

/// linerate against the fastest peer.
pub(crate) struct Comparison {
    pub(crate) peer: Tool,
    /// Goodput, linerate's divided by the peer's, turn by turn.
    pub(crate) goodput: Spread,
    /// Busy CPU time a unit, likewise: under 1 is less CPU for the same work.
    pub(crate) cpu: Spread,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        let half = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
        Some(Self { least, median, greatest })
    }
}

impl Contest {
    /// `None` while linerate or every peer is missing.
    pub(crate) fn comparison(&self) -> Option<Comparison> {
        let linerate = self.entries.iter().find(|entry| entry.tool == Tool::Linerate)?.turns()?;
        let peers = self.entries.iter().filter(|entry| entry.tool != Tool::Linerate);
        let (peer, peer_turns, _) = peers
            .filter_map(|entry| {
                let turns = entry.turns()?;
                Some((entry.tool, turns, Spread::of(turns.iter().map(goodput))?.median))
            })
            .max_by(|(_, _, one), (_, _, other)| one.total_cmp(other))?;
        let ratios = |value: fn(&Turn) -> f64| {
            Spread::of(linerate.iter().zip(peer_turns).map(|(ours, theirs)| value(ours) / value(theirs)))
        };
        Some(Comparison { peer, goodput: ratios(goodput)?, cpu: ratios(cpu)? })
    }
}

impl Entry {
    pub(crate) fn turns(&self) -> Option<&[Turn]> {
        self.result.as_deref().ok()
    }
}

pub(crate) fn goodput(turn: &Turn) -> f64 {
    turn.counted.units_per_second
}

pub(crate) fn cpu(turn: &Turn) -> f64 {
    turn.counted.busy_seconds_per_unit
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::{counters::Counted, figures::Figures};

    fn turn(units_per_second: f64, busy_seconds_per_unit: f64) -> Turn {
        let window = Duration::from_secs(2);
        let counted = Counted {
            window,
            units_per_second,
            busy_seconds_per_unit,
            process_seconds_per_unit: busy_seconds_per_unit,
            busy_cpus: 1.0,
        };
        Turn { counted, figures: Figures { received: None, sent: None } }
    }

    fn entry(tool: Tool, turns: &[(f64, f64)]) -> Entry {
        Entry { tool, result: Ok(turns.iter().map(|&(units, busy)| turn(units, busy)).collect()) }
    }

    #[test]
    fn the_median_of_an_even_count_is_between() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(Spread { least: 1.0, median: 2.5, greatest: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_fastest_peer_is_the_one_to_beat() {
        let failed = Entry { tool: Tool::Qperf, result: Err(Absence::Failed("no".to_owned())) };
        let contest = Contest {
            place: PlaceKind::Veth,
            work: Work::TcpStream,
            entries: vec![
                entry(Tool::Linerate, &[(12.0, 1.0), (10.0, 1.0), (14.0, 2.0)]),
                entry(Tool::Iperf3, &[(10.0, 2.0), (10.0, 2.0), (10.0, 2.0)]),
                entry(Tool::Netperf, &[(1.0, 0.1), (1.0, 0.1), (100.0, 0.1)]),
                failed,
            ],
        };
        let comparison = contest.comparison().unwrap();
        assert_eq!(comparison.peer, Tool::Iperf3);
        assert_eq!(comparison.goodput, Spread { least: 1.0, median: 1.2, greatest: 1.4 });
        assert_eq!(comparison.cpu, Spread { least: 0.5, median: 0.5, greatest: 1.0 });
    }

    #[test]
    fn without_linerate_there_is_nothing_to_compare() {
        let entries = vec![entry(Tool::Iperf3, &[(10.0, 2.0)])];
        assert!(Contest { place: PlaceKind::Veth, work: Work::TcpRr, entries }.comparison().is_none());
    }
}
