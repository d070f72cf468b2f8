//! `linerate qualify`: qualifies a link and its driver.

mod args;
mod describe;
mod output;
mod place;
mod progress;

use std::process::ExitCode as Process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_lab::connect::Place;
use linerate_model::exit::ExitCode;
use linerate_model::qualification::{Ended, Qualification};
use linerate_qualify::catalogue::CATALOGUE;
use linerate_qualify::connect::{self, ConnectError};
use linerate_qualify::inject::{Injector, parse_faults};
use linerate_qualify::runner::{self, Course, RunError};
use linerate_qualify::selection::{self, Planned, Selection};
use linerate_qualify::{Event, Trouble};

pub(crate) use self::args::QualifyArgs;
use self::output::Output;
use self::place::Where;
use crate::failure::Failure;
use crate::{private, signals};

/// Runs it; kernel selftests are told by their own exit codes (`KSFT_PASS` and others in kselftest.h).
pub(crate) fn run(args: QualifyArgs) -> Result<Process, Failure> {
    let place = place::find(&args)?;
    let as_selftest = place.as_selftest;
    match carry_out(args, place) {
        Ok(Done::Code(code)) => Ok(code.into()),
        Ok(Done::Qualified(found)) if as_selftest => {
            Ok(Process::from(linerate_report::qualification::kselftest_exit(&found)))
        }
        Ok(Done::Qualified(found)) => Ok(code(&found).into()),
        Err(failure) if as_selftest => {
            const FAILED: u8 = 1;
            const SKIPPED: u8 = 4;
            let lacks_permission = matches!(failure.tell(), ExitCode::Permission);
            Ok(Process::from(if lacks_permission { SKIPPED } else { FAILED }))
        }
        Err(failure) => Err(failure),
    }
}

enum Done {
    Code(ExitCode),
    Qualified(Box<Qualification>),
}

fn carry_out(args: QualifyArgs, place: Where) -> Result<Done, Failure> {
    if let Some(id) = &args.explain {
        return describe::explain(id).map(|()| Done::Code(ExitCode::Good));
    }
    if args.list {
        return describe::list().map(|()| Done::Code(ExitCode::Good));
    }
    let selection = args.selection(&place.topology)?;
    let planned = selection::plan(&CATALOGUE, &selection).map_err(Failure::usage)?;
    if args.plan {
        return describe::plan(&planned, &selection).map(|()| Done::Code(ExitCode::Good));
    }
    let mut output = Output::new(&args)?;
    let qualified = qualify(&args, &place, planned, selection, &mut output)?;
    output.end(&qualified, &args.output)?;
    Ok(Done::Qualified(Box::new(qualified)))
}

fn qualify(
    args: &QualifyArgs,
    place: &Where,
    planned: Vec<Planned>,
    selection: Selection,
    output: &mut Output,
) -> Result<Qualification, Failure> {
    let stop = signals::stop_flag()?;
    // Before any thread: an ordinary user's lab needs a user namespace.
    let lab = if place.is_private() { Some(Place::private(1)?) } else { None };
    if let Some(Place::Loopback { reason: why, .. }) = &lab {
        return Err(Failure::permission(format!(
            "no private lab can be built ({why}): run as root, or allow user namespaces"
        )));
    }
    signals::arm_second(&stop);
    let qualified = joined(args, place, planned, selection, output, lab.as_ref(), &stop);
    if let Some(lab) = lab
        && let Some(kept) = private::leave(lab, args.keep_lab)?
    {
        kept.tell();
    }
    qualified
}

fn joined(
    args: &QualifyArgs,
    place: &Where,
    planned: Vec<Planned>,
    selection: Selection,
    output: &mut Output,
    lab: Option<&Place>,
    stop: &Arc<AtomicBool>,
) -> Result<Qualification, Failure> {
    let mut ends = place.ends(args, lab)?;
    let injector = match (&args.inject, lab) {
        (Some(faults), Some(Place::Lab(lab))) => {
            let faults = parse_faults(faults).map_err(Failure::usage)?;
            ends.medium = Some("injector".to_owned());
            Some(
                Injector::between(lab, &faults)
                    .map_err(|e| Failure::node(format!("put a NIC with faults between the ends: {e}")))?,
            )
        }
        (Some(_), _) => return Err(Failure::usage("--inject needs the private lab: name no PEER")),
        (None, _) => None,
    };
    let joined = connect::connect(&ends, stop)?;
    output.headline(&joined.headline());
    let seed = match args.seed {
        Some(seed) => seed,
        None => draw_seed()?,
    };
    let course = Course {
        planned,
        selection,
        seed,
        patience: if place.topology.slow { 4.0 } else { 1.0 },
        command: std::env::args().collect(),
        // The ends are joined and measured, and looked at after each case, by a card without faults.
        judging: injector.as_ref().map(Injector::switch),
    };
    let qualified = runner::run(joined, &course, &mut |event: Event<'_>| output.tell(event))?;
    if let Some(injector) = injector {
        injector.finish().map_err(|e| Failure::node(format!("the NIC with faults: {e}")))?;
    }
    Ok(qualified)
}

/// Below 2^53, so that every JSON reader keeps it.
fn draw_seed() -> Result<u64, Failure> {
    let id = linerate_lab::runner::run_id().map_err(Failure::from)?;
    u64::from_str_radix(&id[..13], 16).map_err(|e| Failure::node(format!("draw a seed: {e}")))
}

fn code(qualified: &Qualification) -> ExitCode {
    match &qualified.ended {
        Ended::Interrupted => ExitCode::Interrupted,
        Ended::Lost(_) => ExitCode::Node,
        _ if qualified.cases.iter().any(|case| case.outcome.is_bad()) => ExitCode::Failed,
        Ended::Complete | Ended::StoppedOnFail => ExitCode::Good,
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Node(error) => error.into(),
            ConnectError::Trouble(trouble) => trouble.into(),
            ConnectError::NoPrivilege(_) => Self::permission(error),
            ConnectError::Down { .. } | ConnectError::NoPeer { .. } => Self::node(error),
            _ => Self::usage(error),
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(error) | Trouble::Lost(error) => error.into(),
            other => Self::node(other),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Begin(trouble) => trouble.into(),
            other => Self::node(other),
        }
    }
}
