//! The JSON object that iperf3 prints with `-J`, and its lines with `--json-stream`.

use super::json_text::Json;
use super::params::{Params, Transport};
use super::report::{
    Connected, Datagrams, End, Event, FileEnd, Interval, Moved, Role, Started, StreamEnd, StreamInterval,
    TcpExtremes,
};
use super::results::{CpuPercent, ServerOutput};
use super::text_report::{VERSION, http_date, sum};

/// Collects the parts of one test's object.
#[derive(Debug, Default)]
pub struct JsonReport {
    connected: Option<Connected>,
    started: Option<Started>,
    intervals: Vec<Json>,
    end: Option<Json>,
    tail: Vec<(&'static str, Json)>,
}

impl JsonReport {
    /// Takes an event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Connected(connected) => self.connected = Some((**connected).clone()),
            Event::Started(started) => self.started = Some((**started).clone()),
            Event::Interval(interval) => {
                let json = self.interval(interval);
                self.intervals.push(json);
            }
            Event::Ended(end) => {
                self.end = Some(self.end(end));
                match &end.server_output {
                    Some(ServerOutput::Json(value)) => self.tail.push(("server_output_json", value.into())),
                    Some(ServerOutput::Text(text)) => {
                        self.tail.push(("server_output_text", text.as_str().into()));
                    }
                    None => {}
                }
            }
            Event::Failed(error) => self.tail.push(("error", error.as_str().into())),
        }
    }

    /// The line of an event with `--json-stream`.
    pub fn stream_line(&mut self, event: &Event) -> String {
        self.event(event);
        let mut lines = Vec::new();
        match event {
            Event::Connected(_) => {}
            Event::Started(_) => lines.push(("start", self.start())),
            Event::Interval(_) => lines.extend(self.intervals.last().map(|i| ("interval", i.clone()))),
            Event::Ended(_) => {
                lines.extend(self.tail.iter().filter(|(key, _)| key.starts_with("server_output")).cloned());
                lines.extend(self.end.clone().map(|end| ("end", end)));
            }
            Event::Failed(error) => lines.push(("error", error.as_str().into())),
        }
        let line =
            |(event, data)| Json::object([("event", Json::from(event)), ("data", data)]).compact() + "\n";
        lines.into_iter().map(line).collect()
    }

    /// The whole object, tab-indented, with a newline.
    pub fn finish(self) -> String {
        let mut fields = vec![("start", self.start()), ("intervals", Json::Array(self.intervals.clone()))];
        fields.push(("end", self.end.clone().unwrap_or_else(|| Json::object([]))));
        if let Some(c) = &self.connected {
            fields.extend(c.params.title.as_deref().map(|t| ("title", t.into())));
            fields.extend(c.params.extra_data.as_deref().map(|t| ("extra_data", t.into())));
        }
        fields.extend(self.tail.clone());
        Json::object(fields).pretty() + "\n"
    }

    fn params(&self) -> Params {
        self.connected.as_ref().map(|c| c.params.clone()).unwrap_or_default()
    }

    fn start(&self) -> Json {
        let ends = self.started.as_ref().map(|s| s.streams.as_slice()).unwrap_or_default();
        let connected = ends.iter().map(|s| {
            Json::object([
                ("socket", s.socket.into()),
                ("local_host", s.local.ip().to_string().into()),
                ("local_port", s.local.port().into()),
                ("remote_host", s.remote.ip().to_string().into()),
                ("remote_port", s.remote.port().into()),
            ])
        });
        let mut fields = vec![
            ("connected", Json::Array(connected.collect())),
            ("version", VERSION.into()),
            ("system_info", system_info().into()),
        ];
        if let Some(c) = &self.connected {
            fields.extend(self.start_connected(c));
        }
        Json::object(fields)
    }

    fn start_connected(&self, c: &Connected) -> Vec<(&'static str, Json)> {
        let p = &c.params;
        let timestamp = Json::object([
            ("time", http_date(c.time_ms).into()),
            ("timesecs", (c.time_ms / 1000).into()),
            ("timemillisecs", c.time_ms.into()),
        ]);
        let peer = Json::object([("host", c.host.as_str().into()), ("port", c.port.into())]);
        let peer_key = if c.role == Role::Client { "connecting_to" } else { "accepted_connection" };
        let mut fields =
            vec![("timestamp", timestamp), (peer_key, peer), ("cookie", c.cookie.as_str().into())];
        if p.transport == Transport::Tcp {
            let default = self.started.as_ref().and_then(|s| s.mss).unwrap_or(0);
            fields.push(match p.mss {
                Some(mss) => ("tcp_mss", mss.into()),
                None if c.role == Role::Client => ("tcp_mss_default", default.into()),
                None => ("tcp_mss_default", 0.into()),
            });
        }
        fields.push(("target_bitrate", p.bandwidth.unwrap_or(0).into()));
        fields.push(("fq_rate", p.fqrate.into()));
        if let Some(started) = &self.started {
            fields.extend([
                ("sock_bufsize", p.window.unwrap_or(0).into()),
                ("sndbuf_actual", started.buffers.0.into()),
                ("rcvbuf_actual", started.buffers.1.into()),
                ("test_start", test_start(p, started.interval_s)),
            ]);
        }
        fields
    }

    fn interval(&mut self, interval: &Interval) -> Json {
        let p = self.params();
        let streams = interval.streams.iter().map(|s| stream_interval(s, &p, interval.omitted)).collect();
        let mut fields = vec![("streams", Json::Array(streams))];
        let first = interval.streams.first().map_or((0.0, 0.0), |s| (s.start_s, s.end_s));
        for (sends, key) in self.sum_keys(&p) {
            let rows: Vec<_> = interval.streams.iter().filter(|s| s.sends == sends).collect();
            if !rows.is_empty() {
                fields.push((key, interval_sum(&rows, first, &p, interval.omitted)));
            }
        }
        Json::object(fields)
    }

    /// Which direction is under which key: with two, the one from client to server is `sum`.
    fn sum_keys(&self, p: &Params) -> Vec<(bool, &'static str)> {
        let client = self.connected.as_ref().is_some_and(|c| c.role == Role::Client);
        if p.bidir {
            vec![(client, "sum"), (!client, "sum_bidir_reverse")]
        } else {
            vec![(true, "sum"), (false, "sum")]
        }
    }

    fn end(&self, end: &End) -> Json {
        let p = self.params();
        let streams = end.streams.iter().map(|s| stream_end(s, end.file.as_ref())).collect();
        let mut fields = vec![("streams", Json::Array(streams))];
        for (sends, key) in self.sum_keys(&p) {
            let rows: Vec<_> = end.streams.iter().filter(|s| s.sends == sends).collect();
            if !rows.is_empty() {
                fields.extend(end_sums(&sum(&rows), key != "sum"));
            }
        }
        fields.push(("cpu_utilization_percent", cpu(end.cpu_local, end.cpu_remote)));
        let congestion = [
            ("sender_tcp_congestion", &end.sender_congestion),
            ("receiver_tcp_congestion", &end.receiver_congestion),
        ];
        for (key, name) in congestion {
            fields.extend(name.as_deref().map(|name| (key, name.into())));
        }
        Json::object(fields)
    }
}

fn test_start(p: &Params, interval_s: f64) -> Json {
    Json::object([
        ("protocol", p.transport.name().into()),
        ("num_streams", p.parallel.into()),
        ("blksize", p.len.into()),
        ("omit", p.omit_s.into()),
        ("duration", p.time_s.into()),
        ("bytes", p.num.into()),
        ("blocks", p.blockcount.into()),
        ("reverse", u32::from(p.reverse).into()),
        ("tos", u32::from(p.tos).into()),
        ("target_bitrate", p.bandwidth.unwrap_or(0).into()),
        ("bidir", u32::from(p.bidir).into()),
        ("fqrate", p.fqrate.into()),
        ("interval", interval_s.into()),
        ("gso", u32::from(p.offload.gso).into()),
        ("gro", u32::from(p.offload.gro).into()),
    ])
}

type Fields = Vec<(&'static str, Json)>;

fn times(start_s: f64, end_s: f64, seconds: f64, moved: Moved) -> Fields {
    vec![
        ("start", start_s.into()),
        ("end", end_s.into()),
        ("seconds", seconds.into()),
        ("bytes", moved.bytes.into()),
        ("bits_per_second", moved.rate().into()),
    ]
}

fn losses(jitter_s: f64, lost: i64, packets: i64) -> Fields {
    vec![
        ("jitter_ms", (jitter_s * 1000.0).into()),
        ("lost_packets", lost.into()),
        ("packets", packets.into()),
        ("lost_percent", lost_percent(lost, packets).into()),
    ]
}

fn lost_percent(lost: i64, packets: i64) -> f64 {
    if packets > 0 { 100.0 * lost as f64 / packets as f64 } else { 0.0 }
}

fn stream_interval(s: &StreamInterval, p: &Params, omitted: bool) -> Json {
    let seconds = s.end_s - s.start_s;
    let mut fields = vec![("socket", s.socket.into())];
    fields.extend(times(s.start_s, s.end_s, seconds, Moved { bytes: s.bytes, seconds }));
    if let Some(tcp) = s.tcp {
        fields.extend([
            ("retransmits", tcp.retransmits.into()),
            ("snd_cwnd", tcp.snd_cwnd.into()),
            ("snd_wnd", tcp.snd_wnd.into()),
            ("rtt", tcp.rtt_us.into()),
            ("rttvar", tcp.rttvar_us.into()),
            ("pmtu", tcp.pmtu.into()),
            ("reorder", tcp.reorder.into()),
        ]);
    }
    if p.transport == Transport::Udp {
        if s.sends {
            fields.push(("packets", s.packets.into()));
        } else {
            fields.extend(losses(s.jitter_s, s.lost, s.packets));
        }
    }
    fields.extend([("omitted", omitted.into()), ("sender", s.sends.into())]);
    Json::object(fields)
}

fn interval_sum(rows: &[&StreamInterval], (start_s, end_s): (f64, f64), p: &Params, omitted: bool) -> Json {
    let seconds = end_s - start_s;
    let sends = rows.iter().any(|s| s.sends);
    let bytes = rows.iter().map(|s| s.bytes).sum();
    let mut fields = times(start_s, end_s, seconds, Moved { bytes, seconds });
    let packets: i64 = rows.iter().map(|s| s.packets).sum();
    match (p.transport, sends) {
        (Transport::Tcp, true) => {
            let retransmits: i64 = rows.iter().filter_map(|s| s.tcp).map(|t| t.retransmits).sum();
            fields.push(("retransmits", retransmits.into()));
        }
        (Transport::Tcp, false) => {}
        (Transport::Udp, true) => fields.push(("packets", packets.into())),
        (Transport::Udp, false) => {
            let jitter_s = rows.iter().map(|s| s.jitter_s).sum::<f64>() / rows.len() as f64;
            fields.extend(losses(jitter_s, rows.iter().map(|s| s.lost).sum(), packets));
        }
    }
    fields.extend([("omitted", omitted.into()), ("sender", sends.into())]);
    Json::object(fields)
}

/// A side that is not known counts as nothing, over the known side's time.
fn side(own: Option<Moved>, other: Option<Moved>) -> Moved {
    own.unwrap_or_else(|| Moved { bytes: 0, seconds: other.map_or(0.0, |m| m.seconds) })
}

fn stream_end(s: &StreamEnd, file: Option<&FileEnd>) -> Json {
    let (sent, received) = (side(s.sent, s.received), side(s.received, s.sent));
    let socket = ("socket", Json::from(s.socket));
    if let Some(udp) = s.udp {
        let shown = if s.sends { sent } else { received };
        let mut fields = vec![socket];
        fields.extend(times(0.0, shown.seconds, shown.seconds, shown));
        fields.extend(losses(udp.jitter_s, udp.lost, expected(&udp)));
        fields.push(("out_of_order", udp.out_of_order.into()));
        fields.push(("duplicates", udp.duplicates.into()));
        fields.push(("sender", s.sends.into()));
        return Json::object([("udp", Json::object(fields))]);
    }
    let mut sender = vec![socket.clone()];
    sender.extend(times(0.0, sent.seconds, sent.seconds, sent));
    sender.extend(s.retransmits.map(|r| ("retransmits", r.into())));
    // Of a far sender only its retransmits are known; the others are 0, as iperf3 has them.
    if let Some(tcp) = s.tcp.or_else(|| s.retransmits.map(|_| TcpExtremes::default())) {
        sender.extend([
            ("reorder", tcp.reorder.into()),
            ("max_snd_cwnd", tcp.max_snd_cwnd.into()),
            ("max_snd_wnd", tcp.max_snd_wnd.into()),
            ("max_rtt", tcp.max_rtt_us.into()),
            ("min_rtt", tcp.min_rtt_us.into()),
            ("mean_rtt", tcp.mean_rtt_us.into()),
        ]);
    }
    sender.push(("sender", s.sends.into()));
    let mut receiver = vec![socket];
    receiver.extend(times(0.0, received.seconds, received.seconds, received));
    receiver.push(("sender", s.sends.into()));
    let mut fields = vec![("sender", Json::object(sender))];
    fields.extend(file.map(|file| ("diskfile", diskfile(file, sent.bytes, received.bytes))));
    fields.push(("receiver", Json::object(receiver)));
    Json::object(fields)
}

fn diskfile(file: &FileEnd, sent: u64, received: u64) -> Json {
    Json::object([
        ("sent", sent.into()),
        ("received", received.into()),
        ("size", file.size.into()),
        ("percent_sent", file.percent(sent).into()),
        ("percent_received", file.percent(received).into()),
        ("filename", file.name.as_str().into()),
    ])
}

fn expected(udp: &Datagrams) -> i64 {
    if udp.sent > 0 { udp.sent } else { udp.received }
}

/// The sums of one direction; those of the way back have keys of their own.
fn end_sums(all: &StreamEnd, back: bool) -> Fields {
    let (sent, received) = (side(all.sent, all.received), side(all.received, all.sent));
    let mut fields = Vec::new();
    let mut sent_fields = times(0.0, sent.seconds, sent.seconds, sent);
    let mut received_fields = times(0.0, received.seconds, received.seconds, received);
    if let Some(udp) = all.udp {
        let shown = Moved { bytes: sent.bytes, seconds: received.seconds };
        let mut both = times(0.0, received.seconds, received.seconds, shown);
        both.extend(losses(udp.jitter_s, udp.lost, expected(&udp)));
        both.push(("sender", all.sends.into()));
        fields.push((if back { "sum_bidir_reverse" } else { "sum" }, Json::object(both)));
        sent_fields.extend(losses(0.0, 0, udp.sent));
        received_fields.extend(losses(udp.jitter_s, udp.lost, udp.received));
        sent_fields.push(("sender", true.into()));
        received_fields.push(("sender", false.into()));
    } else {
        sent_fields.extend(all.retransmits.map(|r| ("retransmits", r.into())));
        sent_fields.push(("sender", all.sends.into()));
        received_fields.push(("sender", all.sends.into()));
    }
    let keys = if back {
        ("sum_sent_bidir_reverse", "sum_received_bidir_reverse")
    } else {
        ("sum_sent", "sum_received")
    };
    fields.extend([(keys.0, Json::object(sent_fields)), (keys.1, Json::object(received_fields))]);
    fields
}

fn cpu(local: CpuPercent, remote: CpuPercent) -> Json {
    Json::object([
        ("host_total", local.total.into()),
        ("host_user", local.user.into()),
        ("host_system", local.system.into()),
        ("remote_total", remote.total.into()),
        ("remote_user", remote.user.into()),
        ("remote_system", remote.system.into()),
    ])
}

/// The machine as `uname -a` has it.
pub fn system_info() -> String {
    let Ok(name) = nix::sys::utsname::uname() else { return String::new() };
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|p| p.to_string_lossy().into_owned()).join(" ")
}
