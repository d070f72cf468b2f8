//! `linerate import`: runs of a document into the history.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use linerate_model::exit::ExitCode;

use crate::cli::ImportArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::{print, printable};

pub(crate) fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let mut store = history::open(args.db.db.as_deref())?;
    for path in &args.files {
        let imported = if path == Path::new("-") {
            store.import(std::io::stdin().lock())
        } else {
            let file =
                File::open(path).map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
            store.import(BufReader::new(file))
        };
        // The reason may quote the file.
        let done =
            imported.map_err(|e| Failure::usage(printable(&format!("import {}: {e}", path.display()))))?;
        print(&format!(
            "{}: {} new runs with {} trials; {} runs and {} trials were there already\n",
            path.display(),
            done.runs_added,
            done.trials_added,
            done.runs_known,
            done.trials_known
        ))?;
    }
    Ok(ExitCode::Good)
}
