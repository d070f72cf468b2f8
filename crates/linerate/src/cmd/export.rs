//! `linerate export`: runs out of the history as one document.

use std::fs::File;
use std::io::BufWriter;

use linerate_model::exit::ExitCode;
use linerate_store::Filter;

use crate::cli::ExportArgs;
use crate::failure::Failure;
use crate::history;

pub(crate) fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let store = history::open(args.db.db.as_deref())?;
    let runs = if args.runs.is_empty() {
        let all = store.runs(&Filter::default()).map_err(Failure::node)?;
        all.into_iter().map(|run| run.info.id).collect()
    } else {
        args.runs
    };
    let references: Vec<&str> = runs.iter().map(String::as_str).collect();
    let written = match &args.output {
        None => store.export(&references, BufWriter::new(std::io::stdout().lock())),
        Some(path) => {
            let file =
                File::create(path).map_err(|e| Failure::node(format!("write {}: {e}", path.display())))?;
            store.export(&references, BufWriter::new(file))
        }
    };
    written.map_err(Failure::node)?;
    Ok(ExitCode::Good)
}
