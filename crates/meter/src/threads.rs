//! CPU time of single threads.

use linerate_sys::clock::{SchedStat, thread_cpu_ns_of};

use crate::error::Result;

/// CPU time of a thread since it began.
///
/// The time on a CPU is that of the thread's CPU clock (clock_gettime(2)), which the kernel brings up to date when asked;
/// that in `schedstat` lags by up to a tick for a thread that runs. The wait is from `schedstat`, and counts once the thread
/// got its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// Time on a CPU, nanoseconds; includes softirq work done in its context.
    pub on_cpu_ns: u64,
    /// Time it was ready to run but waited for a CPU, nanoseconds; `None` where the kernel keeps no `schedstat`.
    pub run_queue_wait_ns: Option<u64>,
}

impl ThreadTimes {
    /// Growth since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        let wait = self.run_queue_wait_ns.zip(earlier.run_queue_wait_ns);
        Self {
            on_cpu_ns: self.on_cpu_ns.saturating_sub(earlier.on_cpu_ns),
            run_queue_wait_ns: wait.map(|(later, earlier)| later.saturating_sub(earlier)),
        }
    }
}

/// CPU time of the calling process's thread `tid` (gettid(2)).
///
/// # Errors
/// The thread has ended, or is not one of this process.
pub fn thread_times(tid: i32) -> Result<ThreadTimes> {
    let on_cpu_ns = thread_cpu_ns_of(tid)?;
    let run_queue_wait_ns = SchedStat::of(tid).ok().map(|stat| stat.wait_ns);
    Ok(ThreadTimes { on_cpu_ns, run_queue_wait_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sys::affinity::thread_id;
    use linerate_sys::clock::thread_cpu_ns;

    #[test]
    fn a_threads_own_clock_and_the_meters_agree() {
        let tid = thread_id();
        let (before, own_before) = (thread_times(tid).unwrap(), thread_cpu_ns());
        while thread_cpu_ns() < own_before + 50_000_000 {}
        let times = thread_times(tid).unwrap().since(&before);
        let own = thread_cpu_ns() - own_before;
        assert!(times.on_cpu_ns >= 50_000_000, "{times:?}");
        assert!(times.on_cpu_ns < own + 50_000_000, "{times:?}");
    }

    #[test]
    fn a_thread_that_ended_is_an_error_that_names_it() {
        let tid = std::thread::spawn(thread_id).join().unwrap();
        let error = thread_times(tid).unwrap_err();
        assert!(error.to_string().contains(&format!("thread {tid}")), "{error}");
    }

    #[test]
    fn an_unknown_wait_stays_unknown() {
        let known = ThreadTimes { on_cpu_ns: 9, run_queue_wait_ns: Some(3) };
        let unknown = ThreadTimes { on_cpu_ns: 12, run_queue_wait_ns: None };
        assert_eq!(unknown.since(&known), ThreadTimes { on_cpu_ns: 3, run_queue_wait_ns: None });
    }
}
