//! The columns of each kind of table.

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::limit::Limiter;
use linerate_model::summary::{Direction, LatencySummary, LossSummary, MachineCost, percent};
use linerate_model::trial::{Family, Side};
use linerate_model::units::total;
use linerate_model::workload::Workload;

use super::TableKind;
use super::factors::{FactorUse, use_of};
use super::grid::Layout;
use super::rows::{Row, spread};
use crate::numbers::{self, BIT_RATES, TIMES, Unit, column_unit};
use crate::trial_text::FACTORS;

/// A column: head, and how a row's cell is made.
pub(super) struct Column<'a> {
    /// Upper and lower line of its head.
    pub(super) head: [String; 2],
    /// What it holds.
    pub(super) content: Content<'a>,
    /// When the table is too wide this column gives way to a line below the row: first 1, then 2 ...; 0 stays.
    pub(super) gives_way: u8,
    /// How its cell's text is told in that line.
    note: Box<dyn Fn(&str) -> String + 'a>,
}

/// A number of a trial, where it has one.
type TrialFigure<'a> = Box<dyn Fn(&Record) -> Option<f64> + 'a>;
type LatencyFigure = fn(&LatencySummary) -> u64;
type EndCost = fn(&Record) -> Option<&MachineCost>;

/// What a column holds.
pub(super) enum Content<'a> {
    /// Words, of a trial only.
    Text(Box<dyn Fn(&Record) -> String + 'a>),
    /// The workload's name, or what else the row is.
    RowName,
    /// A number that can be shown for a trial and, as their median, for its repeats.
    Number {
        /// The number of a trial.
        of_trial: TrialFigure<'a>,
        /// The number of a direction.
        of_direction: Option<fn(&Direction) -> f64>,
        /// As text.
        show: Show,
    },
}

/// How a number is shown.
#[derive(Clone, Copy)]
pub(super) enum Show {
    /// By a function of the number alone.
    By(fn(f64) -> String),
    /// In the column's unit.
    In(Unit),
}

impl Show {
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::By(show) => show(value),
            Self::In(unit) => unit.show(value),
        }
    }
}

impl<'a> Column<'a> {
    fn text(head: [&str; 2], of_trial: impl Fn(&Record) -> String + 'a) -> Self {
        Self {
            head: head.map(str::to_owned),
            content: Content::Text(Box::new(of_trial)),
            gives_way: 0,
            note: Box::new(str::to_owned),
        }
    }

    fn number(head: [&str; 2], show: Show, of_trial: impl Fn(&Record) -> Option<f64> + 'a) -> Self {
        let content = Content::Number { of_trial: Box::new(of_trial), of_direction: None, show };
        Self { head: head.map(str::to_owned), content, gives_way: 0, note: Box::new(str::to_owned) }
    }

    fn by_direction(mut self, figure: fn(&Direction) -> f64) -> Self {
        if let Content::Number { of_direction, .. } = &mut self.content {
            *of_direction = Some(figure);
        }
        self
    }

    fn gives_way(mut self, rank: u8, note: impl Fn(&str) -> String + 'a) -> Self {
        self.gives_way = rank;
        self.note = Box::new(note);
        self
    }

    /// The row's cell as words for the line below it.
    pub(super) fn note(&self, row: &Row<'_>) -> Option<String> {
        let cell = self.cell(row);
        (!cell.is_empty()).then(|| (self.note)(&cell))
    }

    /// The text of a row's cell; empty where the row has no such thing.
    pub(super) fn cell(&self, row: &Row<'_>) -> String {
        match (&self.content, row) {
            (Content::RowName, Row::Trial(r)) => r.trial.workload.kind().name().to_owned(),
            (Content::RowName, Row::Direction(d)) => match d.from {
                Side::Dut => "  dut sends".to_owned(),
                Side::Peer => "  peer sends".to_owned(),
            },
            (Content::RowName, Row::Median(_)) => "  median".to_owned(),
            (Content::Text(of_trial), Row::Trial(r)) => of_trial(r),
            (Content::Text(_), _) => String::new(),
            (Content::Number { of_trial, of_direction, show }, row) => {
                let value = match row {
                    Row::Trial(r) => of_trial(r),
                    Row::Direction(d) => of_direction.map(|figure| figure(d)),
                    Row::Median(all) => spread(all.iter().filter_map(|r| of_trial(r))).map(|s| s.median),
                };
                value.map(|v| show.text(v)).unwrap_or_default()
            }
        }
    }

    /// Whether its cells stand to the left.
    pub(super) fn is_left(&self) -> bool {
        matches!(self.content, Content::RowName) || (self.head[1] == "limited by")
    }
}

/// The columns of a table in the given layout. `evidence` says that limits are told below the rows.
pub(super) fn columns<'a>(
    kind: TableKind,
    records: &[&'a Record],
    layout: Layout,
    evidence: bool,
) -> Vec<Column<'a>> {
    let mut columns = Vec::new();
    identity(&mut columns, records, layout);
    factors(&mut columns, records);
    match kind {
        TableKind::TcpStreams => {
            columns.push(goodput(records));
            columns.push(packets().gives_way(4, |n| format!("{n} packets/s")));
            cpu(&mut columns, records, "us/KB", |c| c.service_demand_us_per_kib);
            columns.push(copied().gives_way(1, |n| format!("{n} % of the zero-copy sends copied")));
            columns.push(retransmits());
        }
        TableKind::UdpStreams => {
            columns.push(goodput(records));
            columns.push(packets());
            columns.push(lost());
            columns
                .push(late(["re-", "ordered"], |l| l.reordered).gives_way(1, |n| format!("{n} reordered")));
            columns.push(
                late(["dupli-", "cates"], |l| l.duplicates).gives_way(1, |n| format!("{n} duplicates")),
            );
            columns.push(jitter(records));
            cpu(&mut columns, records, "us/KB", |c| c.service_demand_us_per_kib);
        }
        TableKind::Transactions => {
            columns.push(Column::number(["trans-", "act./s"], Show::By(numbers::count), |r| {
                r.summary.transactions_per_second
            }));
            if records.iter().any(|r| moves_bulk(&r.trial.workload)) {
                let goodput = goodput(records);
                let unit = goodput.head[1].clone();
                columns.push(goodput.gives_way(1, move |n| format!("goodput {n} {unit}")));
            }
            latency(&mut columns, records);
            cpu(&mut columns, records, "us/tr", |c| c.service_demand_us_per_transaction);
            columns.push(lost());
            columns.push(retransmits_if_any().gives_way(1, |n| format!("{n} retransmits")));
        }
    }
    if !evidence {
        let short = layout.short_limits;
        let limit = move |r: &Record| {
            if short { short_name(r.limit.limiter) } else { r.limit.limiter.name() }.to_owned()
        };
        columns
            .push(Column::text(["", "limited by"], limit).gives_way(2, |name| format!("limited by {name}")));
    }
    columns
}

fn identity(columns: &mut Vec<Column<'_>>, records: &[&Record], layout: Layout) {
    columns.push(Column {
        head: ["", "workload"].map(str::to_owned),
        content: Content::RowName,
        gives_way: 0,
        note: Box::new(str::to_owned),
    });
    if records.iter().any(|r| r.trial.repeat > 0) {
        columns.push(Column::text(["", "rep"], |r| (r.trial.repeat + 1).to_string()));
    }
    let family = records[0].trial.family;
    if records.iter().any(|r| r.trial.family != family) {
        columns.push(Column::text(["", "IP"], |r| match r.trial.family {
            Family::V4 => "4".to_owned(),
            Family::V6 => "6".to_owned(),
        }));
    }
    let size = |r: &Record| r.trial.workload.size_text();
    if layout.merged_streams {
        columns
            .push(Column::text(["size x", "streams"], move |r| format!("{} x{}", size(r), r.trial.streams)));
    } else {
        columns.push(Column::text(["", "size"], size));
        columns.push(Column::text(["", "streams"], |r| r.trial.streams.to_string()));
    }
}

/// A column for each factor that varies.
fn factors(columns: &mut Vec<Column<'_>>, records: &[&Record]) {
    for factor in FACTORS.iter().filter(|f| use_of(f, records) == FactorUse::Varies) {
        let column = Column::text(["", factor.name], |r| (factor.value)(&r.trial));
        columns.push(column.gives_way(3, |value| factor.phrase(value)));
    }
    for key in settings(records) {
        let shown = key.clone();
        let column = Column::text(["", &key], move |r| factor::level(&r.trial, &shown).unwrap_or_default());
        columns.push(column.gives_way(3, move |value| format!("{key}={value}")));
    }
}

/// The settings that any of the records changes, by key.
fn settings(records: &[&Record]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for setting in records.iter().flat_map(|r| &r.trial.settings) {
        if !keys.contains(&setting.key) {
            keys.push(setting.key.clone());
        }
    }
    keys
}

fn goodput<'a>(records: &[&Record]) -> Column<'a> {
    let unit = column_unit(&BIT_RATES, records.iter().map(|r| r.summary.goodput_bits_per_second));
    Column::number(["goodput", unit.name], Show::In(unit), |r| Some(r.summary.goodput_bits_per_second))
        .by_direction(|d| d.goodput_bits_per_second)
}

fn packets<'a>() -> Column<'a> {
    Column::number(["packets", "/s"], Show::By(numbers::count), |r| r.summary.packets_per_second)
        .by_direction(|d| d.packets_per_second.unwrap_or_default())
}

/// The share of zero-copy sends that the kernel copied after all.
fn copied<'a>() -> Column<'a> {
    Column::number(["copied", "%"], Show::By(numbers::part_percent), copied_percent)
}

/// The share of a record's zero-copy sends that the kernel copied after all, percent; `None` without such sends.
pub(crate) fn copied_percent(record: &Record) -> Option<f64> {
    let readings = [&record.dut.reading, &record.peer.reading];
    let sends = || readings.into_iter().flat_map(|r| &r.streams).filter_map(|s| s.zerocopy);
    let completed = total(sends().map(|z| z.completed_calls));
    (completed > 0).then(|| percent(total(sends().map(|z| z.copied_calls)), completed))
}

fn retransmits<'a>() -> Column<'a> {
    Column::number(["re-", "trans"], Show::By(numbers::exact_count), |r| {
        r.summary.retransmits.map(|n| n as f64)
    })
}

fn retransmits_if_any<'a>() -> Column<'a> {
    Column::number(["re-", "trans"], Show::By(numbers::exact_count), |r| {
        r.summary.retransmits.filter(|&n| n > 0).map(|n| n as f64)
    })
}

fn lost<'a>() -> Column<'a> {
    Column::number(["lost", "%"], Show::By(numbers::part_percent), |r| {
        r.summary.loss.as_ref().map(|l| l.lost_percent)
    })
}

/// A count of datagrams out of place; a cell only where there are any.
fn late<'a>(head: [&str; 2], figure: fn(&LossSummary) -> u64) -> Column<'a> {
    Column::number(head, Show::By(numbers::exact_count), move |r| {
        r.summary.loss.as_ref().map(figure).filter(|&n| n > 0).map(|n| n as f64)
    })
}

fn jitter<'a>(records: &[&Record]) -> Column<'a> {
    let of = |r: &Record| r.summary.loss.as_ref().and_then(|l| l.jitter_ns).map(|ns| ns as f64);
    let unit = column_unit(&TIMES, records.iter().filter_map(|r| of(r)));
    Column::number(["jitter", unit.name], Show::In(unit), of)
        .gives_way(1, move |n| format!("jitter {n} {}", unit.name))
}

fn latency(columns: &mut Vec<Column<'_>>, records: &[&Record]) {
    let medians = records.iter().filter_map(|r| r.summary.latency.as_ref()).map(|l| l.p50_ns as f64);
    let unit = column_unit(&TIMES, medians);
    let figures: [(&str, LatencyFigure); 4] =
        [("p50", |l| l.p50_ns), ("p99", |l| l.p99_ns), ("p99.9", |l| l.p999_ns), ("max", |l| l.max_ns)];
    for (name, figure) in figures {
        columns.push(Column::number([name, unit.name], Show::In(unit), move |r| {
            r.summary.latency.as_ref().map(|l| figure(l) as f64)
        }));
    }
}

fn cpu(
    columns: &mut Vec<Column<'_>>,
    records: &[&Record],
    unit: &str,
    demand: fn(&MachineCost) -> Option<f64>,
) {
    let percent = Show::By(numbers::cpu_percent);
    if records[0].summary.cpu.shared.is_some() {
        columns.push(Column::number(["CPU%", "both"], percent, |r| {
            r.summary.cpu.shared.as_ref().map(|c| c.busy_percent)
        }));
        columns.push(Column::number(["CPU%", "dut*"], percent, |r| Some(r.summary.cpu.dut_threads_percent)));
        columns
            .push(Column::number(["CPU%", "peer*"], percent, |r| Some(r.summary.cpu.peer_threads_percent)));
        columns.push(Column::number([unit, "both"], Show::By(numbers::demand), move |r| {
            r.summary.cpu.shared.as_ref().and_then(demand)
        }));
        return;
    }
    let ends: [(&str, EndCost); 2] =
        [("dut", |r| r.summary.cpu.dut.as_ref()), ("peer", |r| r.summary.cpu.peer.as_ref())];
    for (name, cost) in ends {
        columns.push(Column::number(["CPU%", name], percent, move |r| cost(r).map(|c| c.busy_percent)));
    }
    for (name, cost) in ends {
        let figure = move |r: &Record| cost(r).and_then(demand);
        columns.push(Column::number([unit, name], Show::By(numbers::demand), figure));
    }
}

/// Messages so large that their goodput says something.
pub(crate) fn moves_bulk(workload: &Workload) -> bool {
    const BULK_BYTES: u64 = 1024;
    match workload {
        Workload::TcpRr(w) => w.request.0.max(w.response.0) >= BULK_BYTES,
        Workload::TcpCrr(w) => w.request.0.max(w.response.0) >= BULK_BYTES,
        Workload::UdpRr(w) => w.request.0.max(w.response.0) >= BULK_BYTES,
        Workload::Profile(_) => true,
        _ => false,
    }
}

/// At most 12 characters.
fn short_name(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::ReceiveWindow => "recv. window",
        Limiter::CongestionWindow => "cong. window",
        Limiter::Pace => "pace asked",
        other => other.name(),
    }
}
