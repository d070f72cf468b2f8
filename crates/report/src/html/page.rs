//! Puts the page together: what each part says, for the template.

use askama::Template;
use linerate_model::Record;
use linerate_model::verdict::{Judgement, VerdictTable};

use super::chart::{Chart, FigureTable};
use super::environment::EnvironmentTable;
use super::factors::{Sample, independent, roles, varied};
use super::paint::{MARKERS, svg};
use super::{
    HtmlOptions, Kind, Run, again, answer, asked, by_factor, cores, latency, over_time, sides, theme,
};
use crate::metric::{effect, figure};
use crate::table::model::{TableModel, tables};
use crate::verdicts::{better_text, heading, interval_text, notes, outcome};

const STYLE: &str = include_str!("../../templates/report.css");

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    colours: String,
    style: &'static str,
    version: String,
    runs: Vec<RunPart>,
    answers: Vec<String>,
    verdicts: Option<VerdictPart<'a>>,
    sides: Option<FigureTable>,
    sections: Vec<Section>,
    trends: Vec<TrendPart>,
    environment: EnvironmentTable,
    hazards: Vec<HazardPart>,
}

/// What belongs to a run alone.
struct RunPart {
    name: String,
    asked: Vec<(String, String)>,
    tables: Vec<TableModel>,
    commands: Vec<String>,
}

struct VerdictPart<'a> {
    heading: String,
    outcome: String,
    interval_head: String,
    rows: Vec<VerdictCells<'a>>,
}

struct VerdictCells<'a> {
    trial: &'a str,
    metric: &'a str,
    better: &'static str,
    base: String,
    new: String,
    effect: String,
    interval: String,
    verdict: &'static str,
    notes: Vec<String>,
}

/// The plots of one kind of workload.
struct Section {
    title: &'static str,
    parts: Vec<PlotPart>,
}

struct PlotPart {
    title: &'static str,
    note: Option<String>,
    figures: Vec<Figure>,
    /// Shown at once, rather than when asked for.
    is_open: bool,
}

/// A plot with what goes below it.
struct Figure {
    svg: String,
    title: String,
    description: String,
    legend: Vec<LegendItem>,
    table: FigureTable,
}

struct LegendItem {
    style: usize,
    marker: &'static str,
    name: String,
}

struct TrendPart {
    title: String,
    svg: String,
    table: FigureTable,
}

struct HazardPart {
    kind: &'static str,
    place: String,
    evidence: String,
    cure: String,
}

pub(super) fn page(runs: &[Run<'_>], options: &HtmlOptions<'_>) -> String {
    // Trials run in a random order; they are shown in that of the plan.
    let in_order: Vec<Vec<Record>> = runs.iter().map(|run| by_plan(run.records)).collect();
    let runs: Vec<Run<'_>> = runs
        .iter()
        .zip(&in_order)
        .map(|(run, records)| Run {
            name: run.name.clone(),
            records,
            command: run.command.clone(),
            left_out: run.left_out,
        })
        .collect();
    let runs = runs.as_slice();
    let all: Vec<Record> = runs.iter().flat_map(|r| r.records).cloned().collect();
    let samples: Vec<Sample<'_>> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, r)| r.records.iter().map(move |record| Sample { run, run_name: &r.name, record }))
        .collect();
    let mut ids = 0;
    let page = Page {
        title: options.title.clone().unwrap_or_else(|| title(runs)),
        colours: theme::variables(),
        style: STYLE,
        version: all.first().map(|r| r.dut.environment.linerate_version.clone()).unwrap_or_default(),
        runs: runs.iter().map(run_part).collect(),
        answers: answer::answers(&samples),
        verdicts: options.verdicts.map(verdict_part),
        sides: (runs.len() > 1).then(|| sides::table(runs)).filter(|t| !t.rows.is_empty()),
        sections: Kind::ALL
            .into_iter()
            .filter_map(|kind| section(kind, &samples, options, &mut ids))
            .collect(),
        trends: options.trends.iter().map(|trend| trend_part(trend, &mut ids)).collect(),
        environment: EnvironmentTable::of(runs),
        hazards: hazards(&all),
    };
    // Writing to a string fails only if a part's own formatting does, and every part is a string or a number.
    page.render().unwrap_or_default()
}

fn by_plan(records: &[Record]) -> Vec<Record> {
    let mut records = records.to_vec();
    records.sort_by_key(|r| (r.combination, r.trial.repeat));
    records
}

fn title(runs: &[Run<'_>]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for record in runs.iter().flat_map(|r| r.records) {
        let kind = record.trial.workload.kind().name();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.as_slice() {
        [] => "linerate: no records".to_owned(),
        few if few.len() <= 3 => format!("linerate: {}", few.join(", ")),
        many => format!("linerate: {} workloads", many.len()),
    }
}

fn run_part(run: &Run<'_>) -> RunPart {
    RunPart {
        name: run.name.clone(),
        asked: asked::asked(run),
        tables: tables(run.records),
        commands: again::commands(run),
    }
}

fn verdict_part(table: &VerdictTable) -> VerdictPart<'_> {
    let mut known: Option<&str> = None;
    let rows = table.rows.iter().map(|row| {
        let trial = if known == Some(&row.trial) { "" } else { &row.trial };
        known = Some(&row.trial);
        let notes = notes(row);
        match &row.judgement {
            Judgement::Judged(judged) => VerdictCells {
                trial,
                metric: &row.metric,
                better: better_text(judged.better),
                base: figure(judged.base, &row.unit),
                new: figure(judged.new, &row.unit),
                effect: effect(judged.effect_percent),
                interval: interval_text(judged),
                verdict: judged.verdict.name(),
                notes,
            },
            Judgement::Refused(_) => VerdictCells {
                trial,
                metric: &row.metric,
                better: "",
                base: String::new(),
                new: String::new(),
                effect: String::new(),
                interval: String::new(),
                verdict: "not judged",
                notes,
            },
        }
    });
    VerdictPart {
        rows: rows.collect(),
        heading: heading(table),
        outcome: outcome(table),
        interval_head: format!("{} % interval", table.confidence_percent),
    }
}

/// More plots of one part than this are shown when asked for.
const MOST_OPEN: usize = 8;

fn section(
    kind: Kind,
    samples: &[Sample<'_>],
    options: &HtmlOptions<'_>,
    ids: &mut usize,
) -> Option<Section> {
    let of_kind: Vec<Sample<'_>> = samples.iter().filter(|s| Kind::of(s.record) == kind).copied().collect();
    if of_kind.is_empty() {
        return None;
    }
    let roles = roles(independent(varied(&of_kind), &of_kind));
    let by_factor = match &roles {
        Some(roles) => by_factor::charts(kind, &of_kind, roles, options.interval.as_ref()),
        None => (Vec::new(), None),
    };
    let parts = [
        ("What it carried and what it cost", by_factor),
        ("Latency", latency::charts(&of_kind, roles.as_ref())),
        ("CPU by core", cores::charts(&of_kind, roles.as_ref())),
        ("Over time", over_time::charts(&of_kind, roles.as_ref())),
    ];
    let parts =
        parts.into_iter().filter(|(_, (charts, _))| !charts.is_empty()).map(|(title, (charts, note))| {
            PlotPart {
                title,
                note,
                is_open: charts.len() <= MOST_OPEN || title == "What it carried and what it cost",
                figures: charts.iter().map(|chart| drawn(chart, ids)).collect(),
            }
        });
    Some(Section { title: kind.title(), parts: parts.collect() })
}

fn drawn(chart: &Chart, ids: &mut usize) -> Figure {
    *ids += 1;
    let mut legend: Vec<LegendItem> = Vec::new();
    for series in chart.series.iter().filter(|s| !s.name.is_empty()) {
        if !legend.iter().any(|item| item.name == series.name) {
            let marker = chart.marker(series.style);
            legend.push(LegendItem {
                style: series.style % theme::SERIES_COLOURS,
                marker,
                name: series.name.clone(),
            });
        }
    }
    Figure {
        svg: svg(chart, &format!("p{ids}")),
        title: chart.title.clone(),
        description: chart.description.clone(),
        legend,
        table: chart.figures(),
    }
}

impl Chart {
    fn marker(&self, style: usize) -> &'static str {
        use super::chart::Form;
        match self.form {
            Form::Lines | Form::Trend => MARKERS[style % MARKERS.len()],
            Form::Steps | Form::Bars | Form::Stacked { .. } => MARKERS[1],
        }
    }
}

fn trend_part(trend: &linerate_model::trend::Trend, ids: &mut usize) -> TrendPart {
    *ids += 1;
    let chart = crate::trend::chart(trend);
    TrendPart {
        svg: svg(&chart, &format!("p{ids}")),
        title: chart.title.clone(),
        table: crate::trend::changes(trend),
    }
}

fn hazards(records: &[Record]) -> Vec<HazardPart> {
    let parts = crate::hazards::group(records).into_iter().map(|group| HazardPart {
        kind: group.hazard.kind.name(),
        place: group.place(records.len()),
        evidence: group.evidence(),
        cure: group.hazard.cure.clone(),
    });
    parts.collect()
}
