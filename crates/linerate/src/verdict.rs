//! Verdicts on the command line: what they are held against, how they are shown, and the exit code they give.

use linerate_lab::figures::METRICS;
use linerate_lab::stats::{Confidence, Rule};
use linerate_model::exit::ExitCode;
use linerate_model::verdict::{Verdict, VerdictTable};

use crate::cli::{AgainstArgs, VerdictArgs};
use crate::failure::Failure;
use crate::output;
use crate::request::percent;

/// What verdicts are held against.
pub(crate) fn rule(args: &AgainstArgs) -> Result<Rule, Failure> {
    let confidence_percent = percent(&args.confidence, "--confidence")?;
    let confidence = Confidence::from_percent(confidence_percent)
        .map_err(|e| Failure::usage(format!("--confidence: {e}")))?;
    let margin = percent(&args.margin, "--margin")? / 100.0;
    if margin >= 1.0 {
        return Err(Failure::usage(format!("--margin {}: must be below 100 %", args.margin)));
    }
    Ok(Rule { confidence, margin })
}

/// The verdicts that make a failure.
pub(crate) fn failing(args: &VerdictArgs) -> Result<Vec<Verdict>, Failure> {
    let parse = |word: &String| {
        let found = Verdict::ALL.into_iter().find(|v| v.name() == word);
        found.ok_or_else(|| {
            Failure::usage(format!("--fail-on {word}: must be worse, better, undecided or same"))
        })
    };
    args.fail_on.iter().map(parse).collect()
}

/// The metrics that are judged; none are the usual ones.
pub(crate) fn metrics(args: &VerdictArgs) -> Result<&[String], Failure> {
    match args.metric.iter().find(|metric| !METRICS.contains(&metric.as_str())) {
        Some(unknown) => Err(Failure::usage(format!("--metric {unknown}: there are {}", METRICS.join(", ")))),
        None => Ok(&args.metric),
    }
}

/// Shows a table; gives the exit code.
pub(crate) fn show(
    table: &VerdictTable,
    args: &VerdictArgs,
    failing: &[Verdict],
) -> Result<ExitCode, Failure> {
    let text = if args.json {
        let json = serde_json::to_string_pretty(table)
            .map_err(|e| Failure::node(format!("write verdicts as JSON: {e}")))?;
        json + "\n"
    } else {
        linerate_report::verdicts_text(table, output::table_options(false).width)
    };
    output::print(&text)?;
    let failed = failing.iter().any(|verdict| table.count(*verdict) > 0);
    Ok(if failed { ExitCode::Failed } else { ExitCode::Good })
}
