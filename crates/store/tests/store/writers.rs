//! Several writers, writers that are killed, and a disk that is full. The writers are processes: this test binary,
//! started anew with the one test that writes.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, Random, id, info, record};
use linerate_store::{Filter, RunOutcome, Store};
use linerate_testkit::{ChildGuard, need, run_within};

const LIMIT: Duration = Duration::from_secs(120);
/// `FILE RUN TRIALS` for [`writer_process`].
const WRITER: &str = "LINERATE_STORE_TEST_WRITER";
/// A folder on a small file system, for [`filler_process`].
const FILLER: &str = "LINERATE_STORE_TEST_FILLER";

fn this_test(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this binary's path"));
    command.args(["--exact", name, "--nocapture"]);
    command
}

fn writer(path: &Path, run: u32, trials: u32) -> Command {
    let mut command = this_test("writers::writer_process");
    command.env(WRITER, format!("{} {run} {trials}", path.display()));
    command
}

/// Not a test by itself: writes a run and says what it has stored.
#[test]
fn writer_process() {
    let Ok(order) = env::var(WRITER) else { return };
    let [path, run, trials] = <[&str; 3]>::try_from(order.split(' ').collect::<Vec<_>>()).unwrap();
    let run = run.parse().unwrap();
    println!("writer begins");
    let store = Store::open(Path::new(path)).unwrap();
    store.begin_run(&info(run)).unwrap();
    for sequence in 0..trials.parse().unwrap() {
        store.append(&record(run, sequence)).unwrap();
        println!("stored {sequence}");
    }
    store.end_run(&id(run), RunOutcome::Complete).unwrap();
}

/// How many trials a run has, each checked to be what was stored.
fn stored(store: &Store, run: u32) -> usize {
    let records = store.records(&id(run)).expect("read the trials");
    for (sequence, stored) in (0..).zip(&records) {
        assert!(*stored == record(run, sequence), "trial {sequence} of run {run}");
    }
    records.len()
}

#[test]
fn writers_in_several_processes_wait_for_each_other() {
    let folder = Folder::new("processes");
    // All of them make the file at once, too.
    let writers: Vec<_> = (1..=4).map(|run| ChildGuard::spawn(writer(&folder.database(), run, 25))).collect();
    for writer in writers {
        writer.wait_within(LIMIT).expect_code(0);
    }
    let store = Store::open(&folder.database()).unwrap();
    for run in 1..=4 {
        assert_eq!(stored(&store, run), 25);
    }
}

#[test]
fn writers_in_several_threads_wait_for_each_other_while_a_reader_reads() {
    let folder = Folder::new("threads");
    let path = folder.database();
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=3)
            .map(|run| {
                let path = &path;
                scope.spawn(move || {
                    let store = Store::open(path).unwrap();
                    store.begin_run(&info(run)).unwrap();
                    (0..20).for_each(|sequence| store.append(&record(run, sequence)).unwrap());
                    store.end_run(&id(run), RunOutcome::Complete).unwrap();
                })
            })
            .collect();
        let reader = Store::open(&path).unwrap();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let runs = reader.runs(&Filter::default()).unwrap();
            assert!(runs.iter().all(|run| run.outcome.is_none() || run.trials == 20));
        }
    });
    assert_eq!(Store::open(&path).unwrap().runs(&Filter::default()).unwrap().len(), 3);
}

#[test]
fn a_killed_writer_loses_at_most_the_trial_in_flight() {
    let folder = Folder::new("killed");
    let mut random = Random::new();
    for run in 1..=20 {
        let mut child = ChildGuard::spawn(writer(&folder.database(), run, u32::MAX));
        child.wait_for_text("stored 0", LIMIT);
        kill_within(child, random.below(80_000), &folder.database(), run);
    }
    let store = Store::open(&folder.database()).unwrap();
    let runs = store.runs(&Filter::default()).unwrap();
    assert_eq!(runs.len(), 20);
    assert!(runs.iter().all(|run| run.outcome.is_none() && run.trials > 0));
    check_integrity(&folder.database());
}

#[test]
fn a_writer_killed_while_it_makes_the_file_leaves_one_that_opens() {
    let folder = Folder::new("killed-early");
    let mut random = Random::new();
    for run in 1..=20 {
        let path = folder.path().join(format!("{run}.db"));
        let mut child = ChildGuard::spawn(writer(&path, run, u32::MAX));
        child.wait_for_text("writer begins", LIMIT);
        kill_within(child, random.below(20_000), &path, run);
        check_integrity(&path);
    }
}

/// Kills a writer after a while, and compares what it said it stored with what is there.
fn kill_within(child: ChildGuard, microseconds: u64, path: &Path, run: u32) {
    thread::sleep(Duration::from_micros(microseconds));
    child.signal(nix::sys::signal::Signal::SIGKILL);
    // A line cut short by the kill is of a trial that was stored.
    let said = child.wait_within(LIMIT).stdout.lines().filter(|line| line.starts_with("stored ")).count();
    let store = Store::open(path).expect("open what a killed writer left");
    let begun = store.run(&id(run)).is_ok();
    assert!(begun || said == 0, "run {run} is missing");
    let found = if begun { stored(&store, run) } else { 0 };
    println!("killed after {microseconds} us: begun {begun}, said {said}, found {found}");
    assert!(found == said || found == said + 1, "run {run}: said {said}, found {found}");
}

fn check_integrity(path: &Path) {
    let connection = rusqlite::Connection::open(path).expect("open");
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("check");
    assert_eq!(check, "ok");
}

#[test]
fn a_full_disk_loses_at_most_the_trial_in_flight() {
    need!(root(), tool("unshare"), tool("mount"));
    let folder = Folder::new("full");
    // The mount is seen by, and ends with, the child's own mount namespace.
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=4m lr-store-full \"$1\" && shift && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path());
    let child = this_test("writers::filler_process");
    command.arg(child.get_program()).args(child.get_args()).env(FILLER, folder.path());
    let finished = run_within(command, LIMIT).expect_code(0);
    assert!(finished.stdout.contains("filled, read, went on"), "{}", finished.output());
}

/// Not a test by itself: fills a small file system with trials, and looks at what is left.
#[test]
fn filler_process() {
    let Some(folder) = env::var_os(FILLER).map(PathBuf::from) else { return };
    let path = folder.join("history.db");
    let ballast = folder.join("ballast");
    let limit = Instant::now() + LIMIT;
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let store = Store::open(&path).unwrap();
    store.begin_run(&info(1)).unwrap();
    let mut count = 0;
    let error = loop {
        assert!(Instant::now() < limit);
        match store.append(&record(1, count)) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    println!("after {count} trials: {error}");
    assert!(error.is_disk_full() && count > 5, "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("store trial {count} of run")) && text.contains("free some room"),
        "{text}"
    );
    // The same connection, another one, and one that opens the file anew while the disk is full.
    assert_eq!(stored(&store, 1), count as usize);
    fill_up(&folder.join("rest"));
    assert_eq!(stored(&store, 1), count as usize);
    drop(store);
    let again = Store::open(&path);
    println!("opened on a full disk: {again:?}");
    if let Ok(store) = &again {
        assert_eq!(stored(store, 1), count as usize);
    }
    let new = Store::open(&folder.join("new.db")).unwrap_err();
    println!("new on a full disk: {new}");
    assert!(new.to_string().contains("--db"), "{new}");
    drop(again);
    // Room again: the run goes on.
    std::fs::remove_file(&ballast).unwrap();
    let store = Store::open(&path).unwrap();
    store.append(&record(1, count)).unwrap();
    assert_eq!(stored(&store, 1), count as usize + 1);
    println!("filled, read, went on");
}

/// Writes to a file until the file system has no byte left.
fn fill_up(path: &Path) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("open");
    for size in [4096, 1] {
        while file.write(&vec![1; size]).is_ok() {}
    }
}
