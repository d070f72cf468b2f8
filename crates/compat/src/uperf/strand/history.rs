//! The file of `-X`: a line for each flowop record.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_sys::{affinity, clock};

/// The open file, shared by all strands.
#[derive(Debug)]
pub(crate) struct History {
    file: Mutex<BufWriter<File>>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, nanoseconds.
    epoch_ns: u64,
}

impl History {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let epoch_ns = clock::realtime_ns() - clock::monotonic_ns();
        Ok(Self { file: Mutex::new(BufWriter::new(File::create(path)?)), epoch_ns })
    }

    /// Adds a line; the times are nanoseconds, the end on CLOCK_MONOTONIC.
    pub(crate) fn add(&self, end_ns: u64, duration_ns: u64) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (pid, tid) = (std::process::id(), affinity::thread_id());
        // An error shows at the end, when the file is flushed.
        let _late =
            writeln!(file, " {pid} {tid}  0 {} {duration_ns:>15}", self.epoch_ns.saturating_add(end_ns));
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
