//! Clocks in nanoseconds, absolute sleeps, and what a thread's own CPU clock says (clock_gettime(2)).

use std::fs;
use std::io;

use crate::error::{Result, SysError};

/// Nanoseconds of CLOCK_MONOTONIC: the clock of every schedule, window and latency here.
pub fn monotonic_ns() -> u64 {
    now(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_MONOTONIC_RAW, which no time daemon slews.
pub fn monotonic_raw_ns() -> u64 {
    now(libc::CLOCK_MONOTONIC_RAW)
}

/// Nanoseconds since the epoch (CLOCK_REALTIME).
pub fn realtime_ns() -> u64 {
    now(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread, user and system, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    now(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the calling process's thread `tid`, nanoseconds. Fails with `EINVAL` once the thread has ended.
pub fn thread_cpu_ns_of(tid: i32) -> Result<u64> {
    // The kernel's encoding of a thread's CPU clock: complement of the id above, CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED below.
    let clock = (!tid << 3) | 4 | 2;
    try_now(clock).map_err(|e| SysError::new("read CPU clock", format!("thread {tid}"), e))
}

/// What the scheduler did with a thread since the thread began (`/proc/self/task/TID/schedstat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU, nanoseconds.
    pub run_ns: u64,
    /// Time ready to run while another ran, nanoseconds.
    pub wait_ns: u64,
    /// Turns on a CPU.
    pub slices: u64,
}

impl SchedStat {
    /// Reads the statistics of thread `tid` of the calling process.
    pub fn of(tid: i32) -> Result<Self> {
        let path = format!("/proc/self/task/{tid}/schedstat");
        let text = fs::read_to_string(&path).map_err(|e| SysError::new("read", &path, e))?;
        Self::parse(&text).ok_or_else(|| SysError::new("parse", path, io::ErrorKind::InvalidData.into()))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { run_ns: next()?, wait_ns: next()?, slices: next()? })
    }
}

/// Ticks a second in the files of `/proc` (`USER_HZ`, sysconf(3) `_SC_CLK_TCK`): 100 on x86-64 and arm64.
pub fn user_ticks_per_second() -> Result<u64> {
    const OPERATION: &str = "read _SC_CLK_TCK";
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .map_err(|e| SysError::new(OPERATION, "", e.into()))?;
    let ticks = ticks.and_then(|t| u64::try_from(t).ok()).filter(|&t| t > 0);
    ticks.ok_or_else(|| SysError::new(OPERATION, "", io::ErrorKind::Unsupported.into()))
}

/// Length of the kernel's own tick, nanoseconds (`1 / CONFIG_HZ`): the resolution of CLOCK_MONOTONIC_COARSE.
pub fn kernel_tick_ns() -> Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and outlives the call.
    let code = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    if code < 0 {
        return Err(SysError::last("read resolution", "CLOCK_MONOTONIC_COARSE"));
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until CLOCK_MONOTONIC reads `deadline_ns`; returns at once when it already does. Signals do not shorten it.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    loop {
        // SAFETY: `deadline` outlives the call; an absolute sleep writes no remainder, so null is allowed.
        let code = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const deadline,
                std::ptr::null_mut(),
            )
        };
        if code != libc::EINTR {
            return;
        }
    }
}

/// Sets how late the kernel may wake the calling thread to save wake-ups, nanoseconds (`PR_SET_TIMERSLACK`). New threads
/// get 50 us; 1 is the least.
pub fn set_timer_slack(nanoseconds: u64) -> Result<()> {
    let value = nanoseconds.max(1) as libc::c_ulong;
    // SAFETY: the call takes integers only.
    let code = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, value) };
    if code < 0 {
        return Err(SysError::last("set PR_SET_TIMERSLACK", "this thread"));
    }
    Ok(())
}

/// `nanoseconds` as the kernel's pair of seconds and nanoseconds.
pub(crate) fn timespec(nanoseconds: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    }
}

fn now(clock: libc::clockid_t) -> u64 {
    // The clocks passed here exist on every Linux since 2.6.28, and the call has no other failure.
    try_now(clock).unwrap_or_default()
}

fn try_now(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and outlives the call.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::thread_id;

    #[test]
    fn clocks_move_forward() {
        for clock in [monotonic_ns, monotonic_raw_ns, realtime_ns, thread_cpu_ns] {
            let first = clock();
            let mut last = first;
            for _ in 0..10_000 {
                let next = clock();
                assert!(next >= last);
                last = next;
            }
            assert!(first > 0 && last > first);
        }
    }

    #[test]
    fn a_sleep_ends_after_its_deadline() {
        set_timer_slack(1).unwrap();
        let deadline = monotonic_ns() + 5_000_000;
        sleep_until(deadline);
        assert!(monotonic_ns() >= deadline);
        let before = monotonic_ns();
        sleep_until(deadline);
        assert!(monotonic_ns() - before < 1_000_000_000);
    }

    #[test]
    fn ticks_are_between_a_tenth_of_a_millisecond_and_a_tenth_of_a_second() {
        let user_tick_ns = 1_000_000_000 / user_ticks_per_second().unwrap();
        for tick in [user_tick_ns, kernel_tick_ns().unwrap()] {
            assert!((100_000..=100_000_000).contains(&tick), "{tick}");
        }
    }

    #[test]
    fn another_threads_cpu_time_is_readable() {
        let tid = thread_id();
        let mut sum = 0u64;
        let until = thread_cpu_ns() + 20_000_000;
        while thread_cpu_ns() < until {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
        let seen = std::thread::spawn(move || thread_cpu_ns_of(tid).unwrap()).join().unwrap();
        assert!(seen >= 20_000_000);
        let stat = std::thread::spawn(move || SchedStat::of(tid).unwrap()).join().unwrap();
        assert!(stat.slices >= 1 && stat.run_ns > 0);
    }

    #[test]
    fn a_thread_that_is_gone_is_an_error() {
        let tid = std::thread::spawn(thread_id).join().unwrap();
        assert!(SchedStat::of(tid).is_err());
        assert!(thread_cpu_ns_of(tid).unwrap_err().to_string().contains("thread"));
    }

    #[test]
    fn damaged_statistics_are_refused() {
        assert_eq!(SchedStat::parse("1 2 3\n"), Some(SchedStat { run_ns: 1, wait_ns: 2, slices: 3 }));
        assert_eq!(SchedStat::parse("1 2"), None);
        assert_eq!(SchedStat::parse("1 x 3"), None);
    }
}
