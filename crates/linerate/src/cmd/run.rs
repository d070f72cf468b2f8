//! `linerate run`: measures between two nodes.

use linerate_model::exit::ExitCode;
use linerate_model::record::Outcome;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::measure::{Manner, Work, measure};
use crate::{output, plan_text, request};

pub(crate) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let manner = Manner { store: &args.store, keep_lab: args.nodes.keep_lab, quiet: args.output.quiet };
    let as_experiment = args.experiment.file.is_some() || args.experiment.resume.is_some();
    let measured = match &args.experiment.resume {
        Some(run) => measure(&mut Work::Resume(run), &manner)?,
        None => {
            let asked = request::asked(&args)?;
            if args.experiment.plan {
                output::print(&plan_text::text(&asked.check()?))?;
                return Ok(ExitCode::Good);
            }
            measure(&mut Work::New(&asked, Box::new(|_, _| {})), &manner)?
        }
    };
    output::show(&measured.records, &measured.plan.left_out, &args.output, as_experiment)?;
    Ok(match measured.outcome? {
        Outcome::Complete => ExitCode::Good,
        Outcome::Interrupted => ExitCode::Interrupted,
    })
}
