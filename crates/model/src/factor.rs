//! The levels of a trial: what an experiment can vary, by name, with this trial's value.

use crate::trial::{Amount, Family, Pinning, Trial};
use crate::units::ByteCount;
use crate::workload::{SendMethod, Workload};

/// A factor's name and the level that a trial has of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// The command line's option without dashes (`size`, `in-flight`), `workload`, or the key of a setting (`dut.tso`).
    pub factor: String,
    /// Its value as the command line takes it; `default` where nothing was asked for.
    pub value: String,
}

/// All levels of a trial, in the order of the help text, settings last. Times are no levels: a longer window measures the
/// same; the repeat is none either.
pub fn levels(trial: &Trial) -> Vec<Level> {
    let mut levels = Levels(Vec::new());
    levels.add("workload", trial.workload.kind().name());
    levels.add("family", if trial.family == Family::V4 { "4" } else { "6" });
    sizes(&trial.workload, &mut levels);
    levels.add("peers", trial.peers);
    levels.add("streams", trial.streams);
    if let Some(send) = send_method(&trial.workload) {
        levels.add("send", send.name());
    }
    if let Workload::TcpBidir(w) = &trial.workload {
        levels.add("one-connection", w.one_connection);
    }
    levels.optional("rate", trial.workload.rate());
    levels.optional("in-flight", in_flight(&trial.workload));
    levels.optional("socket-buffer", trial.workload.buffer_bytes());
    if let Some(options) = trial.workload.tcp_options() {
        levels.add("nodelay", options.nodelay);
        levels.optional("mss", options.mss_bytes);
        levels.optional("congestion", options.congestion.as_ref());
    }
    levels.optional("tos", tos(&trial.workload));
    levels.optional("pin", pin(&trial.pin));
    levels.add("verify", trial.verify_seed.is_some());
    match trial.amount {
        Amount::DurationNs(_) | Amount::Whole => {}
        Amount::Bytes(bytes) => levels.add("bytes", ByteCount(bytes)),
        Amount::Transactions(count) => levels.add("transactions", count),
    }
    for setting in &trial.settings {
        levels.add(&setting.key, &setting.value);
    }
    levels.0
}

/// Whether a level goes without saying: what nobody asked for.
pub fn is_plain(factor: &str, value: &str) -> bool {
    matches!((factor, value), (_, "default" | "false") | ("send", "write") | ("peers", "1"))
}

/// The level that a trial has of one factor; `None` where it knows no such factor.
pub fn level(trial: &Trial, factor: &str) -> Option<String> {
    levels(trial).into_iter().find(|l| l.factor == factor).map(|l| l.value)
}

struct Levels(Vec<Level>);

impl Levels {
    fn add(&mut self, factor: &str, value: impl ToString) {
        self.0.push(Level { factor: factor.to_owned(), value: value.to_string() });
    }

    fn optional(&mut self, factor: &str, value: Option<impl ToString>) {
        self.add(factor, value.map_or_else(|| "default".to_owned(), |v| v.to_string()));
    }
}

fn sizes(workload: &Workload, levels: &mut Levels) {
    match workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => levels.add("size", w.size),
        Workload::TcpBidir(w) => levels.add("size", w.stream.size),
        Workload::UdpStream(w) => levels.add("size", w.size),
        Workload::TcpRr(w) => messages(w.request, w.response, levels),
        Workload::TcpCrr(w) => messages(w.request, w.response, levels),
        Workload::UdpRr(w) => messages(w.request, w.response, levels),
        Workload::Profile(w) => levels.add("profile", w.profile.label()),
    }
}

fn messages(request: ByteCount, response: ByteCount, levels: &mut Levels) {
    levels.add("request", request);
    levels.add("response", response);
}

/// How a workload sends, where it can be chosen.
pub fn send_method(workload: &Workload) -> Option<SendMethod> {
    match workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => Some(w.send),
        Workload::TcpBidir(w) => Some(w.stream.send),
        Workload::TcpRr(_)
        | Workload::TcpCrr(_)
        | Workload::UdpStream(_)
        | Workload::UdpRr(_)
        | Workload::Profile(_) => None,
    }
}

fn in_flight(workload: &Workload) -> Option<u32> {
    match workload {
        Workload::TcpRr(w) => w.in_flight,
        Workload::UdpRr(w) => w.in_flight,
        _ => None,
    }
}

fn tos(workload: &Workload) -> Option<String> {
    let tos = match workload {
        Workload::UdpStream(w) => w.socket.tos,
        Workload::UdpRr(w) => w.socket.tos,
        _ => workload.tcp_options().and_then(|o| o.tos),
    };
    tos.map(|t| format!("0x{t:02x}"))
}

fn pin(pin: &Pinning) -> Option<String> {
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let sides = [("dut", &pin.dut), ("peer", &pin.peer)];
    let texts: Vec<String> = sides
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(side, cpus)| format!("{side}={}", list(cpus)))
        .collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, PathFacts};
    use crate::trial::SettingLevel;
    use crate::workload::WorkloadKind;

    #[test]
    fn levels_are_told_as_the_command_line_takes_them() {
        let experiment = Experiment {
            workloads: vec![WorkloadKind::TcpStream],
            sends: vec![SendMethod::Zerocopy],
            ..Experiment::default()
        };
        let path = PathFacts { family: Family::V4, mtu_bytes: 1500 };
        let mut trial = experiment.combinations(&[path]).unwrap().remove(0);
        trial.settings.push(SettingLevel { key: "dut.tso".to_owned(), value: "off".to_owned() });
        assert_eq!(level(&trial, "size").as_deref(), Some("128K"));
        assert_eq!(level(&trial, "send").as_deref(), Some("zerocopy"));
        assert_eq!(level(&trial, "rate").as_deref(), Some("default"));
        assert_eq!(level(&trial, "dut.tso").as_deref(), Some("off"));
        assert_eq!(level(&trial, "in-flight").as_deref(), Some("default"));
        assert_eq!(level(&trial, "nonsense"), None);
    }
}
