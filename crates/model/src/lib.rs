//! The nouns of linerate as plain data: what is asked for, what was measured, and what is stored.
//!
//! No I/O and no clock here. Everything that crosses a process border (agent messages, stored records,
//! reports) is made of these types, so their serde form is an interface: see `schema/record-v1.json`.
//!
//! Units are in names (`_ns`, `_bytes`, `_bits_per_second`) or in types ([`units::ByteCount`], [`units::Rate`]).

pub mod bench;
pub mod counters;
pub mod environment;
pub mod event;
pub mod exit;
pub mod experiment;
pub mod factor;
pub mod fuzz;
pub mod guest;
pub mod hazard;
pub mod latency;
pub mod limit;
pub mod node;
pub mod profile;
pub mod qualification;
pub mod reading;
pub mod record;
pub mod summary;
pub mod trend;
pub mod trial;
pub mod units;
pub mod values;
pub mod verdict;
pub mod workload;

pub use node::NodeUrl;
pub use record::Record;
pub use trial::Trial;
pub use workload::Workload;
