//! The lines that iperf3 prints.

use super::params::{Params, Transport};
use super::report::{
    Connected, Datagrams, End, Event, FileEnd, Interval, Moved, Role, Started, StreamEnd, StreamInterval,
};
use super::results::{CpuPercent, ServerOutput};
use super::units::{RateFormat, bytes as bytes_text, rate};

/// What a tool of this protocol says it is: the version whose protocol and output this is.
pub const VERSION: &str = concat!("iperf 3.21 (linerate ", env!("CARGO_PKG_VERSION"), ")");

const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// How lines are made.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// Rates.
    pub rate: RateFormat,
    /// More lines.
    pub verbose: bool,
}

/// Makes the lines of one test.
#[derive(Debug)]
pub struct TextReport {
    options: TextOptions,
    role: Role,
    params: Params,
    intervals: usize,
}

impl TextReport {
    /// Begins.
    pub fn new(options: TextOptions) -> Self {
        Self { options, role: Role::Client, params: Params::default(), intervals: 0 }
    }

    /// The lines of an event, each with its newline; none for a failure, which is an error message.
    pub fn event(&mut self, event: &Event) -> String {
        let lines = match event {
            Event::Connected(connected) => self.connected(connected),
            Event::Started(started) => self.started(started),
            Event::Interval(interval) => self.interval(interval),
            Event::Ended(end) => self.ended(end),
            Event::Failed(_) => vec![],
        };
        lines.iter().fold(String::new(), |text, line| text + &self.titled(line) + "\n")
    }

    fn titled(&self, line: &str) -> String {
        match &self.params.title {
            Some(title) => format!("{title}:  {line}"),
            None => line.to_owned(),
        }
    }

    fn connected(&mut self, connected: &Connected) -> Vec<String> {
        self.role = connected.role;
        self.params = connected.params.clone();
        let mut lines = Vec::new();
        if self.options.verbose {
            if self.role == Role::Client {
                lines.push(format!("Control connection MSS {}", connected.control_mss));
            }
            lines.push(format!("Time: {}", http_date(connected.time_ms)));
        }
        let Connected { host, port, .. } = connected;
        match self.role {
            Role::Client => lines.push(format!("Connecting to host {host}, port {port}")),
            Role::Server => lines.push(format!("Accepted connection from {host}, port {port}")),
        }
        if self.role == Role::Client && self.params.reverse {
            lines.push(format!("Reverse mode, remote host {host} is sending"));
        }
        if self.options.verbose {
            lines.push(format!("      Cookie: {}", connected.cookie));
        }
        lines
    }

    fn started(&self, started: &Started) -> Vec<String> {
        let mut lines = Vec::new();
        if self.options.verbose {
            match (self.params.transport, self.params.mss) {
                (Transport::Tcp, Some(mss)) => lines.push(format!("      TCP MSS: {mss}")),
                (Transport::Tcp, None) => {
                    lines.push(format!("      TCP MSS: {} (default)", started.mss.unwrap_or(0)));
                }
                (Transport::Udp, _) => {}
            }
            if let Some(bandwidth) = self.params.bandwidth {
                lines.push(format!("      Target Bitrate: {bandwidth}"));
            }
        }
        lines.extend(started.streams.iter().map(|s| {
            let (local, remote) = (s.local, s.remote);
            let ends = format!("local {} port {}", local.ip(), local.port());
            format!("[{:3}] {ends} connected to {} port {}", s.socket, remote.ip(), remote.port())
        }));
        if self.options.verbose {
            lines.push(self.starting());
        }
        lines
    }

    fn starting(&self) -> String {
        let p = &self.params;
        let length = match (p.num, p.blockcount) {
            (0, 0) => format!("{} second test", p.time_s),
            (0, blocks) => format!("{blocks} blocks to send"),
            (bytes, _) => format!("{bytes} bytes to send"),
        };
        format!(
            "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {length}, tos {}",
            p.transport.name(),
            p.parallel,
            p.len,
            p.omit_s,
            p.tos
        )
    }

    fn interval(&mut self, interval: &Interval) -> Vec<String> {
        let mut lines = Vec::new();
        let sends = interval.streams.iter().any(|s| s.sends);
        if self.intervals == 0 {
            lines.push(self.header(self.interval_columns(sends)));
        } else if interval.streams.len() > 1 {
            lines.push(SEPARATOR.to_owned());
        }
        self.intervals += 1;
        let first = interval.streams.first().map_or((0.0, 0.0), |s| (s.start_s, s.end_s));
        for direction in self.directions() {
            let rows: Vec<_> = interval.streams.iter().filter(|s| s.sends == direction).collect();
            lines.extend(rows.iter().map(|s| self.interval_row(s, interval.omitted)));
            if self.params.parallel > 1 && !rows.is_empty() {
                lines.push(self.interval_sum(&rows, first, direction, interval.omitted));
            }
        }
        lines
    }

    /// Directions in the order of rows: what this side sends, true; a server has its receiving streams first.
    fn directions(&self) -> [bool; 2] {
        let client = self.role == Role::Client;
        [client, !client]
    }

    fn interval_columns(&self, sends: bool) -> &'static str {
        match (self.params.transport, sends, self.params.bidir) {
            (Transport::Tcp, true, _) => "         Retr  Cwnd",
            (Transport::Tcp, false, _) => "",
            (Transport::Udp, true, false) => "         Total Datagrams",
            (Transport::Udp, ..) => "         Jitter    Lost/Total Datagrams",
        }
    }

    fn header(&self, columns: &str) -> String {
        let role = if self.params.bidir { "[Role]" } else { "" };
        format!("[ ID]{role} Interval           Transfer     Bitrate{columns}")
    }

    fn row(&self, id: &str, sends: bool, times: (f64, f64), moved: Moved) -> String {
        let role = match (self.params.bidir, sends, self.role) {
            (false, ..) => "",
            (true, true, Role::Client) => "[TX-C]",
            (true, false, Role::Client) => "[RX-C]",
            (true, true, Role::Server) => "[TX-S]",
            (true, false, Role::Server) => "[RX-S]",
        };
        let (start, end) = times;
        let (transfer, speed) = (bytes_text(moved.bytes as f64), rate(moved.rate(), self.options.rate));
        format!("[{id}]{role} {start:6.2}-{end:<6.2} sec  {transfer}  {speed}")
    }

    fn interval_row(&self, s: &StreamInterval, omitted: bool) -> String {
        let moved = Moved { bytes: s.bytes, seconds: s.end_s - s.start_s };
        let row = self.row(&format!("{:3}", s.socket), s.sends, (s.start_s, s.end_s), moved);
        let note = if omitted { "(omitted)" } else { "" };
        match (self.params.transport, s.sends, s.tcp) {
            (Transport::Tcp, true, Some(tcp)) => {
                format!("{row}  {:3}   {}       {note}", tcp.retransmits, bytes_text(tcp.snd_cwnd as f64))
            }
            (Transport::Tcp, ..) => format!("{row}                  {note}"),
            (Transport::Udp, true, _) => format!("{row}  {}  {note}", s.packets),
            (Transport::Udp, false, _) => {
                format!("{row}  {}  {note}", losses(s.jitter_s, s.lost, s.packets))
            }
        }
    }

    fn interval_sum(
        &self,
        rows: &[&StreamInterval],
        times: (f64, f64),
        sends: bool,
        omitted: bool,
    ) -> String {
        let moved = Moved { bytes: rows.iter().map(|s| s.bytes).sum(), seconds: times.1 - times.0 };
        let row = self.row("SUM", sends, times, moved);
        let note = if omitted { "(omitted)" } else { "" };
        let packets: i64 = rows.iter().map(|s| s.packets).sum();
        match (self.params.transport, sends) {
            (Transport::Tcp, true) => {
                let retransmits: i64 = rows.iter().filter_map(|s| s.tcp).map(|t| t.retransmits).sum();
                format!("{row}  {retransmits:3}             {note}")
            }
            (Transport::Tcp, false) => format!("{row}                  {note}"),
            (Transport::Udp, true) => format!("{row}  {packets}  {note}"),
            (Transport::Udp, false) => {
                let jitter_s = rows.iter().map(|s| s.jitter_s).sum::<f64>() / rows.len() as f64;
                let lost = rows.iter().map(|s| s.lost).sum();
                format!("{row}  {}  {note}", losses(jitter_s, lost, packets))
            }
        }
    }

    fn ended(&self, end: &End) -> Vec<String> {
        let mut lines = vec![SEPARATOR.to_owned()];
        if self.options.verbose {
            lines.push("Test Complete. Summary Results:".to_owned());
        }
        let columns = match self.params.transport {
            Transport::Tcp if end.streams.iter().any(|s| s.retransmits.is_some()) => "         Retr",
            Transport::Tcp => "",
            Transport::Udp => "         Jitter    Lost/Total Datagrams",
        };
        lines.push(self.header(columns));
        let mut first = true;
        for direction in self.directions() {
            let rows: Vec<_> = end.streams.iter().filter(|s| s.sends == direction).collect();
            if rows.is_empty() {
                continue;
            }
            lines.extend(
                rows.iter().flat_map(|s| self.end_rows(&format!("{:3}", s.socket), s, end.file.as_ref())),
            );
            if self.params.parallel > 1 {
                lines.extend(self.end_rows("SUM", &sum(&rows), None));
            }
            lines.extend(strange_datagrams(&rows));
            if self.options.verbose {
                lines.extend(self.cpu_and_congestion(end, direction, first));
            }
            first = false;
        }
        lines.extend(self.server_output(end));
        if self.role == Role::Client {
            lines.extend([String::new(), "iperf Done.".to_owned()]);
        }
        lines
    }

    fn end_rows(&self, id: &str, s: &StreamEnd, file: Option<&FileEnd>) -> Vec<String> {
        let mut lines = Vec::new();
        let missing = |what: &str| format!("[{id}] ({what} statistics not available)");
        match s.sent {
            Some(sent) => {
                let row = self.row(id, s.sends, (0.0, sent.seconds), sent);
                lines.push(match (s.retransmits, s.udp) {
                    (Some(retransmits), _) => format!("{row}  {retransmits:3}             sender"),
                    (None, Some(udp)) => format!("{row}  {}  sender", losses(0.0, 0, udp.sent)),
                    (None, None) => format!("{row}                  sender"),
                });
            }
            None if self.options.verbose => lines.push(missing("sender")),
            None => {}
        }
        lines.extend(file.map(|file| file_row(file, s)));
        match s.received {
            Some(received) => {
                let row = self.row(id, s.sends, (0.0, received.seconds), received);
                lines.push(match s.udp {
                    Some(udp) => {
                        format!("{row}  {}  receiver", losses(udp.jitter_s, udp.lost, expected(&udp)))
                    }
                    None => format!("{row}                  receiver"),
                });
            }
            None if self.options.verbose => lines.push(missing("receiver")),
            None => {}
        }
        lines
    }

    fn cpu_and_congestion(&self, end: &End, sends: bool, first: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let line = |sends: bool| {
            let (own, far) = if sends { ("sender", "receiver") } else { ("receiver", "sender") };
            let (local, remote) = (percent(end.cpu_local), percent(end.cpu_remote));
            format!("CPU Utilization: local/{own} {local}, remote/{far} {remote}")
        };
        if first && (self.role == Role::Client || sends) {
            lines.push(line(sends));
            if self.params.bidir {
                lines.push(line(!sends));
            }
        }
        let named = |what: &str, name: &Option<String>| name.as_ref().map(|n| format!("{what} {n}"));
        lines.extend(named("snd_tcp_congestion", &end.sender_congestion));
        lines.extend(named("rcv_tcp_congestion", &end.receiver_congestion));
        lines
    }

    fn server_output(&self, end: &End) -> Vec<String> {
        match &end.server_output {
            None => vec![],
            Some(ServerOutput::Text(text)) => {
                let mut lines = vec![String::new(), "Server output:".to_owned()];
                lines.extend(text.lines().map(str::to_owned));
                lines
            }
            Some(ServerOutput::Json(value)) => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                vec![String::new(), "Server JSON output:".to_owned(), text]
            }
        }
    }
}

/// Datagrams that should have arrived, as far as is known.
fn expected(udp: &Datagrams) -> i64 {
    if udp.sent > 0 { udp.sent } else { udp.received }
}

fn losses(jitter_s: f64, lost: i64, packets: i64) -> String {
    let percent = if packets > 0 { 100.0 * lost as f64 / packets as f64 } else { 0.0 };
    format!("{:.3} ms  {lost}/{packets} ({}%)", jitter_s * 1000.0, two_digits(percent))
}

/// Two significant digits, without an exponent.
fn two_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (1.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn percent(cpu: CpuPercent) -> String {
    format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system)
}

/// How much of its file this side moved. The word is the same whether it sent or received.
fn file_row(file: &FileEnd, s: &StreamEnd) -> String {
    let moved = if s.sends { s.sent } else { s.received }.map_or(0, |m| m.bytes);
    let singular = |bytes: u64| bytes_text(bytes as f64).trim_end_matches('s').to_owned();
    let percent = file.percent(moved);
    format!("        Sent {} / {} ({percent}%) of {}", singular(moved), singular(file.size), file.name)
}

/// All streams of a direction as one. Times are the first's.
pub(super) fn sum(streams: &[&StreamEnd]) -> StreamEnd {
    let Some(first) = streams.first() else { return StreamEnd::default() };
    let moved = |side: fn(&StreamEnd) -> Option<Moved>| {
        let bytes = streams.iter().filter_map(|s| side(s)).map(|m| m.bytes).sum();
        side(first).map(|m| Moved { bytes, seconds: m.seconds })
    };
    let total = |part: fn(&Datagrams) -> i64| streams.iter().filter_map(|s| s.udp.as_ref()).map(part).sum();
    let datagrams = first.udp.map(|_| Datagrams {
        sent: total(|d| d.sent),
        received: total(|d| d.received),
        lost: total(|d| d.lost),
        out_of_order: total(|d| d.out_of_order),
        duplicates: total(|d| d.duplicates),
        jitter_s: streams.iter().filter_map(|s| s.udp).map(|d| d.jitter_s).sum::<f64>()
            / streams.len() as f64,
    });
    StreamEnd {
        socket: first.socket,
        sends: first.sends,
        sent: moved(|s| s.sent),
        received: moved(|s| s.received),
        retransmits: first.retransmits.map(|_| streams.iter().filter_map(|s| s.retransmits).sum()),
        tcp: None,
        udp: datagrams,
    }
}

fn strange_datagrams(streams: &[&StreamEnd]) -> Vec<String> {
    let all = sum(streams);
    let (Some(udp), Some(received)) = (all.udp, all.received) else { return vec![] };
    let line = |count: i64, what: &str| {
        let end = received.seconds;
        (count > 0).then(|| format!("[SUM]  0.0-{end:4.1} sec  {count} datagrams received {what}"))
    };
    [line(udp.out_of_order, "out-of-order"), line(udp.duplicates, "twice")].into_iter().flatten().collect()
}

/// A time as RFC 1123 writes it, from Unix milliseconds.
pub(super) fn http_date(time_ms: u64) -> String {
    let milliseconds = i64::try_from(time_ms).unwrap_or(0);
    let time = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::report::TcpSample;

    fn report(params: Params, role: Role) -> TextReport {
        let mut report = TextReport::new(TextOptions::default());
        (report.params, report.role) = (params, role);
        report
    }

    fn stream(sends: bool, bytes: u64) -> StreamInterval {
        let tcp = TcpSample { retransmits: 14, snd_cwnd: 1023 * 1024, ..TcpSample::default() };
        StreamInterval {
            socket: 5,
            sends,
            start_s: 1.0,
            end_s: 2.0,
            bytes,
            tcp: sends.then_some(tcp),
            packets: 209,
            lost: 9,
            out_of_order: 0,
            jitter_s: 0.000014,
        }
    }

    #[test]
    fn rows_are_those_of_the_spec() {
        let gigabytes = 1_782_411_264;
        let mut tcp = report(Params::default(), Role::Client);
        let text =
            tcp.event(&Event::Interval(Interval { streams: vec![stream(true, gigabytes)], omitted: false }));
        let expected = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
            [  5]   1.00-2.00   sec  1.66 GBytes  14.3 Gbits/sec   14   1023 KBytes       \n";
        assert_eq!(text, expected);
        let mut server = report(Params { transport: Transport::Udp, ..Params::default() }, Role::Server);
        let text =
            server.event(&Event::Interval(Interval { streams: vec![stream(false, 250_880)], omitted: true }));
        let expected = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
            [  5]   1.00-2.00   sec   245 KBytes  2.01 Mbits/sec  0.014 ms  9/209 (4.3%)  (omitted)\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn both_directions_have_their_roles_and_sums() {
        let params = Params { bidir: true, parallel: 2, ..Params::default() };
        let streams = vec![stream(true, 1), stream(true, 2), stream(false, 3), stream(false, 4)];
        let mut client = report(params.clone(), Role::Client);
        let text = client.event(&Event::Interval(Interval { streams: streams.clone(), omitted: false }));
        let starts: Vec<&str> = text.lines().skip(1).map(|l| &l[..11]).collect();
        assert_eq!(
            starts,
            ["[  5][TX-C]", "[  5][TX-C]", "[SUM][TX-C]", "[  5][RX-C]", "[  5][RX-C]", "[SUM][RX-C]"]
        );
        let mut server = report(params, Role::Server);
        let text = server.event(&Event::Interval(Interval { streams, omitted: false }));
        assert!(text.lines().nth(1).unwrap().starts_with("[  5][RX-S]"));
    }

    #[test]
    fn the_end_names_both_sides() {
        let client = report(Params::default(), Role::Client);
        let moved = Moved { bytes: 1 << 30, seconds: 2.0 };
        let stream = StreamEnd {
            socket: 5,
            sends: true,
            sent: Some(moved),
            received: Some(moved),
            retransmits: Some(28),
            ..StreamEnd::default()
        };
        let lines = client.ended(&End { streams: vec![stream], ..End::default() });
        assert_eq!(lines[1], "[ ID] Interval           Transfer     Bitrate         Retr");
        assert_eq!(lines[2], "[  5]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec   28             sender");
        assert_eq!(
            lines[3],
            "[  5]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec                  receiver"
        );
        assert_eq!(lines[4..], ["", "iperf Done."]);
        let file = FileEnd { name: "/tmp/f".to_owned(), size: 1 << 31 };
        let row = file_row(&file, &StreamEnd { sends: true, sent: Some(moved), ..StreamEnd::default() });
        assert_eq!(row, "        Sent 1.00 GByte / 2.00 GByte (50%) of /tmp/f");
    }

    #[test]
    fn percentages_have_two_digits() {
        let texts = [0.0, 4.306, 18.0, 0.0456, 100.0, 99.6].map(two_digits);
        assert_eq!(texts, ["0", "4.3", "18", "0.046", "100", "100"]);
    }

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(1_796_075_154_123), "Mon, 30 Nov 2026 21:45:54 GMT");
    }
}
