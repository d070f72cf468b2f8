//! What `--linerate-json` writes: one test's figures in plain units, one JSON object on a line.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::json_text::Json;
use super::report::{Connected, Event, Moved, Role, StreamEnd};
use super::results::CpuPercent;

/// Collects a test's figures.
#[derive(Debug, Default)]
pub(super) struct Record {
    connected: Option<Connected>,
}

impl Record {
    /// Takes an event; gives the line when the test is over.
    pub(super) fn event(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Connected(connected) => self.connected = Some((**connected).clone()),
            Event::Ended(end) => {
                let c = self.connected.as_ref()?;
                let streams = end.streams.iter().map(stream).collect();
                let object = Json::object([
                    ("tool", "iperf3".into()),
                    ("role", if c.role == Role::Client { "client" } else { "server" }.into()),
                    ("peer", c.host.as_str().into()),
                    ("time_ms", c.time_ms.into()),
                    ("transport", c.params.transport.name().into()),
                    ("block_bytes", c.params.len.into()),
                    ("omitted_seconds", c.params.omit_s.into()),
                    ("streams", Json::Array(streams)),
                    ("cpu_percent", cpu(end.cpu_local)),
                    ("far_cpu_percent", cpu(end.cpu_remote)),
                ]);
                return Some(object.compact() + "\n");
            }
            Event::Started(_) | Event::Interval(_) | Event::Failed(_) => {}
        }
        None
    }
}

/// Adds a line to a file.
pub(super) fn append(path: &Path, line: &str) -> io::Result<()> {
    File::options().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

fn cpu(cpu: CpuPercent) -> Json {
    Json::object([("user", cpu.user.into()), ("system", cpu.system.into())])
}

fn stream(s: &StreamEnd) -> Json {
    let mut fields = vec![("sends", s.sends.into())];
    let moved = |m: Moved| {
        Json::object([
            ("bytes", m.bytes.into()),
            ("seconds", m.seconds.into()),
            ("bits_per_second", m.rate().into()),
        ])
    };
    fields.extend(s.sent.map(|m| ("sent", moved(m))));
    fields.extend(s.received.map(|m| ("received", moved(m))));
    fields.extend(s.retransmits.map(|r| ("retransmits", r.into())));
    if let Some(udp) = s.udp {
        fields.extend([
            ("datagrams_sent", udp.sent.into()),
            ("datagrams_lost", udp.lost.into()),
            ("datagrams_late", udp.out_of_order.into()),
            ("datagrams_twice", udp.duplicates.into()),
            ("jitter_seconds", udp.jitter_s.into()),
        ]);
    }
    Json::object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::params::Params;
    use crate::iperf3::report::End;

    #[test]
    fn a_test_is_one_line_of_json() {
        let mut record = Record::default();
        let connected = Connected {
            role: Role::Client,
            host: "h".into(),
            port: 1,
            time_ms: 2,
            cookie: String::new(),
            params: Params::default(),
            control_mss: 0,
        };
        assert_eq!(record.event(&Event::Connected(Box::new(connected))), None);
        let sent = Some(Moved { bytes: 10, seconds: 2.0 });
        let end = End { streams: vec![StreamEnd { sent, ..StreamEnd::default() }], ..End::default() };
        let line = record.event(&Event::Ended(Box::new(end))).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["streams"][0]["sent"]["bits_per_second"], 40);
        assert_eq!(line.lines().count(), 1);
    }
}
