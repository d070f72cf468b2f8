//! A trial in one line, and its factors as words.

use linerate_model::trial::{Amount, Family, Trial};
use linerate_model::units::{ByteCount, Rate};
use linerate_model::workload::{TcpOptions, UdpOptions, Workload};

use crate::numbers;

/// One line that tells a trial from the others of a run: `tcp-stream 64K x4 IPv6`, with what differs from the
/// defaults behind it, and `repeat N` from the second on (counted from 1, for people).
pub fn trial_text(trial: &Trial) -> String {
    let mut text = format!(
        "{} {} x{} {}",
        trial.workload.kind().name(),
        trial.workload.size_text(),
        trial.streams,
        family_text(trial.family),
    );
    for factor in FACTORS {
        let value = (factor.value)(trial);
        if factor.name != "for" && !value.is_empty() {
            text += " ";
            text += &factor.phrase(&value);
        }
    }
    for setting in &trial.settings {
        text.extend([" ", &setting.key, "=", &setting.value]);
    }
    if trial.repeat > 0 {
        text += " repeat ";
        text += &(trial.repeat + 1).to_string();
    }
    text
}

/// `IPv4` or `IPv6`.
pub(crate) fn family_text(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// Something that an experiment can vary besides workload, family, size and streams.
pub(crate) struct Factor {
    /// Its word: the command line's option without dashes.
    pub(crate) name: &'static str,
    /// Its value; empty for the default.
    pub(crate) value: fn(&Trial) -> String,
    /// The value alone says what it is (`sendfile`), or is the name itself (`nodelay`).
    speaks: bool,
}

impl Factor {
    /// Words for a line of text: `sendfile`, `rate 1gbit`.
    pub(crate) fn phrase(&self, value: &str) -> String {
        if self.speaks { value.to_owned() } else { format!("{} {value}", self.name) }
    }
}

/// Every factor, in the order of the help text.
pub(crate) const FACTORS: &[Factor] = &[
    Factor { name: "for", value: amount_text, speaks: true },
    Factor {
        name: "peers",
        value: |t| if t.peers > 1 { t.peers.to_string() } else { String::new() },
        speaks: false,
    },
    Factor { name: "send", value: send_text, speaks: true },
    Factor { name: "connection", value: connection_text, speaks: true },
    Factor { name: "rate", value: |t| text(t.workload.rate().map(|r: Rate| r.to_string())), speaks: false },
    Factor { name: "in-flight", value: in_flight_text, speaks: false },
    Factor {
        name: "buffer",
        value: |t| text(t.workload.buffer_bytes().map(|b: ByteCount| b.to_string())),
        speaks: false,
    },
    Factor { name: "nodelay", value: nodelay_text, speaks: true },
    Factor {
        name: "mss",
        value: |t| text(tcp(t).and_then(|o| o.mss_bytes).map(|m| m.to_string())),
        speaks: false,
    },
    Factor { name: "congestion", value: |t| text(tcp(t).and_then(|o| o.congestion.clone())), speaks: false },
    Factor { name: "tos", value: tos_text, speaks: false },
    Factor { name: "pin", value: pin_text, speaks: false },
    Factor { name: "verify", value: |t| text(t.verify_seed.map(|_| "verify".to_owned())), speaks: true },
];

/// The word for a factor's default, where one is needed.
pub(crate) fn default_word(factor: &str) -> &'static str {
    match factor {
        "peers" => "1",
        "send" => "write",
        "connection" => "two connections",
        "rate" => "no rate",
        "nodelay" => "no nodelay",
        "verify" => "no verify",
        "pin" => "not pinned",
        _ => "default",
    }
}

fn text(value: Option<String>) -> String {
    value.unwrap_or_default()
}

fn tcp(trial: &Trial) -> Option<&TcpOptions> {
    trial.workload.tcp_options()
}

fn amount_text(trial: &Trial) -> String {
    match trial.amount {
        Amount::DurationNs(ns) => numbers::time(ns),
        Amount::Bytes(bytes) => format!("{} bytes", ByteCount(bytes)),
        Amount::Transactions(count) => format!("{count} transactions"),
        Amount::Whole => "the whole profile".to_owned(),
    }
}

fn send_text(trial: &Trial) -> String {
    use linerate_model::workload::SendMethod;
    let send = match &trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => w.send,
        Workload::TcpBidir(w) => w.stream.send,
        Workload::TcpRr(_)
        | Workload::TcpCrr(_)
        | Workload::UdpStream(_)
        | Workload::UdpRr(_)
        | Workload::Profile(_) => SendMethod::default(),
    };
    if send == SendMethod::default() { String::new() } else { send.name().to_owned() }
}

fn connection_text(trial: &Trial) -> String {
    match &trial.workload {
        Workload::TcpBidir(w) if w.one_connection => "one-connection".to_owned(),
        _ => String::new(),
    }
}

fn in_flight_text(trial: &Trial) -> String {
    match &trial.workload {
        Workload::TcpRr(w) => text(w.in_flight.map(|n| n.to_string())),
        Workload::UdpRr(w) => text(w.in_flight.map(|n| n.to_string())),
        _ => String::new(),
    }
}

fn nodelay_text(trial: &Trial) -> String {
    if tcp(trial).is_some_and(|o| o.nodelay) { "nodelay".to_owned() } else { String::new() }
}

fn tos_text(trial: &Trial) -> String {
    let udp = |o: &UdpOptions| o.tos;
    let tos = match &trial.workload {
        Workload::UdpStream(w) => udp(&w.socket),
        Workload::UdpRr(w) => udp(&w.socket),
        _ => tcp(trial).and_then(|o| o.tos),
    };
    text(tos.map(|t| format!("0x{t:02x}")))
}

fn pin_text(trial: &Trial) -> String {
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
    let sides = [("dut", &trial.pin.dut), ("peer", &trial.pin.peer)];
    let texts: Vec<String> = sides
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(side, cpus)| format!("{side}={}", list(cpus)))
        .collect();
    texts.join(",")
}
