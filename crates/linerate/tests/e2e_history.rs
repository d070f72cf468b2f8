//! What the history keeps of runs that are killed, that find no room, or that write at the same time.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use linerate_model::Record;
use linerate_testkit::{eventually, need};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
const LIMIT: Duration = Duration::from_secs(60);
const TRIALS: usize = 40;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lr-history-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn linerate(&self, words: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words.split_whitespace()).env("LINERATE_DB", self.0.join("history.db"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, words: &str) -> Output {
        self.linerate(words).output().unwrap()
    }

    /// The records of the newest run, as far as they are kept.
    fn kept(&self) -> Vec<Record> {
        let output = self.output("show last --json");
        if !output.status.success() {
            return Vec::new();
        }
        linerate_report::parse_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every trial up to the last that is kept.
fn assert_without_gaps(records: &[Record]) {
    let mut sequences: Vec<u32> = records.iter().map(|r| r.sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, (0..sequences.len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_killed_writer_loses_at_most_the_trial_in_flight_and_can_go_on() {
    need!(netns());
    let home = Folder::new("killed");
    for enough in [1, 4, 9] {
        let words = format!("run -w tcp-rr -t 0.1 --warmup 0 --repeat {TRIALS} --quiet");
        let mut run = home.linerate(&words).stdout(Stdio::null()).spawn().unwrap();
        let before = eventually(LIMIT, "some trials kept", || {
            let records = home.kept();
            // The run before this one has them all.
            (records.len() >= enough && records.len() < TRIALS).then_some(records)
        });
        run.kill().unwrap();
        run.wait().unwrap();
        let after = home.kept();
        assert!(after.len() >= before.len() && after.len() < TRIALS, "{} of {TRIALS}", after.len());
        assert_without_gaps(&after);
        assert!(text(&home.output("show last").stdout).contains("not ended"));
        let resumed = home.output("run --resume last --quiet");
        assert!(resumed.status.success(), "{}", text(&resumed.stderr));
        let all = home.kept();
        assert_eq!(all.len(), TRIALS);
        assert_without_gaps(&all);
        assert!(after.iter().all(|record| all.contains(record)), "what was kept is as it was");
    }
}

#[test]
fn two_writers_at_once_both_keep_everything() {
    need!(netns());
    let home = Folder::new("two");
    let words = "run -w tcp-rr -t 0.05 --warmup 0 --repeat 20 --quiet --tag";
    let runs = ["one", "other"].map(|tag| home.linerate(&format!("{words} {tag}")).spawn().unwrap());
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for tag in ["one", "other"] {
        let records = linerate_report::parse_json(&text(&home.output(&format!("show {tag} --json")).stdout));
        let records = records.unwrap();
        assert_eq!(records.len(), 20, "{tag}");
        assert_without_gaps(&records);
    }
}

/// Runs a script of a shell in a mount namespace of its own.
fn apart(script: &str, folder: &Path) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script]);
    command.env("LINERATE", PROGRAM).env("FOLDER", folder).output().unwrap()
}

#[test]
fn a_full_disk_loses_what_has_no_room_and_nothing_before_it() {
    need!(netns(), tool("unshare"), tool("mount"));
    let home = Folder::new("full");
    let script = "mkdir $FOLDER/disk && mount -t tmpfs -o size=700k tmpfs $FOLDER/disk || exit 99; \
                  export LINERATE_DB=$FOLDER/disk/history.db; \
                  $LINERATE run -w tcp-rr -t 0.05 --warmup 0 --repeat 60 --quiet --json >$FOLDER/shown.json; \
                  echo code $?; $LINERATE show last --json >$FOLDER/kept.json; echo code $?; \
                  df $FOLDER/disk >&2; $LINERATE history";
    let output = apart(script, &home.0);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{shown}{said}");
    assert!(shown.starts_with("code 3\ncode 0\n"), "{shown}{said}");
    assert!(said.contains("the history lacks this") && said.contains("full"), "{said}");
    let records = |name: &str| {
        linerate_report::parse_json(&std::fs::read_to_string(home.0.join(name)).unwrap()).unwrap()
    };
    let (all, kept) = (records("shown.json"), records("kept.json"));
    assert_eq!(all.len(), 60, "the run goes on and shows all");
    assert!(!kept.is_empty() && kept.len() < all.len(), "{} of {} kept", kept.len(), all.len());
    assert_without_gaps(&kept);
    assert!(kept.iter().all(|record| all.contains(record)));
}
