//! Writes lines whole, with the time before each where that is asked for.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::json_report::JsonReport;
use super::options::Output;
use super::record::Record;
use super::report::Event;
use super::server::{ServerEvent, ServerTold};
use super::text_report::{TextOptions, TextReport};
use crate::observed::Keep;

const RULE: &str = "-----------------------------------------------------------";

/// Where a tool's lines go.
pub(super) struct Printer {
    out: Box<dyn Write + Send>,
    timestamps: Option<String>,
}

impl Printer {
    pub(super) fn new(out: Box<dyn Write + Send>, timestamps: Option<String>) -> Self {
        Self { out, timestamps }
    }

    /// Writes lines. A reader that is gone ends nothing: the test goes on for the other side.
    pub(super) fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let stamped = match &self.timestamps {
            Some(format) => {
                let stamp = stamp(format);
                text.lines().fold(String::new(), |all, line| all + &stamp + line + "\n")
            }
            None => text.to_owned(),
        };
        let _written = self.out.write_all(stamped.as_bytes()).and_then(|()| self.out.flush());
    }
}

fn stamp(format: &str) -> String {
    let now = jiff::ZonedDateTime::now();
    jiff::fmt::strtime::format(format, &now).unwrap_or_else(|_| format.to_owned())
}

/// Text or JSON of one test.
pub(super) enum Form {
    Text(TextReport),
    Json(JsonReport),
    Lines(JsonReport, bool),
}

impl Form {
    pub(super) fn new(output: &Output) -> Self {
        if output.json_stream {
            return Self::Lines(JsonReport::default(), output.json_stream_full);
        }
        if output.json {
            return Self::Json(JsonReport::default());
        }
        Self::Text(TextReport::new(TextOptions { rate: output.rate, verbose: output.verbose }))
    }

    /// What is printed at once.
    pub(super) fn event(&mut self, event: &Event) -> String {
        match self {
            Self::Text(report) => report.event(event),
            Self::Lines(report, _) => report.stream_line(event),
            Self::Json(report) => {
                report.event(event);
                String::new()
            }
        }
    }

    /// What is printed at the end.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Text(_) | Self::Lines(_, false) => String::new(),
            Self::Json(report) | Self::Lines(report, true) => report.finish(),
        }
    }
}

/// Prints the tests of many clients: one as it goes on, the others whole when it is their turn.
pub(super) struct Board {
    inner: Mutex<Inner>,
    output: Output,
    port: u16,
    keep: Keep,
}

struct Inner {
    printer: Printer,
    errors: Box<dyn Write + Send>,
    tests: HashMap<u64, (Form, String, Record)>,
    live: Option<u64>,
    count: u64,
}

impl Board {
    pub(super) fn new(
        out: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
        output: &Output,
        port: u16,
        keep: Keep,
    ) -> Self {
        let printer = Printer::new(out, output.timestamps.clone());
        let inner = Inner { printer, errors, tests: HashMap::new(), live: None, count: 0 };
        Self { inner: Mutex::new(inner), output: output.clone(), port, keep }
    }

    /// Says that the server listens.
    pub(super) fn listening(&self) {
        let text = self.banner(1);
        self.lock().printer.print(&text);
    }

    /// Writes a message of the server itself.
    pub(super) fn note(&self, text: &str) {
        let _written = self.lock().errors.write_all(text.as_bytes());
    }

    pub(super) fn event(&self, event: &ServerEvent) {
        let mut inner = self.lock();
        match &event.what {
            ServerTold::Test(what) => self.test_event(&mut inner, event.client, what),
            ServerTold::Refused(why) => {
                let line = format!("iperf3: refused {}: {why}\n", event.address);
                let _written = inner.errors.write_all(line.as_bytes());
            }
            ServerTold::Gone => self.gone(&mut inner, event.client),
        }
    }

    fn test_event(&self, inner: &mut Inner, client: u64, event: &Event) {
        if let Event::Failed(error) = event
            && !self.output.json
        {
            let line = format!("iperf3: error - {error}\n");
            let _written = inner.errors.write_all(line.as_bytes());
        }
        let live = *inner.live.get_or_insert(client) == client;
        let make = || (Form::new(&self.output), String::new(), Record::default());
        let (form, held, record) = inner.tests.entry(client).or_insert_with(make);
        if let Some(path) = &self.output.record
            && let Err(error) = record.event(event).into_iter().try_for_each(|one| (self.keep)(path, one))
        {
            let line = format!("iperf3: error - write {}: {error}\n", path.display());
            let _written = inner.errors.write_all(line.as_bytes());
        }
        let text = form.event(event);
        if live {
            // It may have waited for its turn.
            let text = std::mem::take(held) + &text;
            inner.printer.print(&text);
        } else {
            held.push_str(&text);
        }
    }

    fn gone(&self, inner: &mut Inner, client: u64) {
        let Some((form, held, _record)) = inner.tests.remove(&client) else { return };
        let rest = held + &form.finish();
        inner.count += 1;
        let text = rest + &self.banner(inner.count + 1);
        if inner.live.is_none_or(|live| live == client) {
            inner.printer.print(&text);
            inner.live = None;
            return;
        }
        // Between two lines of the test that is shown; its own lines are complete.
        inner.printer.print(&text);
    }

    fn banner(&self, test: u64) -> String {
        if self.output.json || self.output.json_stream {
            return String::new();
        }
        format!("{RULE}\nServer listening on {} (test #{test})\n{RULE}\n", self.port)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
