//! What holds for the CPU times of this kernel, in words and as resolutions.

use std::fs;

use linerate_sys::clock::{kernel_tick_ns, user_ticks_per_second};

use crate::error::Result;

/// What is true of the CPU columns of `/proc/stat` as long as the machine is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuSource {
    /// One tick of `USER_HZ`, nanoseconds.
    pub(crate) user_tick_ns: u64,
    /// Resolution of the kinds: the longer of both ticks, nanoseconds.
    pub(crate) kinds_resolution_ns: u64,
    pub(crate) words: String,
}

/// How the kernel accounts for idle CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleAccounting {
    /// `NO_HZ`: idleness is timed from its begin to its end.
    Timed,
    /// Sampled at each tick, as everything else.
    Sampled,
    /// No evidence that this process may read.
    Unknown,
}

impl CpuSource {
    pub(crate) fn detect() -> Result<Self> {
        let user_tick_ns = 1_000_000_000 / user_ticks_per_second()?;
        let kernel_tick_ns = kernel_tick_ns()?;
        let idle = IdleAccounting::detect();
        Ok(Self {
            user_tick_ns,
            kinds_resolution_ns: user_tick_ns.max(kernel_tick_ns),
            words: words(idle, user_tick_ns, kernel_tick_ns),
        })
    }
}

impl IdleAccounting {
    /// Asks the kernel's timers (for root's eyes), its command line, its build configuration.
    fn detect() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let release = text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let timers = text("/proc/timer_list").and_then(|timers| from_timers(&timers));
        timers
            .or_else(|| text("/proc/cmdline").and_then(|line| from_command_line(&line)))
            .or_else(|| text(&format!("/boot/config-{}", release.trim())).map(|config| from_config(&config)))
            // The file is there with CONFIG_NO_HZ_FULL, which needs CONFIG_NO_HZ_COMMON.
            .or_else(|| text("/sys/devices/system/cpu/nohz_full").map(|_| Self::Timed))
            .unwrap_or(Self::Unknown)
    }
}

/// From `/proc/timer_list`: each CPU's `.nohz` (before Linux 6.9 `.nohz_mode`) is 0 where the tick never stops.
fn from_timers(text: &str) -> Option<IdleAccounting> {
    let fields = text.lines().filter_map(|line| line.trim().split_once(':'));
    let modes = fields.filter(|(name, _)| matches!(name.trim(), ".nohz" | ".nohz_mode"));
    let mut stops = modes.map(|(_, mode)| mode.trim() != "0").peekable();
    stops.peek()?;
    Some(if stops.all(|stops| stops) { IdleAccounting::Timed } else { IdleAccounting::Sampled })
}

fn from_command_line(line: &str) -> Option<IdleAccounting> {
    let off = line.split_ascii_whitespace().any(|word| matches!(word, "nohz=off" | "nohz=n" | "nohz=0"));
    off.then_some(IdleAccounting::Sampled)
}

fn from_config(text: &str) -> IdleAccounting {
    if text.lines().any(|line| line == "CONFIG_NO_HZ_COMMON=y") {
        IdleAccounting::Timed
    } else {
        IdleAccounting::Sampled
    }
}

fn words(idle: IdleAccounting, user_tick_ns: u64, kernel_tick_ns: u64) -> String {
    let milliseconds = |ns: u64| ns as f64 / 1e6;
    let (user_tick, kernel_tick) = (milliseconds(user_tick_ns), milliseconds(kernel_tick_ns));
    let idle = match idle {
        IdleAccounting::Timed => "timed (NO_HZ)".to_owned(),
        IdleAccounting::Sampled => format!("sampled every {kernel_tick} ms (no NO_HZ)"),
        IdleAccounting::Unknown => "timed if the kernel has NO_HZ, which can't be told here".to_owned(),
    };
    format!(
        "/proc/stat in steps of {user_tick} ms; busy: the window without idle, iowait and steal, idle being {idle}; \
         kinds: sampled every {kernel_tick} ms unless the kernel accounts for each switch"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn evidence_of_timed_idle_is_read() {
        assert_eq!(from_timers("cpu: 0\n  .nohz           : 1\n"), Some(IdleAccounting::Timed));
        assert_eq!(from_timers("  .nohz_mode      : 2\n .nohz_mode : 0\n"), Some(IdleAccounting::Sampled));
        assert_eq!(from_timers("now at 1 nsecs\n"), None);
        assert_eq!(from_command_line("quiet nohz=off\n"), Some(IdleAccounting::Sampled));
        assert_eq!(from_command_line("quiet nohz_full=1\n"), None);
        assert_eq!(from_config("CONFIG_NO_HZ_COMMON=y\n"), IdleAccounting::Timed);
        assert_eq!(from_config("# CONFIG_NO_HZ_COMMON is not set\n"), IdleAccounting::Sampled);
    }

    #[test]
    fn this_machine_tells_its_ticks() {
        let source = CpuSource::detect().unwrap();
        assert!(source.kinds_resolution_ns >= source.user_tick_ns);
        assert!(source.words.starts_with("/proc/stat in steps of "), "{}", source.words);
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "([ .a-z_=]{0,12}:? ?[0-9]?\n){0,5}") {
            let _ = from_timers(&text);
            let _ = from_command_line(&text);
            let _ = from_config(&text);
        }
    }
}
