//! `linerate show`: a run of the history, or of a file of records, again.

use std::path::Path;

use linerate_model::exit::ExitCode;
use linerate_model::qualification::Qualification;
use linerate_report::qualification::{qualification_json, qualification_text};

use crate::cli::ShowArgs;
use crate::failure::Failure;
use crate::output::{print, printable};
use crate::{history, output, references};

pub(crate) fn run(args: ShowArgs) -> Result<ExitCode, Failure> {
    if let Some(found) = references::qualification_of(&args.run, args.db.db.as_deref())? {
        print(&qualification(&found, &args)?)?;
        return Ok(ExitCode::Good);
    }
    if Path::new(&args.run).is_file() {
        output::show(&references::records_of(&args.run, None)?.records, &[], &args.output, false)?;
        return Ok(ExitCode::Good);
    }
    let store = history::open(args.db.db.as_deref())?;
    let run = store.run(&args.run).map_err(Failure::usage)?;
    let records = store.records(&run.info.id).map_err(Failure::node)?;
    if !args.output.json && !args.output.csv {
        let tags =
            if run.tags.is_empty() { String::new() } else { format!(", tags {}", run.tags.join(", ")) };
        let ended = run.outcome.map_or("not ended", |outcome| outcome.name());
        let (id, begun, command) = (&run.info.id, &run.info.started_at, run.info.command.join(" "));
        let head = format!("run {id}: {ended}, begun {begun}, seed {}{tags}", run.info.seed);
        print(&format!("{}\n{}\n\n", printable(&head), printable(&command)))?;
    }
    output::show(&records, &history::left_out(&run.info), &args.output, false)?;
    Ok(ExitCode::Good)
}

fn qualification(found: &Qualification, args: &ShowArgs) -> Result<String, Failure> {
    if args.output.csv {
        return Err(Failure::usage("show: a qualification has no CSV form; use --json"));
    }
    let text = if args.output.json {
        qualification_json(found)
    } else {
        qualification_text(found, output::table_options(false).width, false)
    };
    Ok(text)
}
