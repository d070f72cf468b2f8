//! The tables after a run.

use crate::uperf::front::progress::{figures, rule};
use crate::uperf::master::{HostResult, Outcome, PartResult};
use crate::uperf::strand::Durations;
use crate::uperf::text::{column, rate, size, time};
use crate::uperf::wire::GoodbyeKind;

/// One row of run statistics.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    elapsed_ns: u64,
    bytes: u64,
    operations: u64,
    errors: u64,
}

impl Row {
    fn bits_per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.bytes as f64 * 8e9 / self.elapsed_ns as f64 }
    }

    fn error_percent(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { 100.0 * self.errors as f64 / self.operations as f64 }
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name:<15}{} {} {} {:>12} {:>11.2}\n",
            column(&time(self.elapsed_ns as f64), 9),
            column(&size(self.bytes as f64), 10),
            column(&rate(self.bits_per_second()), 12),
            self.operations,
            self.error_percent(),
        )
    }

    fn plus(self, other: Self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns.max(other.elapsed_ns),
            bytes: self.bytes + other.bytes,
            operations: self.operations + other.operations,
            errors: self.errors + other.errors,
        }
    }
}

/// What slaves and master counted, side by side.
pub(crate) fn run_statistics(outcome: &Outcome) -> String {
    let mut text = format!(
        "\nRun Statistics\nHostname            Time       Data   Throughput   Operations      Errors\n{}\n",
        rule()
    );
    let rows: Vec<(&HostResult, Row)> = outcome
        .hosts
        .iter()
        .filter_map(|host| {
            let goodbye = host.goodbye.as_ref().ok()?;
            let row = Row {
                elapsed_ns: goodbye.elapsed_ns,
                bytes: goodbye.bytes,
                operations: goodbye.operations,
                errors: goodbye.errors,
            };
            Some((host, row))
        })
        .collect();
    for (host, row) in &rows {
        text += &row.line(&host.host);
    }
    let slaves = rows.iter().fold(Row::default(), |sum, (_, row)| sum.plus(*row));
    if rows.len() > 1 {
        text += &slaves.line("Total");
    }
    let master = Row {
        elapsed_ns: outcome.elapsed_ns,
        bytes: outcome.total.bytes,
        operations: outcome.total.operations,
        errors: outcome.errors.len() as u64,
    };
    text += &master.line("master");
    text.extend([format!("{}\n", rule())]);
    text + &difference(&slaves, &master)
}

fn difference(slaves: &Row, master: &Row) -> String {
    let percent = |slave: f64, master: f64| if slave == 0.0 { 0.0 } else { 100.0 - 100.0 * slave / master };
    let cell = |slave: f64, master: f64| format!("{:.2}%", percent(slave, master));
    format!(
        "Difference(%)  {:>9} {:>10} {:>12} {:>12} {:>11}\n\n",
        cell(slaves.elapsed_ns as f64, master.elapsed_ns as f64),
        cell(slaves.bytes as f64, master.bytes as f64),
        cell(slaves.bits_per_second(), master.bits_per_second()),
        cell(slaves.operations as f64, master.operations as f64),
        cell(slaves.error_percent(), master.error_percent()),
    )
}

/// A line for each group or strand, under a title.
pub(crate) fn parts(title: &str, parts: &[PartResult]) -> String {
    let lines = parts.iter().map(|part| figures(&part.name, part.total, part.elapsed_ns) + "\n");
    format!("\n{title}\n{}\n{}", rule(), lines.collect::<String>())
}

/// Mean, longest and shortest, a row for each name. uperf has no CPU time on Linux, so its column is 0.
pub(crate) fn durations(title: &str, rows: &[(String, Durations)]) -> String {
    let mut text =
        format!("\n{title:<8}{:>16}{:>12}{:>12}{:>12}{:>12}\n", "Count", "avg", "cpu", "max", "min");
    for (name, durations) in rows {
        let times = [durations.mean_ns(), 0, durations.max_ns, durations.min_ns];
        let cells: String = times.iter().map(|ns| column(&time(*ns as f64), 12)).collect();
        text.extend([format!("{name:<8}{:>16}{cells}\n", durations.count)]);
    }
    text
}

/// Warnings and errors of both ends, a line each.
pub(crate) fn messages(outcome: &Outcome) -> String {
    let mut lines: Vec<String> = outcome.errors.iter().map(|e| format!("** {e}")).collect();
    lines.extend(outcome.warnings.iter().map(|w| format!("** Warning: {w}")));
    for host in &outcome.hosts {
        match &host.goodbye {
            Ok(goodbye) if goodbye.kind != GoodbyeKind::Info => {
                let said = goodbye.text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.extend(said.map(|line| format!("** [{}] {line}", host.host)));
            }
            Ok(_) => {}
            Err(why) => lines.push(format!("Error saying goodbye with {}: {why}", host.host)),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uperf::strand::Total;
    use crate::uperf::wire::Goodbye;

    fn captured() -> Outcome {
        let goodbye = Goodbye {
            kind: GoodbyeKind::Error,
            elapsed_ns: 5_308_750_637,
            errors: 0,
            bytes: 5_366_169_600,
            operations: 655_053,
            text: "Warning: Send buffer: 100.00KB (Requested:50.00KB)  \n".into(),
        };
        Outcome {
            elapsed_ns: 5_304_500_000,
            total: Total { bytes: 5_366_169_600, operations: 655_063 },
            hosts: vec![HostResult { host: "127.0.0.1".into(), goodbye: Ok(goodbye) }],
            ..Outcome::default()
        }
    }

    #[test]
    fn run_statistics_are_laid_out_as_in_the_capture() {
        let text = run_statistics(&captured());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "Run Statistics");
        assert_eq!(lines[2], "Hostname            Time       Data   Throughput   Operations      Errors");
        assert_eq!(lines[4], "127.0.0.1          5.31s     5.00GB     8.09Gb/s       655053        0.00");
        assert_eq!(lines[5], "master             5.30s     5.00GB     8.09Gb/s       655063        0.00");
        assert_eq!(lines[7], "Difference(%)     -0.08%      0.00%        0.08%        0.00%       0.00%");
    }

    #[test]
    fn several_slaves_are_summed() {
        let mut outcome = captured();
        outcome.hosts.push(outcome.hosts[0].clone());
        assert!(
            run_statistics(&outcome).contains("Total              5.31s    10.00GB"),
            "{}",
            run_statistics(&outcome)
        );
    }

    #[test]
    fn durations_are_laid_out_as_in_the_capture() {
        let write = Durations { count: 1_643_210, sum_ns: 1_643_210 * 3640, max_ns: 2_580_000, min_ns: 5400 };
        let text = durations("Flowop", &[("write".into(), write)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "Flowop             Count         avg         cpu         max         min");
        assert_eq!(lines[2], "write            1643210      3.64us      0.00ns      2.58ms      5.40us");
    }

    #[test]
    fn messages_name_the_end_that_they_come_from() {
        assert_eq!(
            messages(&captured()),
            "** [127.0.0.1] Warning: Send buffer: 100.00KB (Requested:50.00KB)\n"
        );
    }
}
