//! The master: tells slaves what to do, does the other half, and gathers what both did.

mod conduct;
mod controls;
mod machine;
mod probe;
mod run;

pub use machine::{MasterEvent, MasterMachine};
pub use run::{
    HostResult, MasterError, MasterOptions, Outcome, PartResult, Progress, RunEvent, TransactionResult,
    run_profile,
};
