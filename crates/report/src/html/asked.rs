//! What was asked for, and the command that asks for it again.

use linerate_model::Record;
use linerate_model::trial::{Amount, Family, Side, Trial};
use linerate_model::units::ByteCount;
use linerate_model::workload::{SendMethod, Workload, WorkloadKind};

use super::Run;
use super::factors::{Sample, level, phrase, varied};
use crate::numbers;
use crate::trial_text::FACTORS;

/// Lines about what a run was asked for: (what, its value).
pub(super) fn asked(run: &Run<'_>) -> Vec<(String, String)> {
    let samples: Vec<Sample<'_>> =
        run.records.iter().map(|record| Sample { run: 0, run_name: &run.name, record }).collect();
    let Some(first) = run.records.first() else { return Vec::new() };
    let mut lines = Vec::new();
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    add("workload", distinct(run.records.iter().map(|r| r.trial.workload.kind().name().to_owned())));
    add("between", format!("{} (dut) and {} (peer)", first.dut.node, first.peer.node));
    for factor in varied(&samples).iter().filter(|f| f.name != "workload") {
        let levels: Vec<&str> =
            factor.levels.iter().map(|l| l.text.as_str()).filter(|l| !l.is_empty()).collect();
        if levels.len() > 1 {
            add(&format!("varied: {}", factor.name), levels.join(", "));
        }
    }
    let varied: Vec<&str> = varied(&samples).iter().map(|f| f.name).collect();
    let fixed: Vec<String> = ["IP", "size", "request", "response", "streams"]
        .into_iter()
        .chain(FACTORS.iter().map(|f| f.name).filter(|n| *n != "for"))
        .filter(|name| !varied.contains(name))
        .filter_map(|name| {
            let level = level(name, &samples[0]);
            let is_default = FACTORS.iter().any(|f| f.name == name && (f.value)(&first.trial).is_empty());
            (!level.is_empty() && !is_default).then(|| phrase(name, &level))
        })
        .collect();
    if !fixed.is_empty() {
        add("the same in all", fixed.join(", "));
    }
    let repeats = run.records.iter().map(|r| r.trial.repeat).max().unwrap_or(0) + 1;
    let each = match first.trial.amount {
        Amount::DurationNs(ns) => format!(
            "{} of measuring after {} of warm-up",
            numbers::time(ns),
            numbers::time(first.trial.warmup_ns)
        ),
        Amount::Bytes(bytes) => format!("{} bytes in each direction", ByteCount(bytes)),
        Amount::Transactions(count) => format!("{count} transactions"),
    };
    let trials = run.records.len();
    let s = if trials == 1 { "" } else { "s" };
    let times = if repeats == 1 {
        "each combination once".to_owned()
    } else {
        format!("each combination {repeats} times")
    };
    add("how often", format!("{trials} trial{s}, {times}, {each}"));
    add("when", when(run.records));
    lines
}

fn when(records: &[Record]) -> String {
    let short = |r: &Record| {
        r.started_at.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ")
    };
    match records {
        [] => String::new(),
        [only] => format!("{} UTC", short(only)),
        [first, .., last] => format!("{} to {} UTC", short(first), short(last)),
    }
}

fn distinct(texts: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for text in texts {
        if !known.contains(&text) {
            known.push(text);
        }
    }
    known.join(", ")
}

/// The command lines that run the same trials again: one where lists of values give just these trials, else one for
/// each workload, or for each combination.
pub(super) fn commands(run: &Run<'_>) -> Vec<String> {
    if let Some(command) = &run.command {
        return vec![command.clone()];
    }
    let mut combinations: Vec<(Trial, Options)> = Vec::new();
    for record in run.records {
        let plain = Trial { repeat: 0, ..record.trial.clone() };
        if !combinations.iter().any(|(known, _)| *known == plain) {
            let options = options(&plain);
            combinations.push((plain, options));
        }
    }
    let repeats = run.records.iter().map(|r| r.trial.repeat).max().unwrap_or(0) + 1;
    let Some(first) = run.records.first() else { return Vec::new() };
    if let Some(lists) = lists(&combinations) {
        return vec![command(first, &lists, repeats)];
    }
    let kinds: Vec<WorkloadKind> = WorkloadKind::ALL.into_iter().collect();
    let mut commands = Vec::new();
    for kind in kinds {
        let of_kind: Vec<(Trial, Options)> =
            combinations.iter().filter(|(t, _)| t.workload.kind() == kind).cloned().collect();
        match lists(&of_kind) {
            Some(lists) => commands.push(command(first, &lists, repeats)),
            None => commands.extend(
                of_kind.iter().map(|(_, o)| command(first, &o.clone().map(|value| vec![value]), repeats)),
            ),
        }
    }
    commands
}

/// A list of values for each option, where all their combinations are just these; `None` where that can't be.
fn lists(combinations: &[(Trial, Options)]) -> Option<[Vec<String>; OPTIONS.len()]> {
    let lists = std::array::from_fn(|at| unique(combinations.iter().map(|(_, options)| options[at].clone())));
    let product: usize = lists.iter().map(Vec::len).product();
    let is_whole = lists.iter().all(|l| l.len() == 1 || !l.contains(&String::new()));
    // CPUs of a pinning are a list themselves.
    let one_pin = lists[PIN].len() == 1;
    (product > 0 && product == combinations.len() && is_whole && one_pin).then_some(lists)
}

/// Place of `--pin` in [`OPTIONS`].
const PIN: usize = 15;

fn unique(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for value in values {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    known
}

fn command(first: &Record, lists: &[Vec<String>], repeats: u32) -> String {
    let mut words = vec!["linerate run".to_owned()];
    let private = |url: &str| url.starts_with("netns:lr-");
    let (dut, peer) = (first.dut.node.to_string(), first.peer.node.to_string());
    // The namespaces of a private lab are made anew by a run without a peer.
    if !(private(&dut) && private(&peer)) {
        words.push(shell(&peer));
        words.push(format!("--dut {}", shell(&dut)));
        for (option, side) in [("--link", Side::Dut), ("--peer-link", Side::Peer)] {
            let node = if side == Side::Dut { &first.dut } else { &first.peer };
            let link = node.environment.link.as_ref().filter(|l| !l.loopback);
            words.extend(link.map(|l| format!("{option} {}", shell(&l.name))));
        }
    }
    for (option, values) in OPTIONS.iter().zip(lists) {
        match values.as_slice() {
            [only] if only.is_empty() => {}
            [only] if only == "yes" => words.push((*option).to_owned()),
            values => words.push(format!("{option} {}", shell(&values.join(",")))),
        }
    }
    if repeats > 1 {
        words.push(format!("--repeat {repeats}"));
    }
    words.join(" ")
}

/// A word that a shell takes as it is, quoted where it has to be.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

const OPTIONS: [&str; 22] = [
    "-w",
    "--family",
    "--size",
    "--streams",
    "--send",
    "--socket-buffer",
    "--nodelay",
    "--mss",
    "--congestion",
    "--request",
    "--response",
    "--in-flight",
    "--rate",
    "--tos",
    "--one-connection",
    "--pin",
    "--verify",
    "-t",
    "--bytes",
    "--transactions",
    "--warmup",
    "--interval",
];

/// The value of each of [`OPTIONS`]; empty for none, `yes` for a switch.
type Options = [String; 22];

fn options(trial: &Trial) -> Options {
    let text = |value: Option<String>| value.unwrap_or_default();
    let switch = |on: bool| if on { "yes".to_owned() } else { String::new() };
    let factor =
        |name: &str| FACTORS.iter().find(|f| f.name == name).map(|f| (f.value)(trial)).unwrap_or_default();
    let seconds = |ns: u64| format!("{}", ns as f64 / 1e9);
    let tcp = trial.workload.tcp_options();
    let exchange = match &trial.workload {
        Workload::TcpRr(w) => Some((w.request, w.response)),
        Workload::TcpCrr(w) => Some((w.request, w.response)),
        Workload::UdpRr(w) => Some((w.request, w.response)),
        _ => None,
    };
    let kind = trial.workload.kind();
    let family = match trial.family {
        Family::V4 => "4",
        Family::V6 => "6",
    };
    let send = match &trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => Some(w.send),
        Workload::TcpBidir(w) => Some(w.stream.send),
        _ => None,
    };
    let timed = matches!(trial.amount, Amount::DurationNs(_));
    [
        kind.name().to_owned(),
        family.to_owned(),
        if kind.is_transactional() { String::new() } else { trial.workload.size_text() },
        trial.streams.to_string(),
        text(send.map(|s: SendMethod| s.name().to_owned())),
        text(trial.workload.buffer_bytes().map(|b| b.to_string())),
        switch(tcp.is_some_and(|o| o.nodelay)),
        text(tcp.and_then(|o| o.mss_bytes).map(|m| m.to_string())),
        text(tcp.and_then(|o| o.congestion.clone())),
        text(exchange.map(|(request, _)| request.to_string())),
        text(exchange.map(|(_, response)| response.to_string())),
        factor("in-flight"),
        text(trial.workload.rate().map(|r| r.to_string())),
        factor("tos"),
        switch(matches!(&trial.workload, Workload::TcpBidir(w) if w.one_connection)),
        pin(trial),
        switch(trial.verify_seed.is_some()),
        match trial.amount {
            Amount::DurationNs(ns) => seconds(ns),
            _ => String::new(),
        },
        match trial.amount {
            Amount::Bytes(bytes) => ByteCount(bytes).to_string(),
            _ => String::new(),
        },
        match trial.amount {
            Amount::Transactions(count) => count.to_string(),
            _ => String::new(),
        },
        if timed { seconds(trial.warmup_ns) } else { String::new() },
        text(trial.interval_ns.map(seconds)),
    ]
}

fn pin(trial: &Trial) -> String {
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let sides = [("dut", &trial.pin.dut), ("peer", &trial.pin.peer)];
    let texts: Vec<String> = sides
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(side, cpus)| format!("{side}={}", list(cpus)))
        .collect();
    texts.join(",")
}
