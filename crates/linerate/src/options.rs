//! Options by name and text, as the command line and experiment files give them.

use linerate_lab::bench::NODE_KEY;
use linerate_model::NodeUrl;
use linerate_model::experiment::{Experiment, SettingFactor};
use linerate_model::trial::{Family, Pinning, Side};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::values::{expand_sizes, parse_cpu_list};
use linerate_model::workload::{SendMethod, WorkloadKind};

/// Seed of the payload generator. Fixed, so that a damaged byte can be found again.
const VERIFY_SEED: u64 = 0x6c69_6e65_7261_7465;

/// Every option of traffic, in the order of the help text. `workload` comes first: a rate's unit depends on it.
pub(crate) const NAMES: [&str; 20] = [
    "workload",
    "family",
    "size",
    "peers",
    "streams",
    "send",
    "socket-buffer",
    "nodelay",
    "mss",
    "congestion",
    "request",
    "response",
    "in-flight",
    "rate",
    "tos",
    "one-connection",
    "pin",
    "verify",
    "bytes",
    "transactions",
];

/// Sets an option of an experiment; a list is given as the command line takes it, with commas.
///
/// # Errors
/// Says what is wrong with the text, without the option's name.
pub(crate) fn set(experiment: &mut Experiment, name: &str, text: &str) -> Result<(), String> {
    match name {
        "workload" => experiment.workloads = workloads(text)?,
        "family" => experiment.families = words(text).map(family).collect::<Result<_, _>>()?,
        "size" => experiment.sizes = sizes(text)?,
        "peers" => experiment.peers = numbers(text)?,
        "streams" => experiment.streams = numbers(text)?,
        "send" => experiment.sends = words(text).map(send_method).collect::<Result<_, _>>()?,
        "socket-buffer" => experiment.buffers = sizes(text)?,
        "nodelay" => experiment.nodelay = flag(text)?,
        "mss" => experiment.mss = numbers(text)?,
        "congestion" => experiment.congestions = words(text).map(str::to_owned).collect(),
        "request" => experiment.requests = sizes(text)?,
        "response" => experiment.responses = sizes(text)?,
        "in-flight" => experiment.in_flights = numbers(text)?,
        "rate" => rates(experiment, text)?,
        "tos" => experiment.tos = Some(tos(text)?),
        "one-connection" => experiment.one_connection = flag(text)?,
        "pin" => experiment.pin = pinning(text)?,
        "verify" => experiment.verify_seed = flag(text)?.then_some(VERIFY_SEED),
        "bytes" => experiment.bytes = Some(text.parse::<ByteCount>().map_err(|e| e.to_string())?.0),
        "transactions" => experiment.transactions = Some(number(text)?),
        _ => return Err(format!("there is no option '{name}'; there are {}", offered())),
    }
    Ok(())
}

/// Whether a workload has a use for an option.
pub(crate) fn applies(kind: WorkloadKind, name: &str) -> bool {
    let stream = !kind.is_transactional();
    let tcp = !kind.is_udp();
    match name {
        "size" | "bytes" => stream,
        "send" => stream && tcp,
        "nodelay" | "mss" | "congestion" => tcp,
        "request" | "response" | "transactions" => !stream,
        "in-flight" => matches!(kind, WorkloadKind::TcpRr | WorkloadKind::UdpRr),
        "one-connection" => kind == WorkloadKind::TcpBidir,
        _ => true,
    }
}

/// Adds a setting with its values: `dut.tso=on,off`.
///
/// # Errors
/// Says what is wrong with the text.
pub(crate) fn add_setting(experiment: &mut Experiment, text: &str) -> Result<(), String> {
    let wrong = || format!("'{text}' is no setting; as in dut.tso=off, peer.gro=on,off or both.mtu=9000");
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let (node, name) = key.split_once('.').ok_or_else(wrong)?;
    if !matches!(node, "dut" | "peer" | "both") || name.is_empty() {
        return Err(wrong());
    }
    let values: Vec<String> = words(values).map(str::to_owned).collect();
    if name == "node" {
        check_nodes(key, &values)?;
    }
    if values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    if experiment.settings.iter().any(|known| known.key == key) {
        return Err(format!("{key} is set twice; give its values as a list"));
    }
    experiment.settings.push(SettingFactor { key: key.to_owned(), values });
    Ok(())
}

/// The node itself as a factor: guests, of which each has a partner of its own.
fn check_nodes(key: &str, values: &[String]) -> Result<(), String> {
    let is_guest = |text: &String| {
        let node = text.parse::<NodeUrl>();
        matches!(node, Ok(NodeUrl::Vm { seat: Side::Dut, .. }))
    };
    if key == NODE_KEY && values.iter().all(is_guest) {
        return Ok(());
    }
    Err(format!("{key}: the node under test can be a factor, dut.node, and its values are vm:PROFILE"))
}

fn workloads(text: &str) -> Result<Vec<WorkloadKind>, String> {
    let all: Vec<WorkloadKind> = list(text)?;
    if all.contains(&WorkloadKind::Profile) {
        return Err("a profile is run with --profile FILE".to_owned());
    }
    Ok(all)
}

fn offered() -> String {
    NAMES.join(", ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

fn list<T: std::str::FromStr>(text: &str) -> Result<Vec<T>, String>
where
    T::Err: std::fmt::Display,
{
    words(text).map(|w| w.parse::<T>().map_err(|e| e.to_string())).collect()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is not a whole number"))
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    words(text).map(number).collect()
}

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("'{text}' is neither true nor false"))
}

fn sizes(text: &str) -> Result<Vec<ByteCount>, String> {
    expand_sizes(text).map_err(|e| e.to_string())
}

fn family(word: &str) -> Result<Family, String> {
    match word {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        other => Err(format!("'{other}': must be 4, 6 or 4,6")),
    }
}

fn send_method(word: &str) -> Result<SendMethod, String> {
    match word {
        "write" => Ok(SendMethod::Write),
        "sendfile" => Ok(SendMethod::Sendfile),
        "zerocopy" => Ok(SendMethod::Zerocopy),
        other => Err(format!("'{other}': must be write, sendfile or zerocopy")),
    }
}

/// A rate without a unit means requests where only request/response is asked for, else bits.
fn rates(experiment: &mut Experiment, text: &str) -> Result<(), String> {
    let only_requests =
        !experiment.workloads.is_empty() && experiment.workloads.iter().all(|w| w.is_transactional());
    let default = if only_requests { RateUnit::RequestsPerSecond } else { RateUnit::BitsPerSecond };
    let all: Vec<Rate> =
        words(text).map(|w| Rate::parse(w, default).map_err(|e| e.to_string())).collect::<Result<_, _>>()?;
    (experiment.stream_rates, experiment.request_rates) =
        all.into_iter().partition(|r| r.unit != RateUnit::RequestsPerSecond);
    Ok(())
}

fn tos(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("'{text}': must be 0 to 255, or 0x00 to 0xff"))
}

/// `dut=0,2-3,peer=1`: a part without `=` continues the list before it.
fn pinning(text: &str) -> Result<Pinning, String> {
    let wrong = |why: &str| format!("'{text}': {why}; as in dut=0,peer=1 or dut=0,2-3");
    let mut pin = Pinning::default();
    let mut list: Option<&mut Vec<u32>> = None;
    for part in text.split(',') {
        let cpus = match part.split_once('=') {
            Some(("dut", cpus)) => {
                list = Some(&mut pin.dut);
                cpus
            }
            Some(("peer", cpus)) => {
                list = Some(&mut pin.peer);
                cpus
            }
            Some((side, _)) => return Err(wrong(&format!("there is no '{side}'"))),
            None => part,
        };
        let cpus = parse_cpu_list(cpus).map_err(|e| wrong(&e.to_string()))?;
        list.as_mut().ok_or_else(|| wrong("it starts with dut= or peer="))?.extend(cpus);
    }
    Ok(pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workload: &str, name: &str, text: &str) -> Result<Experiment, String> {
        let mut experiment = Experiment::default();
        set(&mut experiment, "workload", workload)?;
        set(&mut experiment, name, text)?;
        Ok(experiment)
    }

    #[test]
    fn pins_are_lists_for_each_side() {
        let pin = pinning("dut=0,2-3,peer=1").unwrap();
        assert_eq!((pin.dut, pin.peer), (vec![0, 2, 3], vec![1]));
        for wrong in ["0", "both=1", "dut=", "dut=a", ""] {
            assert!(pinning(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plain_rate_means_what_the_workload_counts() {
        let requests = of("tcp-rr", "rate", "10k").unwrap();
        assert_eq!((requests.stream_rates.len(), requests.request_rates.len()), (0, 1));
        let streams = of("tcp-stream", "rate", "10k").unwrap();
        assert_eq!((streams.stream_rates.len(), streams.request_rates.len()), (1, 0));
    }

    #[test]
    fn settings_are_keys_with_lists() {
        let mut experiment = Experiment::default();
        add_setting(&mut experiment, "dut.tso=on,off").unwrap();
        add_setting(&mut experiment, "both.sysctl:net.core.busy_read=50").unwrap();
        assert_eq!(experiment.settings[0].values, ["on", "off"]);
        assert_eq!(experiment.settings[1].key, "both.sysctl:net.core.busy_read");
        assert!(add_setting(&mut experiment, "dut.node=vm:e1000,vm:tulip").is_ok());
        for wrong in ["peer.node=vm:e1000", "both.node=vm:e1000"] {
            assert!(add_setting(&mut experiment, wrong).unwrap_err().contains("dut.node"), "{wrong}");
        }
        let mut other = Experiment::default();
        assert!(add_setting(&mut other, "dut.node=local,vm:e1000").unwrap_err().contains("vm:PROFILE"));
        for wrong in ["tso=on", "dut.tso", "dut.=on", "mid.tso=on", "dut.tso=on,", "dut.tso=off"] {
            assert!(add_setting(&mut experiment, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slips_are_told() {
        assert!(of("tcp-stream", "sise", "1").unwrap_err().contains("there are workload, family, size"));
        assert!(of("tcp-stream", "send", "splice").unwrap_err().contains("zerocopy"));
        assert!(of("tcp-steam", "size", "1").unwrap_err().contains("tcp-stream"));
    }
}
