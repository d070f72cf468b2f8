//! Experiments from the command line to the history and back, in private labs.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use linerate_model::Record;
use linerate_testkit::need;
use serde_json::Value;

/// A folder with a history of its own.
struct Home {
    folder: PathBuf,
}

impl Home {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lr-exp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(words.split_whitespace()).env("LINERATE_DB", self.file("history.db"));
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// The standard output of a command that must end well.
    fn good(&self, words: &str) -> String {
        let output = self.run(words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words}: {}{text}", String::from_utf8_lossy(&output.stderr));
        text
    }

    fn records(&self, words: &str) -> Vec<Record> {
        linerate_report::parse_json(&self.good(words)).unwrap()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SHORT: &str = "-t 0.15 --warmup 0.02 --quiet";

#[test]
fn factors_run_in_randomised_blocks_and_are_kept() {
    need!(netns());
    let home = Home::new("blocks");
    let words =
        "run -w tcp-stream --send write,zerocopy --size 16K,64K --repeat 3 --seed 7 --json --tag first";
    let records = home.records(&format!("{words} {SHORT}"));
    assert_eq!(records.len(), 4 * 3);
    assert!(records.iter().all(|r| r.seed == Some(7)));
    // The list is in the order of the plan; the trials ran in another.
    let places: Vec<_> = records.iter().map(|r| (r.combination, r.block)).collect();
    assert!(places.is_sorted());
    let mut ran = records.clone();
    ran.sort_by_key(|r| r.sequence);
    let blocks: Vec<_> = ran.iter().map(|r| r.block).collect();
    assert!(blocks.is_sorted());
    let order: Vec<_> = ran.iter().map(|r| r.combination.unwrap() as usize).collect();
    let planned: Vec<usize> =
        (0..3).flat_map(|block| linerate_lab::stats::block_order(4, block, 7)).collect();
    assert_eq!(order, planned);
    for record in &records {
        let sent: Vec<_> = record.dut.reading.streams.iter().filter_map(|s| s.zerocopy).collect();
        let zerocopy = linerate_model::factor::level(&record.trial, "send").as_deref() == Some("zerocopy");
        assert_eq!(!sent.is_empty(), zerocopy);
        // Both ends are on one machine: its kernel copies everything.
        assert!(sent.iter().all(|z| z.completed_calls > 0 && z.copied_calls == z.completed_calls));
        let told = record.hazards.iter().any(|h| h.kind.name() == "zero-copy-copied");
        assert_eq!(told, zerocopy);
    }
    assert!(home.good("history").contains("first"));
    let shown = linerate_report::parse_json(&home.good("show first --json")).unwrap();
    assert_eq!(shown, records);
    let table = home.good("show first");
    assert!(table.contains("zerocopy") && table.contains("copied %"), "{table}");
    let turned = home.good("show first --rows send --cols size");
    assert!(turned.contains("16K") && turned.contains("64K"), "{turned}");
    assert_eq!(home.run("show first --rows streams").status.code(), Some(2));
}

#[test]
fn a_stop_rule_ends_or_marks() {
    need!(netns());
    let home = Home::new("stop");
    // So wide that it is reached with the fewest repeats that make an interval.
    let easy = home.records(&format!("run -w tcp-rr --width 99% --max-repeat 20 --json {SHORT}"));
    assert!((6..=20).contains(&easy.len()), "{}", easy.len());
    let hard =
        home.records(&format!("run -w tcp-rr --width 0.0001% --min-repeat 2 --max-repeat 7 --json {SHORT}"));
    assert_eq!(hard.len(), 7);
    let marked: Vec<_> =
        hard.iter().filter(|r| r.hazards.iter().any(|h| h.kind.name() == "too-wide")).collect();
    assert_eq!(marked.len(), 1);
    assert_eq!(marked[0].block, Some(6));
    assert!(home.good("show").contains("7 !"));
}

#[test]
fn an_interrupted_run_goes_on() {
    need!(netns());
    let home = Home::new("resume");
    let words = "run -w tcp-stream --size 16K,32K,64K --repeat 3 --seed 3 -t 0.3 --warmup 0.02 --quiet";
    let mut child = home.command(words).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while trials(&home) < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let before = trials(&home);
    assert!((2..9).contains(&before), "{before}");
    let records = home.records("run --resume last --json --quiet");
    let complete: std::collections::BTreeSet<_> = records
        .iter()
        .filter(|r| r.outcome == linerate_model::record::Outcome::Complete)
        .map(|r| (r.combination, r.block))
        .collect();
    assert_eq!(complete.len(), 9);
    assert_eq!(home.good("history").matches("complete").count(), 1);
    let numbers: std::collections::BTreeSet<_> = records.iter().map(|r| r.sequence).collect();
    assert_eq!(numbers.len(), records.len());
}

fn trials(home: &Home) -> usize {
    let output = home.run("show last --json");
    linerate_report::parse_json(&String::from_utf8_lossy(&output.stdout)).map_or(0, |r| r.len())
}

#[test]
fn a_file_is_planned_and_its_mistakes_have_a_place() {
    let home = Home::new("file");
    let file = home.write(
        "square.toml",
        "[repeats]\nrepeat = 2\n[[workloads]]\nworkload = \"tcp-stream\"\nsize = [\"1K\", \"2K\"]\nstreams = [1, 2]\n\
         [[exclude]]\nsize = \"2K\"\nstreams = 2\n",
    );
    let words = format!("run -f {} --plan --seed 5", file.display());
    let plan = home.good(&words);
    assert!(
        plan.contains("3 combinations") && plan.contains("seed 5") && plan.contains("2 blocks"),
        "{plan}"
    );
    assert_eq!(plan, home.good(&words));
    let wrong = home.write("wrong.toml", "[[workloads]]\nworkload = \"tcp-stream\"\nsise = 3\n");
    let output = home.run(&format!("run -f {}", wrong.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("wrong.toml:3:1: there is no option 'sise'"), "{}", stderr(&output));
}

#[test]
fn levels_and_runs_are_compared() {
    need!(netns());
    let home = Home::new("compare");
    // A paced stream keeps still; twice the rate is no matter of noise.
    home.good(&format!("run -w tcp-stream --size 2K --rate 20m,40m --repeat 7 --tag both {SHORT}"));
    let table: Value = serde_json::from_str(&home.good("compare both --factor rate --json")).unwrap();
    let goodput = &table["rows"][0];
    assert_eq!(goodput["metric"], "goodput");
    assert_eq!(goodput["judgement"]["judged"]["verdict"], "better", "{table}");
    assert_eq!(goodput["judgement"]["judged"]["weaker"], false);
    let chosen = home.good("compare both --factor rate --json --metric packets,cpu");
    let chosen: Value = serde_json::from_str(&chosen).unwrap();
    let metrics: Vec<_> = chosen["rows"].as_array().unwrap().iter().map(|r| r["metric"].clone()).collect();
    assert_eq!(metrics, ["packets", "cpu"]);
    assert_eq!(home.run("compare both --factor rate --metric speed").status.code(), Some(2));
    let turned = home.run("compare both --factor rate=40mbit,20mbit --fail-on worse");
    assert_eq!(turned.status.code(), Some(1), "{}", stderr(&turned));
    let same = home.run("compare both both --fail-on worse");
    assert_eq!(same.status.code(), Some(0), "{}", stderr(&same));
    assert!(String::from_utf8_lossy(&same.stdout).contains("weaker"));
    assert_eq!(home.run("compare both --factor streams").status.code(), Some(2));
    let page = home.file("both.html");
    home.good(&format!("report both -o {}", page.display()));
    assert!(std::fs::read_to_string(page).unwrap().contains("</html>"));
}

#[test]
fn runs_move_between_histories() {
    need!(netns());
    let (here, there) = (Home::new("here"), Home::new("there"));
    here.good(&format!("run -w tcp-rr --tag moved {SHORT}"));
    let file = here.file("runs.json");
    here.good(&format!("export moved -o {}", file.display()));
    assert!(there.good(&format!("import {}", file.display())).contains("1 new runs with 1 trials"));
    assert!(there.good(&format!("import {}", file.display())).contains("0 new runs"));
    assert_eq!(there.good("show moved --json"), here.good("show moved --json"));
    there.good("tag moved again");
    there.good("tag again moved --remove");
    assert!(there.good("trend transactions").contains("tcp-rr"));
    assert!(there.good("rm again").contains("removed run"));
    assert!(there.good("history").contains("No runs"));
    assert_eq!(there.run("show again").status.code(), Some(2));
    assert!(here.good("history -w tcp-rr --since 1h").contains("moved"));
    assert!(here.good("history -w udp-rr").contains("No runs"));
}

#[test]
fn strangers_text_can_not_steer_the_terminal() {
    let home = Home::new("strange");
    let document = concat!(
        r#"{"schema":"linerate.history/1","runs":[{"info":{"id":"00000000000000000000000000000001","#,
        r#""started_at":"2026-11-30T12:00:00Z","command":["x\u001b[2Jy"],"linerate_version":"1","plan_json":null,"seed":1},"#,
        r#""ended_at":null,"outcome":null,"tags":["strange"],"records":[]}]}"#
    );
    let file = home.write("strange.json", document);
    home.good(&format!("import {}", file.display()));
    for words in ["history", "show strange"] {
        let text = home.good(words);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn ab_decides_a_difference_that_is_there() {
    need!(netns());
    let home = Home::new("ab");
    let output = home.run(&format!("ab -w tcp-stream --size 2K --rate 20m,40m --budget 30s --json {SHORT}"));
    assert!(output.status.success(), "{}", stderr(&output));
    let table: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(table["rows"][0]["judgement"]["judged"]["verdict"], "better", "{table}");
    let two = home.run("ab -w tcp-stream --rate 20m,40m --size 1K,2K");
    assert_eq!(two.status.code(), Some(2));
    assert!(stderr(&two).contains("one factor"), "{}", stderr(&two));
}

#[test]
fn settings_are_factors_and_what_is_refused_is_left_out_where_that_is_asked_for() {
    need!(netns());
    let home = Home::new("settings");
    let text = |skip: bool| {
        format!(
            "skip-refused = {skip}\n[timing]\ntime = 0.1\nwarmup = 0\nsettle = 0\n[[workloads]]\n\
             workload = \"tcp-stream\"\n\"dut.tso\" = [\"on\", \"off\"]\n[[workloads]]\n\
             workload = \"tcp-stream\"\n\"dut.rx-usecs\" = [0, 50]\n"
        )
    };
    let strict = home.write("strict.toml", &text(false));
    let refused = home.run(&format!("run -f {} --json", strict.display()));
    assert!(!refused.status.success());
    assert!(
        stderr(&refused).contains("rx-usecs") || stderr(&refused).contains("coalesce"),
        "{}",
        stderr(&refused)
    );
    let skipping = home.write("skipping.toml", &text(true));
    let output = home.run(&format!("run -f {} --json", skipping.display()));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("1 combination with dut.rx-usecs=50 is left out"),
        "{}",
        stderr(&output)
    );
    assert!(home.good("show last").contains("dut.rx-usecs=50 is left out"));
    let page = home.file("page.html");
    home.good(&format!("report last -o {}", page.display()));
    assert!(std::fs::read_to_string(page).unwrap().contains("dut.rx-usecs=50 is left out"));
    let records = linerate_report::parse_json(&String::from_utf8_lossy(&output.stdout)).unwrap();
    let levels: Vec<_> = records.iter().map(|r| r.trial.settings[0].value.as_str()).collect();
    assert_eq!(levels, ["on", "off"]);
    let tso = |r: &Record| {
        let link = r.dut.environment.link.as_ref().unwrap();
        link.features["tx-tcp-segmentation"].on
    };
    assert_eq!(records.iter().map(tso).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_examples_are_good_plans() {
    let home = Home::new("examples");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).unwrap();
    for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        assert!(home.good(&format!("run -f {} --plan", path.display())).contains("first block"));
    }
}
