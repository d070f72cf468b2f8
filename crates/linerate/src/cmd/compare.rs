//! `linerate compare`: what changed between two runs, or two levels of one factor of a run.

use linerate_lab::verdict_table::{Names, verdict_table};
use linerate_lab::verdicts::{Match, match_levels, match_runs};
use linerate_model::exit::ExitCode;
use linerate_report::qualification::{compare_qualifications, comparison_text};

use crate::cli::CompareArgs;
use crate::failure::Failure;
use crate::output::{self, print};
use crate::references::{qualification_of, records_of};
use crate::verdict;

pub(crate) fn run(args: CompareArgs) -> Result<ExitCode, Failure> {
    if let Some(done) = qualifications(&args)? {
        return Ok(done);
    }
    let rule = verdict::rule(&args.verdict.against)?;
    let failing = verdict::failing(&args.verdict)?;
    let metrics = verdict::metrics(&args.verdict)?;
    let base = records_of(&args.base, args.db.db.as_deref())?.records;
    let new;
    let (matches, names): (Vec<Match<'_>>, Names) = match (&args.new, &args.factor) {
        (_, Some(factor)) => {
            let (name, levels) = parse_factor(factor)?;
            let (matches, (base, new)) = match_levels(&base, name, levels).map_err(Failure::usage)?;
            (matches, Names { base: format!("{name}={base}"), new: format!("{name}={new}") })
        }
        (Some(reference), None) => {
            new = records_of(reference, args.db.db.as_deref())?.records;
            let matches = match_runs(&base, &new).map_err(Failure::usage)?;
            (matches, Names { base: args.base.clone(), new: reference.clone() })
        }
        (None, None) => {
            let why = "name a second run, or the --factor whose levels are to be compared";
            return Err(Failure::usage(format!("compare {}: {why}", args.base)));
        }
    };
    let table = verdict_table(&matches, &names, &rule, metrics).map_err(Failure::usage)?;
    verdict::show(&table, &args.verdict, &failing)
}

/// Two qualifications: cases instead of verdicts. None where the base is a run of trials.
fn qualifications(args: &CompareArgs) -> Result<Option<ExitCode>, Failure> {
    let db = args.db.db.as_deref();
    let Some(base) = qualification_of(&args.base, db)? else { return Ok(None) };
    let Some(reference) = &args.new else {
        return Err(Failure::usage(format!(
            "compare {}: name the qualification to hold against it",
            args.base
        )));
    };
    let Some(new) = qualification_of(reference, db)? else {
        return Err(Failure::usage(format!("compare: {} is a qualification, {reference} is not", args.base)));
    };
    print(&comparison_text(&base, &new, output::table_options(false).width, false))?;
    let worse = compare_qualifications(&base, &new).is_worse();
    Ok(Some(if worse { ExitCode::Failed } else { ExitCode::Good }))
}

/// `dut.tso`, or `send=write,zerocopy`.
type Factor<'a> = (&'a str, Option<(String, String)>);

fn parse_factor(text: &str) -> Result<Factor<'_>, Failure> {
    let Some((name, levels)) = text.split_once('=') else { return Ok((text, None)) };
    match levels.split(',').collect::<Vec<_>>().as_slice() {
        [base, new] => Ok((name, Some(((*base).to_owned(), (*new).to_owned())))),
        _ => Err(Failure::usage(format!("--factor {text}: name two levels, as in {name}=on,off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_may_name_its_levels() {
        assert_eq!(parse_factor("dut.tso").ok(), Some(("dut.tso", None)));
        let levels = Some(("1".to_owned(), "8".to_owned()));
        assert_eq!(parse_factor("streams=1,8").ok(), Some(("streams", levels)));
        assert!(parse_factor("streams=1,2,3").is_err());
    }
}
