//! The command line that runs the same trials again, made from the records.

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::record::NodeRecord;
use linerate_model::trial::{Amount, Trial};
use linerate_model::workload::WorkloadKind;

use super::Run;

/// The command lines that run the same trials again: one where lists of values give just these trials, else one for
/// each workload, or for each combination.
pub(super) fn commands(run: &Run<'_>) -> Vec<String> {
    if let Some(command) = &run.command {
        return vec![command.clone()];
    }
    // Of trials with a changing number of peers those with most name all.
    let Some(first) = run.records.iter().rev().max_by_key(|r| r.peers.len()) else { return Vec::new() };
    let mut trials: Vec<Trial> = Vec::new();
    for record in run.records {
        let plain = Trial { repeat: 0, ..record.trial.clone() };
        if !trials.contains(&plain) {
            trials.push(plain);
        }
    }
    let repeats = run.records.iter().map(|r| r.trial.repeat).max().unwrap_or(0) + 1;
    let all: Vec<Options> = trials.iter().map(options).collect();
    if let Some(options) = together(&all) {
        return vec![command(first, &options, repeats)];
    }
    let mut commands = Vec::new();
    for kind in WorkloadKind::ALL {
        let of_kind: Vec<Options> =
            trials.iter().filter(|t| t.workload.kind() == kind).map(options).collect();
        match together(&of_kind) {
            Some(options) => commands.push(command(first, &options, repeats)),
            None => commands.extend(of_kind.iter().map(|options| command(first, options, repeats))),
        }
    }
    commands
}

/// Options with their values, in the order of the command line.
type Options = Vec<(String, Vec<String>)>;

/// The options of one trial.
fn options(trial: &Trial) -> Options {
    let seconds = |ns: u64| format!("{}", ns as f64 / 1e9);
    let mut options: Options = factor::levels(trial)
        .into_iter()
        .filter(|level| !matches!(level.value.as_str(), "default" | "false"))
        .filter(|level| (level.factor.as_str(), level.value.as_str()) != ("peers", "1"))
        .map(|level| (level.factor, vec![level.value]))
        .collect();
    let mut add = |name: &str, value: String| options.push((name.to_owned(), vec![value]));
    if let Amount::DurationNs(ns) = trial.amount {
        add("time", seconds(ns));
        add("warmup", seconds(trial.warmup_ns));
    }
    if let Some(ns) = trial.interval_ns {
        add("interval", seconds(ns));
    }
    options
}

/// One set of options whose lists of values give just these trials; `None` where there is none.
fn together(trials: &[Options]) -> Option<Options> {
    let mut lists: Options = trials.first()?.clone();
    for options in trials {
        // An option that only some trials have can't be in a list.
        if options.len() != lists.len() {
            return None;
        }
        for ((name, list), (other, values)) in lists.iter_mut().zip(options) {
            if name != other {
                return None;
            }
            for value in values {
                if !list.contains(value) {
                    list.push(value.clone());
                }
            }
        }
    }
    let product: usize = lists.iter().map(|(_, values)| values.len()).product();
    let one_pin = lists.iter().all(|(name, values)| name != "pin" || values.len() == 1);
    (product == trials.len() && one_pin).then_some(lists)
}

fn command(first: &Record, options: &Options, repeats: u32) -> String {
    let mut words = vec!["linerate run".to_owned()];
    let is_private = |node: &NodeRecord| node.node.to_string().starts_with("netns:lr-");
    // The namespaces of a private lab are made anew by a run without a peer.
    if !(is_private(&first.dut) && is_private(&first.peer)) {
        match first.peers.as_slice() {
            [] => words.push(shell(&first.peer.node.to_string())),
            peers => words.extend(peers.iter().map(|p| shell(&p.node.to_string()))),
        }
        words.push(format!("--dut {}", shell(&first.dut.node.to_string())));
        for (option, node) in [("--link", &first.dut), ("--peer-link", &first.peer)] {
            let link = node.environment.link.as_ref().filter(|l| !l.loopback);
            words.extend(link.map(|l| format!("{option} {}", shell(&l.name))));
        }
    }
    for (name, values) in options {
        let values = values.join(",");
        words.push(match name.as_str() {
            "nodelay" | "verify" | "one-connection" => format!("--{name}"),
            setting if setting.contains(['.', ':']) => {
                format!("--set {}", shell(&format!("{setting}={values}")))
            }
            _ => format!("--{name} {}", shell(&values)),
        });
    }
    if repeats > 1 {
        words.push(format!("--repeat {repeats}"));
    }
    words.extend(first.seed.map(|seed| format!("--seed {seed}")));
    words.join(" ")
}

/// A word that a shell takes as it is, quoted where it has to be.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+[]".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell("eth1,eth2"), "eth1,eth2");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn lists_have_to_give_just_the_trials() {
        let trial = |size: &str, streams: &str| -> Options {
            [("size", size), ("streams", streams)].map(|(n, v)| (n.to_owned(), vec![v.to_owned()])).to_vec()
        };
        let all = [trial("1K", "1"), trial("1K", "2"), trial("2K", "1"), trial("2K", "2")];
        let lists = together(&all).unwrap();
        assert_eq!(lists[0].1, ["1K", "2K"]);
        assert_eq!(together(&all[..3]), None);
        assert_eq!(together(&[]), None);
    }
}
