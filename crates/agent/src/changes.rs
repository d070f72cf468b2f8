//! What a session has changed on its node. It goes back when the session ends, however it ends; after SIGKILL the journal
//! has it, and the next linerate on the machine puts it back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linerate_link::LinkError;
use linerate_link::changes::Changes;
use linerate_link::restore::{Outcome, Report, Restored};
use linerate_link::{links, restore};
use linerate_model::bench::LinkAct;

use crate::protocol::{Applied, Refusal, Reply, StaleOptions};

/// A NIC that starts anew negotiates with its partner, which takes some seconds.
const CARRIER_LIMIT: Duration = Duration::from_secs(30);
/// How long an owner that lives may take to put its settings back.
const OWNERS_LIMIT: Duration = Duration::from_secs(3);
const OWNERS_POLL: Duration = Duration::from_millis(20);

/// The changes of one session; clones share them, so that a signal handler can put them back.
#[derive(Debug, Clone, Default)]
pub struct NodeChanges(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The session is over: nothing is changed any more.
    closed: bool,
    changes: Option<Changes>,
    /// More was changed than what `in_force` has.
    more: bool,
    /// What is in force, in the order in which it was asked for.
    in_force: Vec<(String, String)>,
}

impl NodeChanges {
    /// Makes these, and no others, the settings that differ from what they were before the session: puts back first what
    /// an earlier call changed. Where the link was up, waits until it has carrier again.
    ///
    /// # Errors
    /// The kernel's refusal. What was changed until then goes back with the next call, [`Self::restore`] or
    /// [`Self::close`].
    pub fn apply(&self, link: &str, settings: &[(String, String)]) -> Result<Applied, LinkError> {
        let mut state = self.state();
        state.check_open(link)?;
        let same = state.changes.as_ref().is_none_or(|changes| changes.link() == link);
        if same && !state.more && state.in_force == settings {
            return Ok(Applied::default());
        }
        let before = links::named(link)?;
        let carrier_changes = carrier_changes(link);
        state.put_back()?;
        if !settings.is_empty() {
            // Kept at once: a refusal half way must not lose what was changed by then.
            let changes = state.changes.insert(Changes::begin(link)?);
            for (key, value) in settings {
                changes.set(key, value)?;
            }
            state.in_force = settings.to_vec();
        }
        if before.up && before.carrier {
            links::wait_for_carrier(link, CARRIER_LIMIT)?;
        }
        Ok(Applied { changed: true, flapped: carrier_changes != self::carrier_changes(link) })
    }

    /// Changes one more setting, on top of what is in force. Where the link was up, waits until it has carrier again.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn set(&self, link: &str, key: &str, value: &str) -> Result<(), LinkError> {
        let before = links::named(link)?;
        self.state().more(link)?.set_on(link, key, value)?;
        if before.up && before.carrier && links::named(link)?.up {
            links::wait_for_carrier(link, CARRIER_LIMIT)?;
        }
        Ok(())
    }

    /// Acts upon links, on top of what is in force; what waits, waits until it is told to give up.
    ///
    /// # Errors
    /// An act that makes no sense, and the kernel's refusal.
    pub fn act(&self, act: &LinkAct, give_up: &AtomicBool) -> Result<(), LinkError> {
        if let LinkAct::AwaitCarrier { link, limit_ns } = act {
            // The state is not held meanwhile: a session that ends must be able to put back.
            return await_carrier(link, Duration::from_nanos(*limit_ns), give_up);
        }
        self.state().more("links")?.act(act)
    }

    /// Puts everything back; what did not go back is in the report.
    ///
    /// # Errors
    /// The links or the journal can't be used.
    pub fn restore(&self) -> Result<Report, LinkError> {
        self.state().restore()
    }

    /// Puts everything back for good: later changes are refused.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn close(&self) -> Result<Report, LinkError> {
        let mut state = self.state();
        state.closed = true;
        state.restore()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic half way leaves the journal's entries as they are, which is all that putting back needs.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_open(&self, what: &str) -> Result<(), LinkError> {
        if !self.closed {
            return Ok(());
        }
        let why = "the session is over".to_owned();
        Err(LinkError::Invalid { what: format!("change {what}"), why })
    }

    /// The changes, to add one more.
    fn more(&mut self, what: &str) -> Result<&mut Changes, LinkError> {
        // Every namespace has it, and changes are not bound to the link that they began with.
        const ANY_LINK: &str = "lo";
        self.check_open(what)?;
        self.more = true;
        match &mut self.changes {
            Some(changes) => Ok(changes),
            none => Ok(none.insert(Changes::begin(ANY_LINK)?)),
        }
    }

    fn restore(&mut self) -> Result<Report, LinkError> {
        self.in_force.clear();
        self.more = false;
        let report = self.changes.as_mut().map_or_else(|| Ok(Report::default()), Changes::restore)?;
        if report.is_complete() {
            self.changes = None;
        }
        Ok(report)
    }

    /// [`Self::restore`] where the next settings must start from what was there before.
    fn put_back(&mut self) -> Result<(), LinkError> {
        let report = self.restore()?;
        let Some(not_back) = report.not_back.first() else { return Ok(()) };
        Err(LinkError::Invalid { what: "put back".to_owned(), why: not_back.to_string() })
    }
}

/// Waits in steps, so that it can be given up.
fn await_carrier(link: &str, limit: Duration, give_up: &AtomicBool) -> Result<(), LinkError> {
    const STEP: Duration = Duration::from_millis(200);
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match links::wait_for_carrier(link, left.min(STEP)) {
            Err(LinkError::Timeout { .. }) if left > STEP && !give_up.load(Ordering::Relaxed) => {}
            Err(LinkError::Timeout { what, .. }) => return Err(LinkError::Timeout { what, limit }),
            outcome => return outcome,
        }
    }
}

/// How often the link lost or got its carrier; `None` where the kernel does not tell.
fn carrier_changes(link: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/class/net/{link}/carrier_changes")).ok()
}

/// What dead linerates have left changed here, put back, or forgotten where that is asked for.
pub(crate) fn stale(options: StaleOptions) -> Result<Vec<Restored>, LinkError> {
    if options.forget {
        return restore::forget_stale();
    }
    let end = Instant::now() + if options.wait { OWNERS_LIMIT } else { Duration::ZERO };
    let mut all = Vec::new();
    loop {
        let (living, dead): (Vec<_>, Vec<_>) =
            restore::restore_stale()?.into_iter().partition(|one| one.outcome == Outcome::InUse);
        all.extend(dead);
        if living.is_empty() || Instant::now() >= end {
            all.extend(living);
            return Ok(all);
        }
        std::thread::sleep(OWNERS_POLL);
    }
}

/// A refusal with its kind: what makes no sense is not what the kernel refused.
pub(crate) fn refused(error: &LinkError) -> Reply {
    let kind = match error {
        LinkError::Invalid { .. } => Refusal::Usage,
        error if error.is_forbidden() => Refusal::Permission,
        _ => Refusal::Network,
    };
    Reply::Refused { reason: error.to_string(), kind }
}
