//! One file per subcommand.

pub(crate) mod agent;
pub(crate) mod lab;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod ttcp;
