//! What the meter itself costs, and how well busy time from idle fits a thread's own clock.
//!
//! `cargo run --release -p linerate-meter --example cost [LINK]`

use std::thread;

use linerate_meter::{Meter, difference, environment, thread_times};
use linerate_sys::affinity::{allowed_cpus, pin_thread, thread_id};
use linerate_sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};

const ROUNDS: usize = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let link = std::env::args().nth(1);
    let start = monotonic_ns();
    let mut meter = Meter::open(link.as_deref())?;
    println!("open            {:7.1} us", (monotonic_ns() - start) as f64 / 1e3);
    cost("sample", || meter.sample());
    cost("busy_sample", || meter.busy_sample());
    cost("thread_times", || thread_times(thread_id()));
    let (before, after) = (meter.sample(), meter.sample());
    cost("difference", || difference(&before, &after));
    cost("environment", environment);
    let accuracy = thread::spawn(move || accuracy(&mut meter)).join();
    println!("{}", accuracy.map_err(|_| "the accuracy thread ended early")??);
    Ok(())
}

fn cost<T>(name: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<u64> = Vec::with_capacity(ROUNDS);
    let cpu = thread_cpu_ns();
    for _ in 0..ROUNDS {
        let start = monotonic_ns();
        std::hint::black_box(work());
        times.push(monotonic_ns() - start);
    }
    let cpu = (thread_cpu_ns() - cpu) as f64 / ROUNDS as f64;
    times.sort_unstable();
    let at = |share: f64| times[(ROUNDS as f64 * share) as usize] as f64 / 1e3;
    println!("{name:15} {:7.1} us median {:8.1} us p99 {:7.1} us CPU", at(0.5), at(0.99), cpu / 1e3);
}

/// A thread is busy 37 % of a CPU in bursts of 1.1 ms; busy time from idle and from ticks beside its own clock.
fn accuracy(meter: &mut Meter) -> Result<String, linerate_meter::MeterError> {
    let cpu = allowed_cpus()?.into_iter().next_back().unwrap_or_default();
    pin_thread(&[cpu])?;
    let (before, times) = (meter.sample(), thread_times(thread_id())?);
    let start = monotonic_ns();
    for period in 1..=1000 {
        let until = thread_cpu_ns() + 1_110_000;
        while thread_cpu_ns() < until {}
        sleep_until(start + period * 3_000_000);
    }
    let (after, times) = (meter.sample(), thread_times(thread_id())?.since(&times));
    let reading = difference(&before, &after).cpu;
    let time = reading
        .cpus
        .iter()
        .find(|reading| reading.cpu as usize == cpu)
        .map(|found| found.time)
        .unwrap_or_default();
    let percent = |ns: u64| 100.0 * ns as f64 / reading.window_ns as f64;
    let ticks = time.user_ns + time.nice_ns + time.system_ns + time.irq_ns + time.softirq_ns;
    Ok(format!(
        "CPU {cpu}: thread {:.1} %, busy from idle {:.1} %, from ticks {:.1} %, steal {:.1} %, thread waited {:.1} %\n{}",
        percent(times.on_cpu_ns),
        percent(time.busy_ns),
        percent(ticks),
        percent(time.steal_ns),
        percent(times.run_queue_wait_ns.unwrap_or_default()),
        reading.source
    ))
}
