//! The master: tells slaves what to do, does the other half, and gathers what both did.

pub(crate) mod conduct;
pub(crate) mod controls;
mod machine;
mod probe;
pub(crate) mod run;

pub use machine::{MasterEvent, MasterMachine};
pub use run::{
    HostResult, MasterError, MasterOptions, Outcome, PartResult, Progress, RunEvent, TransactionResult,
    run_profile,
};
