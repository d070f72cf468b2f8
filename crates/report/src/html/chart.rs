//! A plot as data: axes, series, and the table that says the same.

/// A plot of series over one axis.
#[derive(Clone)]
pub(crate) struct Chart {
    /// What is shown.
    pub(crate) title: String,
    /// What a reader who does not see it should know; also what whiskers mean.
    pub(crate) description: String,
    /// The axis from left to right.
    pub(crate) x: Axis,
    /// The axis upwards.
    pub(crate) y: Axis,
    /// How the series are drawn.
    pub(crate) form: Form,
    /// The series.
    pub(crate) series: Vec<Series>,
    /// Upright lines with a word each, at positions of `x`.
    pub(crate) marks: Vec<(f64, String)>,
    /// The figures as a table; made from the series where it is `None`.
    pub(crate) table: Option<FigureTable>,
}

/// How a chart's series are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// A line with a marker at each point.
    Lines,
    /// A line that goes up in steps.
    Steps,
    /// Bars side by side at each position 0, 1, 2 ... of the axis.
    Bars,
    /// Bars on top of each other; the points of a series may be anywhere.
    Stacked {
        /// Width of a bar, in the axis's unit.
        width: f64,
    },
    /// The first series is markers, the others are level lines through them.
    Trend,
}

/// An axis whose positions are already those to draw at (the logarithm for a logarithmic one).
#[derive(Clone)]
pub(crate) struct Axis {
    /// What it shows, with its unit.
    pub(crate) label: String,
    /// Least position.
    pub(crate) from: f64,
    /// Greatest position.
    pub(crate) to: f64,
    /// Positions with a text each.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The texts are names, which may be broken into lines.
    pub(crate) breaks: bool,
}

/// A series.
#[derive(Clone)]
pub(crate) struct Series {
    /// Its name in the legend; empty for a chart of one series.
    pub(crate) name: String,
    /// Its colour and marker.
    pub(crate) style: usize,
    /// Its points, left to right.
    pub(crate) points: Vec<Point>,
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    /// Position on the axis from left to right.
    pub(crate) x: f64,
    /// Position on the axis upwards.
    pub(crate) y: f64,
    /// Ends of its interval or spread.
    pub(crate) spread: Option<(f64, f64)>,
    /// Where it is, in words.
    pub(crate) at: String,
    /// The figure, in words.
    pub(crate) text: String,
}

/// Figures as a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FigureTable {
    /// Heads of the columns.
    pub(crate) head: Vec<String>,
    /// Rows of as many cells, or of one: the head of the rows below it.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Chart {
    /// The same with every point on its axes: what lies outside, which only nonsense does, moves to the edge.
    pub(crate) fn within_axes(&self) -> Self {
        let mut chart = self.clone();
        for point in chart.series.iter_mut().flat_map(|s| &mut s.points) {
            point.x = self.x.clamp(point.x);
            point.y = self.y.clamp(point.y);
            point.spread = point.spread.map(|(low, high)| (self.y.clamp(low), self.y.clamp(high)));
        }
        chart
    }

    /// The figures as a table: a row for each place, a column for each series.
    pub(crate) fn figures(&self) -> FigureTable {
        if let Some(table) = &self.table {
            return table.clone();
        }
        let mut places: Vec<(f64, &str)> = Vec::new();
        for point in self.series.iter().flat_map(|s| &s.points) {
            if !places.contains(&(point.x, point.at.as_str())) {
                places.push((point.x, &point.at));
            }
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut head = vec![self.x.label.clone()];
        head.extend(
            self.series.iter().map(|s| if s.name.is_empty() { &self.y.label } else { &s.name }).cloned(),
        );
        let rows = places.into_iter().map(|(x, at)| {
            let cell = |s: &Series| {
                let here = s.points.iter().filter(|p| p.x == x && p.at == at);
                here.map(|p| p.text.clone()).collect::<Vec<_>>().join(", ")
            };
            std::iter::once(at.to_owned()).chain(self.series.iter().map(cell)).collect()
        });
        FigureTable { head, rows: rows.collect() }
    }
}

/// Beyond this a figure is nonsense, and its arithmetic overflows.
const MOST: f64 = 1e100;

impl Axis {
    /// A linear axis from zero to a little above the greatest value, with round ticks.
    pub(crate) fn from_zero(label: String, greatest: f64) -> Self {
        let greatest = if greatest > 0.0 { greatest.min(MOST) * 1.04 } else { 1.0 };
        let step = round_step(greatest / 5.0);
        let count = (greatest / step).floor();
        let ticks = steps(count).map(|n| (n * step, tick_text(n * step, step))).collect();
        Self { label, from: 0.0, to: greatest, ticks, breaks: false }
    }

    /// A linear axis around values that are far from zero, for change rather than size.
    pub(crate) fn around(label: String, least: f64, greatest: f64) -> Self {
        let (least, greatest) = (least.clamp(-MOST, MOST), greatest.clamp(-MOST, MOST));
        let room = if greatest > least { (greatest - least) * 0.08 } else { greatest.abs().max(1.0) * 0.05 };
        let (from, to) = (least - room, greatest + room);
        let step = round_step((to - from) / 5.0);
        let first = (from / step).ceil();
        let count = (to / step).floor() - first;
        let ticks = steps(count).map(|n| ((first + n) * step, tick_text((first + n) * step, step))).collect();
        Self { label, from, to, ticks, breaks: false }
    }

    /// A logarithmic axis over values above zero; positions are decimal logarithms.
    pub(crate) fn decades(label: String, least: f64, greatest: f64, text: impl Fn(f64) -> String) -> Self {
        let (low, high) = (least.clamp(1.0 / MOST, MOST).log10(), greatest.clamp(1.0 / MOST, MOST).log10());
        let room = ((high - low) * 0.05).max(0.02);
        let (from, to) = (low - room, high + room);
        let wide = to - from > 2.2;
        let factors: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let mut ticks = Vec::new();
        for decade in steps(to.floor() - from.floor()).map(|n| n + from.floor()) {
            for factor in factors {
                let at = decade + factor.log10();
                if (from..=to).contains(&at) {
                    ticks.push((at, text(10_f64.powf(decade) * factor)));
                }
            }
        }
        Self { label, from, to, ticks, breaks: false }
    }

    fn clamp(&self, position: f64) -> f64 {
        if position.is_nan() { self.from } else { position.max(self.from).min(self.to) }
    }

    /// An axis of names, at 0, 1, 2 ...
    pub(crate) fn names(label: String, names: impl IntoIterator<Item = String>) -> Self {
        let ticks: Vec<(f64, String)> =
            names.into_iter().zip(0_u32..).map(|(name, n)| (f64::from(n), name)).collect();
        Self { label, from: -0.5, to: ticks.len() as f64 - 0.5, ticks, breaks: true }
    }
}

/// 0, 1, 2 ... `last`, at most 40.
fn steps(last: f64) -> impl Iterator<Item = f64> {
    (0..40_u32).map(f64::from).take_while(move |n| *n <= last)
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|f| f * power)
        .find(|s| *s >= least * 0.999_999)
        .unwrap_or(power * 10.0)
}

fn tick_text(value: f64, step: f64) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=9")]
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(&Axis::from_zero(String::new(), 23.4)), ["0", "5", "10", "15", "20"]);
        assert_eq!(texts(&Axis::from_zero(String::new(), 0.7)), ["0", "0.2", "0.4", "0.6"]);
        assert_eq!(texts(&Axis::from_zero(String::new(), 0.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&Axis::around(String::new(), 100.0, 110.0)), ["100", "105", "110"]);
        let decades = |least, most| Axis::decades(String::new(), least, most, |v| v.to_string());
        assert_eq!(texts(&decades(3.0, 300.0)), ["5", "10", "20", "50", "100", "200"]);
        assert_eq!(texts(&decades(3.0, 30_000.0)), ["10", "100", "1000", "10000"]);
    }
}
