//! Where the calling thread runs, which CPUs there are, and its name (sched_setaffinity(2), cpuset(7)).

use std::ffi::CString;
use std::{fs, io};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};

use crate::error::{Result, SysError};

/// Kernel identity of the calling thread.
pub fn thread_id() -> i32 {
    gettid().as_raw()
}

/// CPU that the calling thread runs on at this moment.
pub fn current_cpu() -> Result<usize> {
    nix::sched::sched_getcpu().map_err(|e| SysError::new("read current CPU", "this thread", e.into()))
}

/// Lets the calling thread run on `cpus` only. A CPU that is absent, offline or outside the thread's cpuset gives `EINVAL`;
/// with several CPUs the kernel silently leaves those out as long as one is left.
pub fn pin_thread(cpus: &[usize]) -> Result<()> {
    const OPERATION: &str = "pin this thread";
    let object = || format!("CPUs {cpus:?}");
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(|e| SysError::new(OPERATION, object(), e.into()))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| SysError::new(OPERATION, object(), e.into()))
}

/// CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|e| SysError::new("read affinity", "this thread", e.into()))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// CPUs that are online, ascending (`/sys/devices/system/cpu/online`).
pub fn online_cpus() -> Result<Vec<usize>> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(PATH).map_err(|e| SysError::new("read", PATH, e))?;
    parse_cpu_list(&text).ok_or_else(|| SysError::new("parse", PATH, io::ErrorKind::InvalidData.into()))
}

/// Names the calling thread; the kernel keeps the first 15 bytes (`PR_SET_NAME`).
pub fn name_thread(name: &str) -> Result<()> {
    let text = CString::new(name)
        .map_err(|_| SysError::new("name this thread", name, io::ErrorKind::InvalidInput.into()))?;
    nix::sys::prctl::set_name(&text).map_err(|e| SysError::new("name this thread", name, e.into()))
}

/// Parses the kernel's list format, such as `0-3,8` (cpuset(7), "List format").
fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        std::thread::spawn(|| {
            for cpu in allowed_cpus().unwrap() {
                pin_thread(&[cpu]).unwrap();
                assert_eq!(current_cpu().unwrap(), cpu);
                assert_eq!(allowed_cpus().unwrap(), [cpu]);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_absent_cpu_is_refused_by_number() {
        let error = std::thread::spawn(|| pin_thread(&[1000]).unwrap_err()).join().unwrap();
        assert!(error.to_string().contains("1000"));
        assert!(pin_thread(&[usize::MAX]).is_err());
    }

    #[test]
    fn online_cpus_include_the_current_one() {
        assert!(online_cpus().unwrap().contains(&current_cpu().unwrap()));
    }

    #[test]
    fn cpu_lists_parse() {
        assert_eq!(parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        assert_eq!(parse_cpu_list("0-x"), None);
    }

    #[test]
    fn a_thread_can_be_named() {
        std::thread::spawn(|| {
            name_thread("lr-named").unwrap();
            let path = format!("/proc/self/task/{}/comm", thread_id());
            assert_eq!(fs::read_to_string(path).unwrap().trim(), "lr-named");
        })
        .join()
        .unwrap();
    }
}
