//! Draws a chart as SVG, by plotters.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Axis, Chart, Form, Series};
use super::theme::{Ink, with_variables};

/// Size of a drawing in its own units. Small, so that text stays readable when it is scaled to a phone's width.
const WIDTH: u32 = 420;
const HEIGHT: u32 = 280;
/// plotters divides by 1.24, so that letters are 14 units high.
const TEXT: f64 = 17.4;
/// About the width of a letter.
const LETTER: f64 = 7.6;
const LINE: i32 = 17;
/// More points than this have no markers.
const MOST_MARKERS: usize = 40;

type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The chart as an `svg` element, with its title and description for those who do not see it; `id` must be the only one
/// of its kind in the page.
pub(crate) fn svg(chart: &Chart, id: &str) -> String {
    let mut text = String::new();
    let drawn = draw(&chart.within_axes(), &mut text);
    // The SVG back end writes to a string: nothing can fail but a chart without room, which the axes exclude.
    debug_assert!(drawn.is_ok(), "{drawn:?}");
    let body = text.split_once('\n').map_or("", |(_, body)| body);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}",
        escape(&chart.title),
        escape(&chart.description),
        with_variables(body),
    )
}

/// Text for HTML and XML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

fn draw(chart: &Chart, text: &mut String) -> Drawn {
    let root = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    let longest = chart.y.ticks.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(1);
    let left = (longest as f64 * LETTER + 12.0).min(f64::from(WIDTH) / 3.0) as u32;
    let labels = XLabels::of(&chart.x, f64::from(WIDTH - left) - 14.0);
    let mut plot: Plot<'_> = ChartBuilder::on(&root)
        .margin_top(28)
        .margin_right(14)
        .margin_bottom(labels.height() as u32)
        .y_label_area_size(left)
        .build_cartesian_2d(range(&chart.x), range(&chart.y))?;
    guides(chart, &mut plot)?;
    for (place, series) in chart.series.iter().enumerate() {
        draw_series(chart, series, place, &mut plot)?;
    }
    marks(chart, &mut plot)?;
    write_labels(chart, &labels, &plot, &root)?;
    drop(plot);
    root.present()?;
    Ok(())
}

fn range(axis: &Axis) -> std::ops::Range<f64> {
    if axis.to > axis.from { axis.from..axis.to } else { axis.from..axis.from + 1.0 }
}

/// Axis lines and the lines at the ticks of the upright axis.
fn guides(chart: &Chart, plot: &mut Plot<'_>) -> Drawn {
    let (x, y) = (range(&chart.x), range(&chart.y));
    let area = plot.plotting_area();
    for (at, _) in &chart.y.ticks {
        let line = vec![(x.start, *at), (x.end, *at)];
        area.draw(&PathElement::new(line, Ink::Grid.stand_in().stroke_width(1)))?;
    }
    let floor = vec![(x.start, y.start), (x.end, y.start)];
    area.draw(&PathElement::new(floor, Ink::Text.stand_in().stroke_width(1)))?;
    Ok(())
}

fn draw_series(chart: &Chart, series: &Series, place: usize, plot: &mut Plot<'_>) -> Drawn {
    let colour = Ink::Series(series.style).stand_in();
    let points = || series.points.iter().map(|p| (p.x, p.y));
    match chart.form {
        Form::Lines => {
            plot.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
            whiskers(series, 0.0, plot)?;
        }
        Form::Steps => {
            plot.draw_series(LineSeries::new(corners(points()), colour.stroke_width(2)))?;
            return Ok(());
        }
        Form::Bars => {
            let width = 0.8 / chart.series.len() as f64;
            let offset = (place as f64 - (chart.series.len() as f64 - 1.0) / 2.0) * width;
            bars(points().map(|(x, y)| (x + offset, chart.y.from, y)), width * 0.86, colour, plot)?;
            whiskers(series, offset, plot)?;
            return Ok(());
        }
        Form::Stacked { width } => {
            let below = |x: f64| {
                let under = chart.series[..place].iter().flat_map(|s| &s.points);
                under.filter(|p| p.x == x).map(|p| p.y).sum::<f64>()
            };
            let parts = points()
                .filter(|(_, y)| *y > 0.0)
                .map(|(x, y)| (x, below(x), (below(x) + y).min(chart.y.to)));
            bars(parts, width, colour, plot)?;
            return Ok(());
        }
        Form::Trend if place > 0 => {
            plot.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
            return Ok(());
        }
        Form::Trend => {}
    }
    if series.points.len() <= MOST_MARKERS || chart.form == Form::Trend {
        markers(series, plot)?;
    }
    Ok(())
}

fn bars(
    parts: impl Iterator<Item = (f64, f64, f64)>,
    width: f64,
    colour: RGBColor,
    plot: &mut Plot<'_>,
) -> Drawn {
    plot.draw_series(parts.map(|(x, low, high)| {
        Rectangle::new([(x - width / 2.0, low), (x + width / 2.0, high)], colour.filled())
    }))?;
    Ok(())
}

/// Points of a line that goes level, then up.
fn corners(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        if let Some(&(_, level)) = corners.last() {
            corners.push((x, level));
        }
        corners.push((x, y));
    }
    corners
}

fn whiskers(series: &Series, offset: f64, plot: &mut Plot<'_>) -> Drawn {
    let ink = Ink::Text.stand_in().stroke_width(1);
    for point in &series.points {
        let Some((low, high)) = point.spread else { continue };
        let x = point.x + offset;
        let area = plot.plotting_area();
        area.draw(&PathElement::new(vec![(x, low), (x, high)], ink))?;
        for end in [low, high] {
            area.draw(&(EmptyElement::at((x, end)) + PathElement::new(vec![(-4, 0), (4, 0)], ink)))?;
        }
    }
    Ok(())
}

/// Shapes, so that colour is not all that tells series apart; [`markers`] draws them in this order.
pub(crate) const MARKERS: [&str; 4] = ["\u{25cf}", "\u{25a0}", "\u{25b2}", "\u{25c6}"];

fn markers(series: &Series, plot: &mut Plot<'_>) -> Drawn {
    let fill = Ink::Series(series.style).stand_in().filled();
    let points = series.points.iter().map(|p| (p.x, p.y));
    match series.style % MARKERS.len() {
        0 => plot.draw_series(points.map(|at| Circle::new(at, 4, fill)))?,
        1 => {
            let square = [(-4, -4), (4, 4)];
            plot.draw_series(points.map(|at| EmptyElement::at(at) + Rectangle::new(square, fill)))?
        }
        2 => plot.draw_series(points.map(|at| TriangleMarker::new(at, 5, fill)))?,
        _ => {
            let diamond = || vec![(0, -6), (6, 0), (0, 6), (-6, 0)];
            plot.draw_series(points.map(|at| EmptyElement::at(at) + Polygon::new(diamond(), fill)))?
        }
    };
    Ok(())
}

fn marks(chart: &Chart, plot: &mut Plot<'_>) -> Drawn {
    let y = range(&chart.y);
    let middle = f64::midpoint(chart.x.from, chart.x.to);
    for ((x, word), row) in chart.marks.iter().zip([0, 1, 2].into_iter().cycle()) {
        let line = vec![(*x, y.start), (*x, y.end)];
        plot.plotting_area().draw(&PathElement::new(line, Ink::Series(7).stand_in().stroke_width(1)))?;
        let side = if *x > middle { HPos::Right } else { HPos::Left };
        let style = text(Ink::Series(7)).pos(Pos::new(side, VPos::Top));
        let shift = if *x > middle { -4 } else { 4 };
        plot.plotting_area()
            .draw(&(EmptyElement::at((*x, y.end)) + Text::new(word.clone(), (shift, row * LINE), style)))?;
    }
    Ok(())
}

fn text(ink: Ink) -> TextStyle<'static> {
    ("sans-serif", TEXT).into_font().color(&ink.stand_in())
}

fn write_labels(chart: &Chart, labels: &XLabels, plot: &Plot<'_>, root: &Area<'_>) -> Drawn {
    let area = plot.plotting_area();
    let at = |x: f64, y: f64| area.map_coordinate(&(x, y));
    let left = at(chart.x.from, chart.y.from).0;
    let right_of = text(Ink::Text).pos(Pos::new(HPos::Right, VPos::Center));
    for (value, label) in &chart.y.ticks {
        root.draw(&Text::new(label.clone(), (left - 6, at(chart.x.from, *value).1), right_of.clone()))?;
    }
    let floor = at(chart.x.from, chart.y.from).1;
    for (value, lines) in &labels.ticks {
        let centre = at(*value, chart.y.from).0;
        root.draw(&PathElement::new(vec![(centre, floor), (centre, floor + 4)], Ink::Text.stand_in()))?;
        for (line, drop) in lines.iter().zip(0_i32..) {
            let below = text(Ink::Text).pos(Pos::new(HPos::Center, VPos::Top));
            root.draw(&Text::new(line.clone(), (centre, floor + 7 + drop * LINE), below))?;
        }
    }
    root.draw(&Text::new(chart.y.label.clone(), (2, 4), text(Ink::Text)))?;
    let middle = i32::midpoint(left, at(chart.x.to, chart.y.from).0);
    let below = text(Ink::Text).pos(Pos::new(HPos::Center, VPos::Bottom));
    root.draw(&Text::new(chart.x.label.clone(), (middle, HEIGHT as i32 - 4), below))?;
    Ok(())
}

/// The texts below the axis, as many as have room, each broken into lines.
struct XLabels {
    ticks: Vec<(f64, Vec<String>)>,
    has_title: bool,
}

/// Lines a text below the axis may have.
const MOST_LINES: usize = 3;

impl XLabels {
    fn of(axis: &Axis, width: f64) -> Self {
        let per_unit = width / (axis.to - axis.from).max(f64::MIN_POSITIVE);
        let nearest = axis.ticks.windows(2).map(|w| (w[1].0 - w[0].0) * per_unit).fold(width, f64::min);
        let letters = ((nearest - 6.0) / LETTER).max(3.0) as usize;
        let broken = axis
            .ticks
            .iter()
            .map(|(at, text)| (*at, if axis.breaks { lines(text, letters) } else { vec![text.clone()] }));
        let mut ticks: Vec<(f64, Vec<String>)> = Vec::new();
        let mut free_from = f64::NEG_INFINITY;
        for (at, lines) in broken {
            let half = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64 * LETTER / 2.0;
            let centre = (at - axis.from) * per_unit;
            if centre - half >= free_from {
                free_from = centre + half + LETTER;
                ticks.push((at, lines));
            }
        }
        Self { ticks, has_title: !axis.label.is_empty() }
    }

    fn height(&self) -> i32 {
        let lines = self.ticks.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1);
        10 + LINE * (lines as i32 + i32::from(self.has_title))
    }
}

/// A text in lines of at most so many letters, broken at spaces and hyphens; what is too long is cut.
fn lines(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_inclusive([' ', '-', '/']) {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.chars().count() + word.trim_end().chars().count() > letters {
            lines.push(word.to_owned());
        } else {
            last.push_str(word);
        }
    }
    let cut = lines.len() > MOST_LINES;
    lines.truncate(MOST_LINES);
    for (place, line) in lines.iter_mut().enumerate() {
        *line = line.trim_end().to_owned();
        let ends_cut = cut && place + 1 == MOST_LINES;
        if line.chars().count() > letters || ends_cut {
            *line = line.chars().take(letters.saturating_sub(1)).chain(['\u{2026}']).collect();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_broken_and_cut() {
        assert_eq!(lines("tcp-stream", 20), ["tcp-stream"]);
        assert_eq!(lines("tcp-stream", 7), ["tcp-", "stream"]);
        assert_eq!(lines("one two three four five", 6), ["one", "two", "three\u{2026}"]);
        assert_eq!(lines("0123456789", 6), ["01234\u{2026}"]);
    }

    #[test]
    fn strangers_bytes_are_escaped() {
        assert_eq!(escape("<a href='x'>&\"\u{7}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ");
    }
}
