//! QEMU's monitor: one JSON object a line (QEMU Machine Protocol, docs/interop/qmp-spec).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// How long QEMU may take to answer; it is busy with the guest meanwhile.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Lines that are no answer (events) before one that is.
const MOST_EVENTS: usize = 1000;

/// A conversation with the monitor.
#[derive(Debug)]
pub(super) struct Monitor {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Monitor {
    /// Takes the greeting, and leaves the state in which QEMU only negotiates.
    ///
    /// # Errors
    /// What came is no greeting, or the socket failed.
    pub(super) fn open(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let writer = stream.try_clone()?;
        let mut monitor = Self { reader: BufReader::new(stream), writer };
        if monitor.line()?.get("QMP").is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "QEMU's monitor did not greet"));
        }
        monitor.run("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Runs a command, and gives what it returns.
    ///
    /// # Errors
    /// QEMU's refusal in its own words, or the socket failed.
    pub(super) fn run(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        self.writer.write_all(format!("{request}\n").as_bytes())?;
        for _ in 0..MOST_EVENTS {
            let mut answer = self.line()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(refusal) = answer.get("error") {
                let words = refusal.get("desc").and_then(Value::as_str).unwrap_or("refused");
                return Err(io::Error::other(words.to_owned()));
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "QEMU's monitor does not answer"))
    }

    fn line(&mut self) -> io::Result<Value> {
        let mut text = String::new();
        if self.reader.read_line(&mut text)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&text).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A monitor that answers with these lines, whatever it is asked.
    fn scripted(lines: &'static str) -> io::Result<Monitor> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(lines.as_bytes()).unwrap();
        // Kept open until it is dropped with the thread.
        std::thread::spawn(move || io::copy(&mut theirs, &mut io::sink()));
        Monitor::open(ours)
    }

    #[test]
    fn events_are_passed_over_and_refusals_told() {
        let mut monitor = scripted(
            "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"RESUME\"}\n{\"return\": {\"running\": true}}\n\
             {\"error\": {\"class\": \"GenericError\", \"desc\": \"Device 'x' not found\"}}\n",
        )
        .unwrap();
        assert_eq!(monitor.run("query-status", &json!({})).unwrap()["running"], true);
        assert_eq!(monitor.run("set_link", &json!({})).unwrap_err().to_string(), "Device 'x' not found");
    }

    #[test]
    fn what_does_not_greet_is_no_monitor() {
        assert!(scripted("{\"return\": {}}\n").is_err());
        assert!(scripted("hello\n").is_err());
    }
}
