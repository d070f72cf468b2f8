//! What a run measured, and ttcp's lines for it. Pure functions.

use nix::sys::resource::Usage;
use nix::sys::time::{TimeVal, TimeValLike};

use crate::ttcp::options::Options;

/// What one end measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Payload bytes of this end.
    pub bytes: u64,
    /// Send or receive calls.
    pub calls: u64,
    /// Wall time, nanoseconds.
    pub real_ns: u64,
    /// User time of this process, microseconds.
    pub user_us: u64,
    /// System time of this process, microseconds.
    pub system_us: u64,
    /// Largest resident set until now, KiB.
    pub max_resident_kib: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Page faults without.
    pub minor_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Tally {
    /// Puts in what the process used between two samples.
    pub(crate) fn with_usage(self, before: &Usage, after: &Usage) -> Self {
        let count = |of: fn(&Usage) -> i64| (of(after) - of(before)).max(0).unsigned_abs();
        let micros = |of: fn(&Usage) -> TimeVal| {
            (of(after).num_microseconds() - of(before).num_microseconds()).max(0).unsigned_abs()
        };
        Self {
            user_us: micros(Usage::user_time),
            system_us: micros(Usage::system_time),
            max_resident_kib: after.max_rss().max(0).unsigned_abs(),
            major_faults: count(|u| u.major_page_faults()),
            minor_faults: count(|u| u.minor_page_faults()),
            voluntary_switches: count(|u| u.voluntary_context_switches()),
            involuntary_switches: count(|u| u.involuntary_context_switches()),
            ..self
        }
    }

    fn cpu_us(&self) -> u64 {
        self.user_us + self.system_us
    }

    /// Seconds, at least one thousandth, as ttcp divides by.
    fn real_seconds(&self) -> f64 {
        (self.real_ns as f64 / 1e9).max(0.001)
    }
}

/// `ttcp-t` or `ttcp-r`, as every line begins.
pub(crate) fn name(options: &Options) -> &'static str {
    if options.transmit { "ttcp-t" } else { "ttcp-r" }
}

/// The first line, with its newline.
pub(crate) fn header(options: &Options) -> String {
    let Options { length, count, align, offset, port, .. } = options;
    let name = name(options);
    let transport = if options.udp { "udp" } else { "tcp" };
    let buffer = match options.socket_buffer {
        0 => String::new(),
        bytes => format!(", sockbufsize={bytes}"),
    };
    let target = match &options.host {
        Some(host) if options.connects() => format!("  -> {host}"),
        _ => String::new(),
    };
    format!(
        "{name}: buflen={length}, nbuf={count}, align={align}/{offset}, port={port}{buffer}  {transport}{target}\n"
    )
}

/// The lines after a run, with their newlines. `address` is that of the buffer, for `-v`.
pub(crate) fn result(options: &Options, tally: &Tally, address: usize) -> String {
    let name = name(options);
    let seconds = tally.real_seconds();
    let mut lines = vec![format!(
        "{} bytes in {seconds:.2} real seconds = {}/sec +++",
        tally.bytes,
        options.unit.rate(tally.bytes as f64 / seconds)
    )];
    if options.verbose {
        let cpu = (tally.cpu_us() as f64 / 1e6).max(0.000_01);
        let rate = options.unit.rate(tally.bytes as f64 / cpu);
        lines.push(format!("{} bytes in {cpu:.2} CPU seconds = {rate}/cpu sec", tally.bytes));
    }
    let calls = tally.calls as f64;
    lines.push(format!(
        "{} I/O calls, msec/call = {:.2}, calls/sec = {:.2}",
        tally.calls,
        // 1024, not 1000: so it is in every ttcp, and scripts expect it.
        1024.0 * seconds / calls,
        calls / seconds
    ));
    lines.push(usage(tally));
    if options.verbose {
        lines.push(format!("buffer address {address:#x}"));
    }
    lines.iter().map(|line| format!("{name}: {line}\n")).collect()
}

/// The line of the C shell's `time`. Linux keeps no integrals of memory use, so those are 0; `maxrss` is halved, as ttcp does
/// for systems that count 512-byte units.
fn usage(tally: &Tally) -> String {
    let tenths = |us: u64| format!("{}.{}", us / 1_000_000, us / 100_000 % 10);
    let hundredths_real = (tally.real_ns / 10_000_000).max(1);
    let hundredths_cpu = tally.cpu_us() / 10_000;
    format!(
        "{}user {}sys {}real {}% 0i+0d {}maxrss {}+{}pf {}+{}csw",
        tenths(tally.user_us),
        tenths(tally.system_us),
        wall(tally.real_ns / 1_000_000_000),
        100 * hundredths_cpu / hundredths_real,
        tally.max_resident_kib / 2,
        tally.major_faults,
        tally.minor_faults,
        tally.voluntary_switches,
        tally.involuntary_switches,
    )
}

fn wall(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn headers_are_laid_out_as_in_the_captures() {
        assert_eq!(
            header(&options("-t -s -p15001 127.0.0.1")),
            "ttcp-t: buflen=8192, nbuf=2048, align=16384/0, port=15001  tcp  -> 127.0.0.1\n"
        );
        assert_eq!(
            header(&options("-t -s -v -b 65536 -l 65536 -D -n 100000 -p 15002 127.0.0.1")),
            "ttcp-t: buflen=65536, nbuf=100000, align=16384/0, port=15002, sockbufsize=65536  tcp  -> 127.0.0.1\n"
        );
        assert_eq!(
            header(&options("-r -s -u -p45005")),
            "ttcp-r: buflen=8192, nbuf=2048, align=16384/0, port=45005  udp\n"
        );
    }

    #[test]
    fn a_result_is_laid_out_as_in_the_captures() {
        let tally = Tally {
            bytes: 6_553_600_000,
            calls: 100_000,
            real_ns: 2_320_335_999,
            user_us: 45_242,
            system_us: 658_000,
            max_resident_kib: 1717,
            minor_faults: 16,
            voluntary_switches: 82508,
            involuntary_switches: 1868,
            ..Tally::default()
        };
        let text = result(&options("-t -s -v host"), &tally, 0x7f00_f271_4000);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "ttcp-t: 6553600000 bytes in 2.32 real seconds = 2758221.22 KB/sec +++",
                "ttcp-t: 6553600000 bytes in 0.70 CPU seconds = 9100707.86 KB/cpu sec",
                "ttcp-t: 100000 I/O calls, msec/call = 0.02, calls/sec = 43097.21",
                "ttcp-t: 0.0user 0.6sys 0:02real 30% 0i+0d 858maxrss 0+16pf 82508+1868csw",
                "ttcp-t: buffer address 0x7f00f2714000",
            ]
        );
    }

    #[test]
    fn msec_per_call_keeps_the_1024() {
        let tally = Tally { bytes: 100, calls: 100, real_ns: 1_009_700_000, ..Tally::default() };
        let text = result(&options("-t -s host"), &tally, 0);
        assert!(text.contains("msec/call = 10.34"), "{text}");
    }

    #[test]
    fn nothing_sent_is_inf() {
        let text = result(&options("-t -s -n0 host"), &Tally::default(), 0);
        assert!(text.contains("0 bytes in 0.00 real seconds = 0.00 KB/sec +++"), "{text}");
        assert!(text.contains("msec/call = inf, calls/sec = 0.00"), "{text}");
    }

    #[test]
    fn hours_show() {
        assert_eq!((wall(59), wall(61), wall(3661)), ("0:59".into(), "1:01".into(), "1:01:01".into()));
    }
}
