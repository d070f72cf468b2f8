//! `linerate trend`: a metric over the history, with the places where it changed.

use linerate_lab::stats::{ChangeRule, change_points};
use linerate_lab::verdict_table::trial_words;
use linerate_model::exit::ExitCode;
use linerate_model::factor::{self, Level};
use linerate_model::trend::{Trend, TrendChange, TrendPoint};
use linerate_model::verdict::Better;
use linerate_report::{trend_svg, trend_table};
use linerate_store::{Metric, Point};

use crate::cli::TrendArgs;
use crate::failure::Failure;
use crate::{history, output};

/// Seed of the permutations: fixed, so that the same history gives the same marks.
const SEED: u64 = 0x0074_7265_6e64;

pub(crate) fn run(args: TrendArgs) -> Result<ExitCode, Failure> {
    let metric: Metric = args.metric.parse().map_err(Failure::usage)?;
    let store = history::open(args.db.db.as_deref())?;
    let points = store.series(&history::filter(&args.filter)?, &metric).map_err(Failure::usage)?;
    let trends = trends(&points, &metric)?;
    if trends.is_empty() {
        output::print("No trial matches.\n")?;
        return Ok(ExitCode::Good);
    }
    if let Some(path) = &args.output {
        let [trend] = trends.as_slice() else {
            let why = format!("{} kinds of trial match; narrow it down to one", trends.len());
            return Err(Failure::usage(format!("-o {}: {why}", path.display())));
        };
        output::write_file(path, &trend_svg(trend))?;
    }
    let text = if args.json {
        let json = serde_json::to_string_pretty(&trends)
            .map_err(|e| Failure::node(format!("write trends as JSON: {e}")))?;
        json + "\n"
    } else {
        let width = output::table_options(false).width;
        trends.iter().map(|t| trend_table(t, width)).collect::<Vec<_>>().join("\n")
    };
    output::print(&text)?;
    Ok(ExitCode::Good)
}

/// A trend for each kind of trial: values of unlike trials don't belong on one line.
fn trends(points: &[Point], metric: &Metric) -> Result<Vec<Trend>, Failure> {
    let mut kinds: Vec<(Vec<Level>, Vec<&Point>)> = Vec::new();
    for point in points {
        let levels = factor::levels(&point.trial);
        match kinds.iter_mut().find(|(known, _)| *known == levels) {
            Some((_, points)) => points.push(point),
            None => kinds.push((levels, vec![point])),
        }
    }
    kinds.iter().map(|(levels, points)| trend(levels, points, metric)).collect()
}

fn trend(levels: &[Level], points: &[&Point], metric: &Metric) -> Result<Trend, Failure> {
    let values: Vec<f64> = points.iter().map(|p| p.value).collect();
    let changes = change_points(&values, &ChangeRule::seeded(SEED)).map_err(Failure::node)?;
    Ok(Trend {
        trial: trial_words(levels),
        metric: metric.to_string(),
        unit: metric.unit().to_owned(),
        better: better(&metric.to_string()),
        points: points
            .iter()
            .map(|p| TrendPoint { at: p.at.to_string(), run: p.run.clone(), value: p.value })
            .collect(),
        changes: changes
            .into_iter()
            .map(|c| TrendChange {
                index: c.index,
                before: c.before,
                after: c.after,
                effect_percent: c.effect_percent,
                p: c.p,
            })
            .collect(),
    })
}

/// Which way a named metric should go; a path into the summary says nothing of it.
fn better(metric: &str) -> Option<Better> {
    match metric {
        "goodput" | "packets" | "transactions" => Some(Better::Higher),
        path if path.contains(['.', '_']) => None,
        _ => Some(Better::Lower),
    }
}
