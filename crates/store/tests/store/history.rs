//! The history as one writer and one reader see it.

use crate::common::{Folder, id, info, record};
use linerate_model::Record;
use linerate_model::environment::LinkInfo;
use linerate_model::workload::WorkloadKind;
use linerate_store::{Filter, RunOutcome, Store, StoreError};

/// Runs 1 to `runs`, each with `trials` trials.
fn filled(folder: &Folder, runs: u32, trials: u32) -> Store {
    let store = Store::open(&folder.database()).unwrap();
    for run in 1..=runs {
        store.begin_run(&info(run)).unwrap();
        for sequence in 0..trials {
            store.append(&record(run, sequence)).unwrap();
        }
    }
    store
}

fn ids(store: &Store, filter: &Filter) -> Vec<String> {
    store.runs(filter).unwrap().into_iter().map(|run| run.info.id).collect()
}

fn text(pattern: &str) -> Option<String> {
    Some(pattern.to_owned())
}

#[test]
fn what_was_stored_comes_back_as_it_was() {
    let folder = Folder::new("back");
    let path = folder.path().join("deep/below/history.db");
    let store = Store::open(&path).unwrap();
    store.begin_run(&info(1)).unwrap();
    let records: Vec<Record> = (0..3).map(|sequence| record(1, sequence)).collect();
    for record in records.iter().rev() {
        store.append(record).unwrap();
    }
    store.end_run(&id(1), RunOutcome::Interrupted).unwrap();
    drop(store);

    let store = Store::open(&path).unwrap();
    assert_eq!(store.records("last").unwrap(), records);
    let run = store.run(&id(1)).unwrap();
    assert_eq!(run.info, info(1));
    assert_eq!((run.trials, run.outcome), (3, Some(RunOutcome::Interrupted)));
    assert!(run.ended_at.is_some());
    assert_eq!((run.workloads, run.links), (vec!["tcp-rr".to_owned()], vec!["eth0".to_owned()]));
    assert_eq!((run.drivers, run.machines), (vec!["veth".to_owned()], vec!["bench".to_owned()]));
}

#[test]
fn nothing_is_stored_twice_or_without_its_run() {
    let folder = Folder::new("twice");
    let store = filled(&folder, 1, 1);
    assert!(matches!(store.begin_run(&info(1)), Err(StoreError::RunExists(_))));
    assert!(matches!(store.append(&record(1, 0)), Err(StoreError::TrialExists { sequence: 0, .. })));
    assert!(matches!(store.append(&record(2, 0)), Err(StoreError::NoSuchRun(_))));
    assert!(matches!(store.end_run(&id(2), RunOutcome::Complete), Err(StoreError::NoSuchRun(_))));

    let mut not_a_number = record(1, 1);
    not_a_number.summary.goodput_bits_per_second = f64::NAN;
    let error = store.append(&not_a_number).unwrap_err().to_string();
    assert!(error.starts_with("trial 1 of run 00000001"), "{error}");
    let mut timeless = record(1, 1);
    timeless.started_at = "noon".to_owned();
    assert!(matches!(store.append(&timeless), Err(StoreError::Invalid { .. })));
    let mut nameless = info(3);
    nameless.id = "3".to_owned();
    assert!(matches!(store.begin_run(&nameless), Err(StoreError::Invalid { .. })));
    assert_eq!(store.records(&id(1)).unwrap().len(), 1);
}

#[test]
fn a_run_is_named_by_last_id_prefix_or_tag() {
    let folder = Folder::new("names");
    let store = Store::open(&folder.database()).unwrap();
    let error = store.run("last").unwrap_err().to_string();
    assert!(error.contains("has no run yet"), "{error}");
    let store = filled(&folder, 3, 0);
    assert_eq!(store.resolve("last").unwrap(), id(3));
    assert_eq!(store.resolve(&id(2)).unwrap(), id(2));
    assert_eq!(store.resolve("00000002").unwrap(), id(2));
    assert!(matches!(store.resolve("0000"), Err(StoreError::Ambiguous { matches: 3, .. })));
    for unknown in ["000", "00000009", "*", "0000000?", "nightly", ""] {
        assert!(matches!(store.resolve(unknown), Err(StoreError::NoSuchRun(_))), "{unknown}");
    }
    store.tag("00000001", "nightly").unwrap();
    store.tag(&id(2), "nightly").unwrap();
    store.tag(&id(2), "nightly").unwrap();
    assert_eq!(store.resolve("nightly").unwrap(), id(2), "the newest of that tag");
    assert_eq!(store.run("nightly").unwrap().tags, ["nightly"]);
    store.untag(&id(2), "nightly").unwrap();
    assert_eq!(store.resolve("nightly").unwrap(), id(1));
    assert!(matches!(store.untag(&id(2), "nightly"), Err(StoreError::NotTagged { .. })));
    assert!(matches!(store.tag(&id(2), "last"), Err(StoreError::BadTag(_))));
}

#[test]
fn filters_hold_together() {
    let folder = Folder::new("filters");
    let store = filled(&folder, 3, 2);
    let mut other = record(3, 2);
    other.dut.environment.kernel = "6.19.0-rc1".to_owned();
    other.dut.environment.host = "rack".to_owned();
    let link = LinkInfo { name: "ens5".to_owned(), driver: text("ena"), ..LinkInfo::default() };
    other.dut.environment.link = Some(link);
    store.append(&other).unwrap();
    store.begin_run(&info(4)).unwrap();
    store.tag(&id(1), "base").unwrap();

    let any = Filter::default;
    assert_eq!(ids(&store, &any()), [id(4), id(3), id(2), id(1)]);
    assert_eq!(ids(&store, &Filter { limit: Some(2), ..any() }), [id(4), id(3)]);
    assert_eq!(ids(&store, &Filter { tag: text("base"), ..any() }), [id(1)]);
    assert_eq!(ids(&store, &Filter { link: text("ens*"), ..any() }), [id(3)]);
    assert_eq!(ids(&store, &Filter { link: text("ens*"), driver: text("veth"), ..any() }), [""; 0]);
    assert_eq!(ids(&store, &Filter { driver: text("ena"), machine: text("rack"), ..any() }), [id(3)]);
    assert_eq!(ids(&store, &Filter { kernel: text("6.18*"), ..any() }), [id(3), id(2), id(1)]);
    let tcp_rr = Some(WorkloadKind::TcpRr);
    assert_eq!(ids(&store, &Filter { workload: tcp_rr, ..any() }), [id(3), id(2), id(1)]);
    assert_eq!(ids(&store, &Filter { workload: Some(WorkloadKind::UdpRr), ..any() }), [""; 0]);
    let time = |text: &str| Some(text.parse().unwrap());
    let (since, until) = (time("2026-11-03T12:00:00Z"), time("2026-11-04T14:00:00+02:00"));
    assert_eq!(ids(&store, &Filter { since, until, ..any() }), [id(2)]);
    assert_eq!(ids(&store, &Filter { link: text("'; DROP TABLE runs; --"), ..any() }), [""; 0]);
}

#[test]
fn a_series_is_one_figure_by_time() {
    let folder = Folder::new("series");
    let store = filled(&folder, 2, 3);
    let series = |metric: &str, filter: &Filter| store.series(filter, &metric.parse().unwrap());
    let points = series("transactions", &Filter::default()).unwrap();
    assert_eq!(points.len(), 6);
    assert!(points.is_sorted_by_key(|point| point.at));
    let last = points.last().unwrap();
    assert_eq!((last.run.as_str(), last.sequence), (id(2).as_str(), 2));
    assert_eq!(Some(last.value), record(2, 2).summary.transactions_per_second);
    assert_eq!(last.trial, record(2, 2).trial);
    let newest = series("p99", &Filter { limit: Some(2), ..Filter::default() }).unwrap();
    assert_eq!(newest.iter().map(|point| point.sequence).collect::<Vec<_>>(), [1, 2]);
    let error = series("loss", &Filter::default()).unwrap_err().to_string();
    assert!(error.starts_with("none of 6 matching records has loss"), "{error}");
    assert!(series("loss", &Filter { link: text("none"), ..Filter::default() }).unwrap().is_empty());
}

#[test]
fn a_removed_run_is_gone_with_all_that_is_its() {
    let folder = Folder::new("remove");
    let mut store = filled(&folder, 2, 4);
    store.tag(&id(1), "old").unwrap();
    let size = || std::fs::metadata(folder.database()).unwrap().len();
    assert_eq!(store.remove("old").unwrap(), (id(1), 4));
    assert!(matches!(store.records(&id(1)), Err(StoreError::NoSuchRun(_))));
    assert!(matches!(store.resolve("old"), Err(StoreError::NoSuchRun(_))));
    assert_eq!(store.records(&id(2)).unwrap().len(), 4);
    store.vacuum().unwrap();
    drop(store);
    let small = size();
    let mut store = Store::open(&folder.database()).unwrap();
    store.remove(&id(2)).unwrap();
    store.vacuum().unwrap();
    drop(store);
    assert!(size() < small);
}

#[test]
fn errors_name_the_file_and_a_cure() {
    let folder = Folder::new("errors");
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, vec![7; 10_000]).unwrap();
    let below_a_file = garbage.join("history.db");
    for (path, words) in [(garbage.as_path(), "not a database"), (&below_a_file, "make folder")] {
        let error = Store::open(path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("garbage.db") && error.contains("--db"), "{error}");
    }
    assert_eq!(std::fs::read(&garbage).unwrap(), vec![7; 10_000]);
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("check the rights of the file"), "{error}");
}

#[test]
fn a_newer_layout_is_refused_politely() {
    let folder = Folder::new("newer");
    drop(filled(&folder, 1, 1));
    let connection = rusqlite::Connection::open(folder.database()).unwrap();
    connection.pragma_update(None, "user_version", 9).unwrap();
    drop(connection);
    let error = Store::open(&folder.database()).unwrap_err().to_string();
    assert!(error.contains("version 9") && error.contains("up to 2"), "{error}");
    assert!(error.contains("use the newer linerate"), "{error}");
}

#[test]
fn a_history_of_version_1_is_read() {
    let folder = Folder::new("v1");
    let connection = rusqlite::Connection::open(folder.database()).unwrap();
    connection.execute_batch(include_str!("fixtures/history-v1.sql")).unwrap();
    drop(connection);
    let mut store = Store::open(&folder.database()).unwrap();
    let run = store.run("baseline").unwrap();
    assert_eq!((run.trials, run.outcome), (1, Some(RunOutcome::Complete)));
    assert_eq!(run.info.seed, u64::MAX - 1);
    let records = store.records("last").unwrap();
    assert_eq!(records[0].summary.transactions, Some(4_000_000));
    let points = store.series(&Filter::default(), &"transactions".parse().unwrap()).unwrap();
    assert_eq!(points.len(), 1);
    store.begin_run(&info(9)).unwrap();
    store.append(&record(9, 0)).unwrap();
    assert_eq!(store.remove(&id(9)).unwrap().1, 1);
}
