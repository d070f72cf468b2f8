//! `linerate report`: runs as one page of HTML.

use linerate_lab::stats::Confidence;
use linerate_lab::stats::interval::median_exact;
use linerate_lab::verdict_table::{Names, verdict_table};
use linerate_lab::verdicts::match_runs;
use linerate_model::Record;
use linerate_model::exit::ExitCode;
use linerate_report::{HtmlOptions, Interval, Run};

use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::references::records_of;
use crate::{output, verdict};

pub(crate) fn run(args: ReportArgs) -> Result<ExitCode, Failure> {
    let rule = verdict::rule(&args.against)?;
    let mut all: Vec<(String, Vec<Record>, Option<String>)> = Vec::new();
    for reference in &args.runs {
        let found = records_of(reference, args.db.db.as_deref())?;
        let command = found.command.map(|words| words.join(" "));
        let mut records = found.records;
        records.sort_by_key(|r| (r.combination, r.block, r.sequence));
        all.push((reference.clone(), records, command));
    }
    let runs: Vec<Run<'_>> = all
        .iter()
        .map(|(name, records, command)| Run { name: name.clone(), records, command: command.clone() })
        .collect();
    // Two runs stand side by side to be compared.
    let verdicts = match all.as_slice() {
        [(base, base_records, _), (new, new_records, _)] => match match_runs(base_records, new_records) {
            Ok(matches) => {
                let names = Names { base: base.clone(), new: new.clone() };
                Some(verdict_table(&matches, &names, &rule).map_err(Failure::usage)?)
            }
            Err(_) => None,
        },
        _ => None,
    };
    let confidence: Confidence = rule.confidence;
    let ends = move |values: &[f64]| {
        median_exact(values, confidence).ok().map(|interval| (interval.low, interval.high))
    };
    let name = format!("{} % confidence interval of the median", confidence.share() * 100.0);
    let options = HtmlOptions {
        title: args.title.clone(),
        verdicts: verdicts.as_ref(),
        interval: Some(Interval { name: &name, of: &ends }),
        ..HtmlOptions::default()
    };
    output::write_file(&args.output, &linerate_report::html(&runs, &options))?;
    Ok(ExitCode::Good)
}
