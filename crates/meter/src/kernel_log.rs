//! The kernel's log (`/dev/kmsg`; Documentation/ABI/testing/dev-kmsg): a record a read, numbered without holes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use linerate_model::bench::LogLine;
use linerate_sys::SysError;

use crate::error::{MeterError, Result};

const PATH: &str = "/dev/kmsg";
const O_NONBLOCK: i32 = 0o4000;
const EPIPE: i32 = 32;
/// A record is never longer (`PRINTK_MESSAGE_MAX`).
const RECORD_BYTES: usize = 16 << 10;
/// Records in one answer.
const MOST: usize = 50_000;

/// Lines of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelLog {
    /// In order.
    pub lines: Vec<LogLine>,
    /// Position from which to read on.
    pub next: u64,
    /// Lines from the wanted one on that were overwritten before they were read.
    pub lost: u64,
}

/// Reads the log from the line `from` on: 0 is all that the kernel still has, `u64::MAX` none, which tells only the next
/// position. At most 50 000 lines at once.
///
/// # Errors
/// `EPERM` or `EACCES` without the right to read the log, as in a user namespace.
pub fn kernel_log(from: u64) -> Result<KernelLog> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(O_NONBLOCK).open(PATH);
    let mut file = opened.map_err(|cause| failed("open", cause))?;
    file.seek(SeekFrom::Start(0)).map_err(|cause| failed("seek", cause))?;
    let mut log = KernelLog { next: if from == u64::MAX { 0 } else { from }, ..KernelLog::default() };
    let mut buffer = vec![0; RECORD_BYTES];
    while let Some(length) = next_record(&mut file, &mut buffer)? {
        let record = String::from_utf8_lossy(&buffer[..length]);
        let line =
            parse(&record).ok_or_else(|| MeterError::malformed(PATH, "a record without its prefix"))?;
        enter(&mut log, from, line);
        if log.lines.len() >= MOST {
            break;
        }
    }
    Ok(log)
}

fn enter(log: &mut KernelLog, from: u64, line: LogLine) {
    if from == u64::MAX {
        log.next = line.sequence + 1;
        return;
    }
    if line.sequence < from {
        return;
    }
    // All that there still is begins wherever it begins.
    if from > 0 || !log.lines.is_empty() {
        log.lost += line.sequence.saturating_sub(log.next);
    }
    log.next = line.sequence + 1;
    log.lines.push(line);
}

/// Reads a record; `None` at the end.
fn next_record(file: &mut File, buffer: &mut [u8]) -> Result<Option<usize>> {
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => return Ok(Some(length)),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // Overwritten under us: the next read gives the oldest that there is, whose number tells how many are lost.
            Err(cause) if cause.raw_os_error() == Some(EPIPE) => {}
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(failed("read", cause)),
        }
    }
}

fn failed(operation: &'static str, cause: io::Error) -> MeterError {
    SysError::new(operation, PATH, cause).into()
}

/// Parses `PRIORITY,SEQUENCE,TIME,FLAGS[,...];TEXT`, with lines of properties behind it that begin with a blank.
fn parse(record: &str) -> Option<LogLine> {
    let (prefix, text) = record.split_once(';')?;
    let mut fields = prefix.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let (sequence, time_us) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let text: Vec<_> =
        text.split('\n').filter(|line| !line.is_empty() && !line.starts_with(' ')).map(unescape).collect();
    Some(LogLine { sequence, level: (priority & 7) as u8, time_us, text: text.join("\n") })
}

/// Control characters and backslashes stand as `\xNN`.
fn unescape(line: &str) -> String {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = (first == b'\\').then(|| tail.strip_prefix(b"x")?.first_chunk::<2>()).flatten();
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testkit::{Skip, need};
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn a_record_is_taken_apart() {
        let record =
            "28,339,5140900,-,caller=T1;eth0: a\\x0ab\\x5cc\\xzz\n SUBSYSTEM=net\n DEVICE=+net:eth0\n";
        let line = parse(record).unwrap();
        assert_eq!((line.sequence, line.level, line.time_us), (339, 4, 5_140_900));
        assert_eq!(line.text, "eth0: a\nb\\c\\xzz");
        assert_eq!(parse("no record"), None);
    }

    #[test]
    fn lost_lines_are_counted_from_the_wanted_one_on() {
        let line = |sequence| LogLine { sequence, level: 6, time_us: 0, text: String::new() };
        let read = |from: u64, numbers: &[u64]| {
            let mut log = KernelLog { next: if from == u64::MAX { 0 } else { from }, ..KernelLog::default() };
            numbers.iter().for_each(|number| enter(&mut log, from, line(*number)));
            (log.lines.len(), log.next, log.lost)
        };
        assert_eq!(read(0, &[7, 8, 10]), (3, 11, 1));
        assert_eq!(read(5, &[7, 8, 10]), (3, 11, 3));
        assert_eq!(read(8, &[7, 8, 10]), (2, 11, 1));
        assert_eq!(read(11, &[7, 8, 10]), (0, 11, 0));
        assert_eq!(read(u64::MAX, &[7, 8, 10]), (0, 11, 0));
    }

    #[test]
    fn a_line_that_is_written_is_read() {
        need!(root());
        let position = kernel_log(u64::MAX);
        need!(with position.as_ref().map_err(|error| Skip::new(format!("needs the kernel's log: {error}"))));
        let next = position.unwrap().next;
        let text = format!("linerate test {}", std::process::id());
        // A line without its end may be continued, and is not given to readers yet.
        let mut file = OpenOptions::new().write(true).open(PATH).unwrap();
        file.write_all(format!("{text}\n").as_bytes()).unwrap();
        let log = kernel_log(next).unwrap();
        assert!(log.lines.iter().any(|line| line.text == text), "{log:?}");
        assert!(log.next > next && log.lost == 0);
    }

    proptest! {
        #[test]
        fn hostile_records_never_panic(record in "([0-9]{0,21},){0,4};?(.|\\\\x[0-9a-z]?|\n){0,40}") {
            let _ = parse(&record);
        }
    }
}
