//! What a trial cost a node: CPU time, softirqs, thread times, counters of link and protocols, energy.
//!
//! [`Meter::sample`] reads everything at one instant, [`difference`] makes a
//! [`MeterReading`](linerate_model::counters::MeterReading) of two samples, and [`environment`](environment()) tells what machine it was.
//!
//! ```no_run
//! # fn main() -> Result<(), linerate_meter::MeterError> {
//! let mut meter = linerate_meter::Meter::open(Some("eth0"))?;
//! let before = meter.sample();
//! // ... traffic ...
//! let reading = linerate_meter::difference(&before, &meter.sample());
//! # let _ = reading; Ok(()) }
//! ```

mod counters64;
mod cpu;
mod difference;
mod driver;
mod energy;
mod environment;
mod error;
mod file;
mod genetlink;
mod growth;
mod hypervisor;
mod interrupts;
mod kernel_log;
mod link;
mod meter;
mod protocol;
mod qdisc;
mod queues;
mod rtnetlink;
mod snapshot;
mod source;
mod standard;
mod table;
mod threads;

pub use difference::difference;
pub use environment::environment;
pub use error::{MeterError, Result};
pub use kernel_log::{KernelLog, kernel_log};
pub use meter::{BusySample, Meter, Sample};
pub use snapshot::snapshot;
pub use threads::{ThreadTimes, thread_times};
