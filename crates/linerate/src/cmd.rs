//! One file per subcommand.

pub(crate) mod ab;
pub(crate) mod agent;
pub(crate) mod compare;
pub(crate) mod export;
pub(crate) mod guest;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod install_aliases;
pub(crate) mod iperf3;
pub(crate) mod lab;
pub(crate) mod links;
pub(crate) mod netperf;
pub(crate) mod netserver;
pub(crate) mod qualify;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod tag;
pub(crate) mod trend;
pub(crate) mod ttcp;
pub(crate) mod uperf;
pub(crate) mod vm;
