//! The window: every counter is sampled at the same two instants, and at interval boundaries between them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_link::links;
use linerate_meter::Meter;
use linerate_model::reading::IntervalReading;
use linerate_sys::clock;
use linerate_traffic::{Mover, Phase, Snapshot};

use crate::protocol::{Reply, Schedule};
use crate::reading::{self, Boundary, Instant, interval};
use crate::trial::TrialFailure;

/// The last part of a wait is slept precisely, since a condition variable wakes late.
const PRECISE_NS: u64 = 3_000_000;
/// How long before the traffic's start the opening sample of a window without warm-up is taken.
const SAMPLE_LEAD_NS: u64 = 2_000_000;
/// How often a running trial is looked at for failed streams.
const WATCH_NS: u64 = 100_000_000;
/// How often the link under test is looked at.
const LINK_WATCH_NS: u64 = 500_000_000;
/// After this long without any progress a trial that a count ends is given up.
const NO_PROGRESS_NS: u64 = 15_000_000_000;
/// How often a trial that a count ends is looked at for its end.
const DONE_WATCH_NS: u64 = 2_000_000;

/// How a window is ended from outside.
#[derive(Debug, Default)]
pub struct WindowControl {
    wish: Mutex<Wish>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Wish {
    #[default]
    None,
    Close,
    Abort,
}

impl WindowControl {
    /// Closes the window now; it is sampled as ever.
    pub fn close(&self) {
        self.wish(Wish::Close);
    }

    /// Ends the trial without a reading, where `lost` (nobody is left to take one).
    pub fn abort_if(&self, lost: bool) {
        if lost {
            self.wish(Wish::Abort);
        }
    }

    fn wish(&self, wish: Wish) {
        *self.wish.lock().unwrap_or_else(PoisonError::into_inner) = wish;
        self.changed.notify_all();
    }

    /// Sleeps until `deadline_ns` of the monotonic clock, or until somebody wishes something.
    fn wait_until(&self, deadline_ns: u64) -> Wish {
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        while *wish == Wish::None {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            if left_ns <= PRECISE_NS {
                drop(wish);
                clock::sleep_until(deadline_ns);
                return Wish::None;
            }
            let timeout = Duration::from_nanos(left_ns - PRECISE_NS);
            wish = self.changed.wait_timeout(wish, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
        *wish
    }
}

/// The samples of a window.
#[derive(Debug)]
pub struct Samples {
    /// At its opening.
    pub start: Instant,
    /// At its close.
    pub end: Instant,
    /// When it was planned to open, nanoseconds.
    pub planned_start_ns: u64,
    /// When it was planned to close; `None` where a count ended it, or it was ended early.
    pub planned_end_ns: Option<u64>,
    /// When this side's part of the count was reached.
    pub done_ns: Option<u64>,
    /// What passed between.
    pub intervals: Vec<IntervalReading>,
}

/// Runs a window: starts the traffic, samples, tells of intervals and of the count's end.
///
/// # Errors
/// Where a stream failed, a counter could not be read, or the controller is gone.
pub fn run(
    endpoint: &mut dyn Mover,
    meter: &mut Meter,
    link: &mut LinkWatch,
    schedule: Schedule,
    interval_ns: Option<u64>,
    control: &WindowControl,
    say: &dyn Fn(&Reply),
) -> Result<Samples, TrialFailure> {
    let progress = Progress::default();
    let mut window = WindowRun {
        endpoint,
        meter,
        link,
        schedule,
        control,
        say,
        progress,
        done_ns: None,
        ended_early: false,
    };
    let start = if schedule.window_start_ns > schedule.traffic_start_ns {
        window.open_after_warmup()?
    } else {
        window.open_with_traffic()?
    };
    let (mut intervals, before) = window.pass(&start, interval_ns)?;
    window.endpoint.enter_phase(Phase::Tail);
    let end = window.sample()?;
    // The last one ends with the window, also where that is not a whole interval.
    intervals.extend(before.and_then(|before| window.last_interval(&start, &before, &end)));
    let (done_ns, ended_early) = (window.done_ns, window.ended_early);
    Ok(Samples {
        start,
        end,
        planned_start_ns: schedule.window_start_ns,
        planned_end_ns: schedule.window_end_ns.filter(|_| !ended_early),
        done_ns,
        intervals,
    })
}

/// The link under test, looked at now and then: traffic that comes to a standstill does not say why.
#[derive(Debug, Default)]
pub struct LinkWatch {
    name: Option<String>,
    next_ns: u64,
}

impl LinkWatch {
    /// Watches a link, where one is known.
    pub fn new(name: Option<String>) -> Self {
        Self { name, next_ns: 0 }
    }

    fn check(&mut self) -> Result<(), TrialFailure> {
        let now_ns = clock::monotonic_ns();
        let Some(name) = self.name.as_deref().filter(|_| now_ns >= self.next_ns) else { return Ok(()) };
        self.next_ns = now_ns + LINK_WATCH_NS;
        let state = match links::named(name) {
            Ok(link) if !link.up => "went down",
            Ok(link) if !link.carrier => "lost its carrier",
            Ok(_) => return Ok(()),
            Err(error) => return Err(TrialFailure::network(format!("link {name} is gone: {error}"))),
        };
        Err(TrialFailure::network(format!(
            "link {name} {state} while the traffic ran; nothing of this trial is kept"
        )))
    }
}

/// What has moved so far, and since when nothing has.
#[derive(Debug, Default)]
struct Progress {
    moved: u64,
    since_ns: u64,
}

impl Progress {
    fn check(&mut self, now: &Snapshot) -> Result<(), TrialFailure> {
        let moved = now.streams.iter().map(|s| s.sent.messages + s.received.messages + s.transactions).sum();
        if moved != self.moved || self.since_ns == 0 {
            (self.moved, self.since_ns) = (moved, now.at_ns);
        }
        if now.at_ns.saturating_sub(self.since_ns) < NO_PROGRESS_NS {
            return Ok(());
        }
        let seconds = NO_PROGRESS_NS / 1_000_000_000;
        Err(TrialFailure::network(format!(
            "nothing moved for {seconds} s: the way to the other node may be gone"
        )))
    }
}

struct WindowRun<'a> {
    endpoint: &'a mut dyn Mover,
    meter: &'a mut Meter,
    link: &'a mut LinkWatch,
    progress: Progress,
    schedule: Schedule,
    control: &'a WindowControl,
    say: &'a dyn Fn(&Reply),
    done_ns: Option<u64>,
    ended_early: bool,
}

impl WindowRun<'_> {
    fn open_after_warmup(&mut self) -> Result<Instant, TrialFailure> {
        self.endpoint.start(self.schedule.traffic_start_ns);
        self.wait(self.schedule.window_start_ns)?;
        self.endpoint.enter_phase(Phase::Window);
        self.sample()
    }

    /// Without a warm-up every byte belongs to the window: its sample is taken just before the first can move.
    fn open_with_traffic(&mut self) -> Result<Instant, TrialFailure> {
        self.endpoint.enter_phase(Phase::Window);
        self.wait(self.schedule.traffic_start_ns.saturating_sub(SAMPLE_LEAD_NS))?;
        let mut start = self.sample()?;
        start.traffic.at_ns = self.schedule.traffic_start_ns.max(clock::monotonic_ns());
        self.endpoint.start(self.schedule.traffic_start_ns);
        Ok(start)
    }

    /// Lets the window pass; gives its intervals, and where the last of them ended if intervals are asked for.
    fn pass(
        &mut self,
        start: &Instant,
        interval_ns: Option<u64>,
    ) -> Result<(Vec<IntervalReading>, Option<Boundary>), TrialFailure> {
        let mut intervals = Vec::new();
        let mut before = start.boundary();
        let mut next_boundary = interval_ns.map(|ns| start.traffic.at_ns + ns);
        let end_ns = self.schedule.window_end_ns.unwrap_or(u64::MAX);
        while clock::monotonic_ns() < end_ns {
            let watch_ns = if self.schedule.window_end_ns.is_some() { WATCH_NS } else { DONE_WATCH_NS };
            let wake_ns =
                (clock::monotonic_ns() + watch_ns).min(end_ns).min(next_boundary.unwrap_or(u64::MAX));
            if self.wait(wake_ns)? {
                break;
            }
            self.watch_count()?;
            if let (Some(boundary), Some(length)) = (next_boundary, interval_ns)
                && clock::monotonic_ns() >= boundary
                && boundary < end_ns
            {
                let now = self.boundary()?;
                let interval = interval(start, &before, &now);
                (self.say)(&Reply::Interval(interval.clone()));
                intervals.push(interval);
                before = now;
                next_boundary = Some(boundary + length);
            }
        }
        Ok((intervals, interval_ns.map(|_| before)))
    }

    fn last_interval(&self, start: &Instant, before: &Boundary, end: &Instant) -> Option<IntervalReading> {
        let last = interval(start, before, &end.boundary());
        if last.duration_ns == 0 {
            return None;
        }
        (self.say)(&Reply::Interval(last.clone()));
        Some(last)
    }

    /// Waits; true where the window shall close now.
    fn wait(&mut self, until_ns: u64) -> Result<bool, TrialFailure> {
        loop {
            let slice_ns = until_ns.min(clock::monotonic_ns() + WATCH_NS);
            let wish = self.control.wait_until(slice_ns);
            // The link first: it explains why a stream failed.
            self.link.check()?;
            if let Some((_, failure)) = self.endpoint.failures().into_iter().next() {
                return Err(TrialFailure::network(failure));
            }
            match wish {
                Wish::None if slice_ns < until_ns => {}
                Wish::None => return Ok(false),
                Wish::Close => {
                    self.ended_early = true;
                    return Ok(true);
                }
                Wish::Abort => return Err(TrialFailure::network("the controller is gone".to_owned())),
            }
        }
    }

    /// Tells once when this side's part of the count is reached.
    fn watch_count(&mut self) -> Result<(), TrialFailure> {
        if self.schedule.window_end_ns.is_some() || self.done_ns.is_some() {
            return Ok(());
        }
        self.done_ns = self.endpoint.wait_done(Duration::ZERO).map_err(TrialFailure::network)?;
        if self.endpoint.has_authority() && self.done_ns.is_none() {
            self.progress.check(&self.endpoint.snapshot())?;
        }
        if self.done_ns.is_some() {
            (self.say)(&Reply::Done);
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<Instant, TrialFailure> {
        // Traffic first: its counters move fastest.
        let traffic = self.endpoint.snapshot();
        let meter = self.meter.sample();
        let tcp = self.endpoint.tcp_info().map_err(TrialFailure::network)?;
        let threads = reading::thread_times(&self.endpoint.threads());
        Ok(Instant { traffic, meter, tcp, threads })
    }

    fn boundary(&mut self) -> Result<Boundary, TrialFailure> {
        let traffic = self.endpoint.snapshot();
        let busy = self.meter.busy_sample();
        let tcp = self.endpoint.tcp_info().map_err(TrialFailure::network)?;
        Ok(Boundary { traffic, busy, tcp })
    }
}
