//! Ctrl-C, SIGTERM and SIGHUP ask for an orderly stop; a second Ctrl-C, a second or more after the first, ends at once.
//!
//! The pause matters: a terminal, or a program like timeout(1), may signal both this process and its group, and a run must not
//! lose what it measured for having been asked twice in one moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// From this long after the first signal on, Ctrl-C ends at once.
const PAUSE: Duration = Duration::from_secs(1);

/// Set when the next Ctrl-C shall end the process. Signal handlers are the process's own, so this is too.
static IMPATIENT: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Set while any signal shall end the process: there is nothing yet that it would have to put back or take away.
static NOTHING_TO_LOSE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// While this lives a first signal ends the process at once, with exit code 5.
pub(crate) struct AtOnce(Arc<AtomicBool>);

impl AtOnce {
    pub(crate) fn begin() -> Self {
        let flag = Arc::clone(NOTHING_TO_LOSE.get_or_init(Arc::default));
        flag.store(true, Ordering::Relaxed);
        Self(flag)
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A flag that is set when a signal asks us to stop. Starts no thread.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let register = || {
        flag::register_conditional_shutdown(SIGINT, 5, Arc::clone(IMPATIENT.get_or_init(Arc::default)))?;
        [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(|signal| {
            let nothing_to_lose = Arc::clone(NOTHING_TO_LOSE.get_or_init(Arc::default));
            flag::register_conditional_shutdown(signal, 5, nothing_to_lose)?;
            flag::register(signal, Arc::clone(&stop)).map(|_id| ())
        })
    };
    register().map_err(|e: std::io::Error| Failure::node(format!("handle signals: {e}")))?;
    Ok(stop)
}

/// Lets a later Ctrl-C end at once. Starts a thread, so not before an ordinary user's lab is built.
pub(crate) fn arm_second(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    let impatient = Arc::clone(IMPATIENT.get_or_init(Arc::default));
    let wait = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(PAUSE);
        impatient.store(true, Ordering::Relaxed);
    };
    // Without the thread a second Ctrl-C does no more than the first.
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}
