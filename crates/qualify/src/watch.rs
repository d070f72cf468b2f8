//! What ends a case before its end: the user, or its time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::trouble::Trouble;

/// Asked before each request to a node.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    give_up: Rc<Cell<Option<Instant>>>,
}

impl Watch {
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, give_up: Rc::default() }
    }

    /// Gives what follows so much time; `None` takes the limit away.
    pub(crate) fn limit(&self, limit: Option<Duration>) {
        self.give_up.set(limit.map(|limit| Instant::now() + limit));
    }

    /// Whether the run is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Goes on, or says why not.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        if self.is_stopped() {
            return Err(Trouble::Stopped);
        }
        match self.give_up.get() {
            Some(at) if Instant::now() >= at => Err(Trouble::Late),
            _ => Ok(()),
        }
    }

    /// Sleeps, unless something ends the case meanwhile.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), Trouble> {
        const STEP: Duration = Duration::from_millis(50);
        let until = Instant::now() + time;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}
