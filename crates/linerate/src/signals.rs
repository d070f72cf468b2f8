//! Ctrl-C and SIGTERM: the first asks for an orderly stop, the second Ctrl-C ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// A flag that is set when a signal asks us to stop.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let register = || {
            // In this order: a signal that finds the flag set already ends the process.
            flag::register_conditional_shutdown(signal, 5, Arc::clone(&stop))?;
            flag::register(signal, Arc::clone(&stop))
        };
        register().map_err(|e| Failure::node(format!("handle signal {signal}: {e}")))?;
    }
    Ok(stop)
}
