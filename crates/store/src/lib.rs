//! History in SQLite: append records, find them again by tag, link, driver, kernel and time.
//!
//! One file holds all runs (see [`default_path`]). Every [`Store::append`] is a transaction of its own that is on disk
//! when it returns, so a killed writer or a full disk loses at most the trial in flight. Several processes may
//! read and write at once: a writer waits for the others up to 30 s.
//!
//! A record is kept as the JSON text that it is, so that what a newer linerate put in it survives. Beside it stand the
//! columns that the filters look at, and its `summary` and `trial`, so that a trend over years reads no histogram.
//!
//! The text is not compressed: a minute of request/response with 2 000 latency buckets and 60 intervals on each node is
//! 66 kB (18 kB with gzip), so a gigabyte holds 15 000 such trials, and `sqlite3` with its JSON functions can look into them.
//!
//! ```no_run
//! use linerate_store::{Filter, RunInfo, RunOutcome, Store, default_path};
//! # fn example(info: RunInfo, record: linerate_model::Record) -> Result<(), linerate_store::StoreError> {
//! let mut store = Store::open(&default_path()?)?;
//! store.begin_run(&info)?;
//! store.append(&record)?;
//! store.end_run(&info.id, RunOutcome::Complete)?;
//! store.tag("last", "baseline")?;
//! for run in store.runs(&Filter { link: Some("eth*".to_owned()), ..Filter::default() })? {
//!     println!("{} {}", run.info.id, run.trials);
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod find;
mod import;
mod path;
mod qualification;
mod run;
mod schema;
mod series;
mod store;
mod time;
mod transfer;

pub use error::{ImportError, StoreError};
pub use find::Filter;
pub use path::default_path;
pub use run::{RunInfo, RunOutcome, RunSummary};
pub use series::{Metric, Point, UnknownMetric};
pub use store::Store;
pub use time::{BadTime, parse_time};
pub use transfer::{HISTORY_SCHEMA, Imported, MAX_IMPORT_BYTES};
