//! CPU time that another process has used (proc_pid_stat(5)).

use std::fs;
use std::io;

use crate::clock;
use crate::error::{Result, SysError};

/// CPU time of a process with all its threads, since it began. The sum is exact, the split is by ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessTimes {
    /// In its own code, nanoseconds; for an emulator this includes its guest's.
    pub user_ns: u64,
    /// In the kernel for it, nanoseconds.
    pub system_ns: u64,
}

impl ProcessTimes {
    /// Reads the times of process `pid`.
    ///
    /// # Errors
    /// There is none, or `/proc` can't be read.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read(&path).map_err(|error| SysError::new("read", path.clone(), error))?;
        let tick_ns = 1_000_000_000 / clock::user_ticks_per_second()?.max(1);
        let (user, system) =
            parse(&stat).ok_or_else(|| SysError::new("parse", path, io::ErrorKind::InvalidData.into()))?;
        Ok(Self { user_ns: user.saturating_mul(tick_ns), system_ns: system.saturating_mul(tick_ns) })
    }

    /// What was used since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// Fields 14 and 15, counted from the end of the name, which may hold anything.
fn parse(stat: &[u8]) -> Option<(u64, u64)> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let line = b"7 (a) b) 1) S 1 7 7 0 -1 4194560 10 0 0 0 25 13 0 0 20 0 1 0 99 0 0";
        assert_eq!(parse(line), Some((25, 13)));
        assert_eq!(parse(b"7 (a) S 1"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn work_shows() {
        let before = ProcessTimes::of(std::process::id()).unwrap();
        let mut sum = 0u64;
        while ProcessTimes::of(std::process::id()).unwrap().since(before).user_ns == 0 {
            sum = (0..1_000_000u64).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        }
        std::hint::black_box(sum);
        assert!(ProcessTimes::of(u32::MAX).is_err());
    }
}
