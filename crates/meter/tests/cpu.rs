//! CPU time against an independent count: a thread's own CPU clock.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use linerate_meter::{Meter, difference, thread_times};
use linerate_sys::affinity::{allowed_cpus, pin_thread, thread_id};
use linerate_sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};

const MILLISECOND: u64 = 1_000_000;

/// Both tests load CPUs.
static ALONE: Mutex<()> = Mutex::new(());

/// Busy in bursts of `burst_ns` of CPU time in each `period_ns`, on `cpu`; returns the CPU time used.
fn bursts(cpu: usize, burst_ns: u64, period_ns: u64, periods: u64) -> u64 {
    pin_thread(&[cpu]).unwrap();
    let before = thread_times(thread_id()).unwrap();
    let start = monotonic_ns();
    for period in 1..=periods {
        let until = thread_cpu_ns() + burst_ns;
        while thread_cpu_ns() < until {}
        sleep_until(start + period * period_ns);
    }
    thread_times(thread_id()).unwrap().since(&before).on_cpu_ns
}

#[test]
fn the_machine_is_at_least_as_busy_as_its_thread() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let cpu = *allowed_cpus().unwrap().last().unwrap();
    let mut meter = Meter::open(None).unwrap();
    let start = meter.sample();
    // Bursts shorter than a tick, which ticks see only by chance.
    let used = thread::spawn(move || bursts(cpu, MILLISECOND, 3 * MILLISECOND, 500)).join().unwrap();
    let end = meter.sample();
    let reading = difference(&start, &end).cpu;
    let one = reading.cpus.iter().find(|reading| reading.cpu as usize == cpu).unwrap().time;

    // Other processes and a hypervisor's steal only add to busy time or take from the thread's; a tick may be missing.
    let tolerance = 2 * reading.busy_resolution_ns + used / 50;
    assert!(used >= 490 * MILLISECOND, "{used}");
    assert!(one.busy_ns + one.steal_ns + tolerance >= used, "{used} {one:?}");
    assert!(reading.total.busy_ns + reading.total.steal_ns + tolerance >= used, "{used} {reading:?}");
    assert_eq!(one.busy_ns + one.idle_ns + one.steal_ns, reading.window_ns);
    assert!(one.busy_ns <= reading.window_ns);
    assert_eq!(reading.window_ns, end.at_ns() - start.at_ns());
    let busy = end.busy().busy_ns_since(&start.busy()).unwrap();
    assert_eq!(busy, reading.total.busy_ns, "an interval that is the window has its busy time");
}

#[test]
fn intervals_add_up_to_the_window() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut meter = Meter::open(None).unwrap();
    let start = meter.sample();
    let mut last = start.busy();
    let mut sum = 0;
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(40));
        let next = meter.busy_sample();
        sum += next.busy_ns_since(&last).unwrap();
        last = next;
    }
    let end = meter.sample();
    sum += end.busy().busy_ns_since(&last).unwrap();
    let reading = difference(&start, &end).cpu;
    let whole = reading.total.busy_ns;
    // Each interval is rounded by itself.
    assert!(sum.abs_diff(whole) <= 6 * reading.busy_resolution_ns, "{sum} {whole}");
}
