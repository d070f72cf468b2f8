//! `linerate report`: runs as one page of HTML.

use linerate_lab::stats::Confidence;
use linerate_lab::stats::interval::median_exact;
use linerate_lab::verdict_table::{Names, verdict_table};
use linerate_lab::verdicts::match_runs;
use linerate_model::exit::ExitCode;
use linerate_report::qualification::qualification_html;
use linerate_report::{HtmlOptions, Interval, Run};

use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::references::{Found, qualification_of, records_of};
use crate::{output, verdict};

pub(crate) fn run(args: ReportArgs) -> Result<ExitCode, Failure> {
    if let Some(page) = qualifications(&args)? {
        output::write_file(&args.output, &page)?;
        return Ok(ExitCode::Good);
    }
    let rule = verdict::rule(&args.against)?;
    let mut all: Vec<(String, Found)> = Vec::new();
    for reference in &args.runs {
        let mut found = records_of(reference, args.db.db.as_deref())?;
        found.records.sort_by_key(|r| (r.combination, r.block, r.sequence));
        all.push((reference.clone(), found));
    }
    let runs: Vec<Run<'_>> = all.iter().map(|(name, found)| run_of(name, found)).collect();
    // Two runs stand side by side to be compared.
    let verdicts = match all.as_slice() {
        [(base, old_found), (new, new_found)] => match match_runs(&old_found.records, &new_found.records) {
            Ok(matches) => {
                let names = Names { base: base.clone(), new: new.clone() };
                Some(verdict_table(&matches, &names, &rule, &[]).map_err(Failure::usage)?)
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

/// The page of qualifications; none where the first reference is a run of trials.
fn qualifications(args: &ReportArgs) -> Result<Option<String>, Failure> {
    let mut all = Vec::new();
    for reference in &args.runs {
        match qualification_of(reference, args.db.db.as_deref())? {
            Some(found) => all.push(found),
            None if all.is_empty() => return Ok(None),
            None => {
                return Err(Failure::usage(format!("report: {reference} is no qualification, others are")));
            }
        }
    }
    Ok((!all.is_empty()).then(|| qualification_html(&all)))
}

fn run_of<'a>(name: &str, found: &'a Found) -> Run<'a> {
    let command = found.command.as_ref().map(|words| words.join(" "));
    Run { name: name.to_owned(), records: &found.records, command, left_out: &found.left_out }
}
