//! Export and import, also of what no linerate wrote.

use std::io;

use crate::common::{Folder, Random, id, info, record};
use linerate_model::Record;
use linerate_store::{Filter, ImportError, Imported, RunOutcome, Store, StoreError};
use serde_json::{Value, json};

fn store(folder: &Folder) -> Store {
    Store::open(&folder.database()).unwrap()
}

fn filled(folder: &Folder) -> Store {
    let store = store(folder);
    for run in 1..=2 {
        store.begin_run(&info(run)).unwrap();
        for sequence in 0..3 {
            store.append(&record(run, sequence)).unwrap();
        }
    }
    store.tag(&id(1), "base").unwrap();
    store.end_run(&id(1), RunOutcome::Complete).unwrap();
    store
}

fn export(store: &Store, references: &[&str]) -> Vec<u8> {
    let mut document = Vec::new();
    store.export(references, &mut document).unwrap();
    document
}

fn refusal(store: &mut Store, document: &[u8]) -> String {
    let error = store.import(document).unwrap_err();
    assert!(store.runs(&Filter::default()).unwrap().is_empty(), "nothing was kept");
    error.to_string()
}

#[test]
fn a_round_trip_changes_nothing_and_a_second_import_adds_nothing() {
    let (here, there) = (Folder::new("here"), Folder::new("there"));
    let from = filled(&here);
    let document = export(&from, &["base", "last", &id(1)]);
    let mut to = store(&there);
    let added = to.import(&document[..]).unwrap();
    assert_eq!(added, Imported { runs_added: 2, trials_added: 6, ..Imported::default() });
    assert_eq!(to.runs(&Filter::default()).unwrap(), from.runs(&Filter::default()).unwrap());
    for run in [id(1), id(2)] {
        assert_eq!(to.records(&run).unwrap(), from.records(&run).unwrap());
    }
    assert_eq!(export(&to, &["base", "last"]), document);
    let known = to.import(&document[..]).unwrap();
    assert_eq!(known, Imported { runs_known: 2, trials_known: 6, ..Imported::default() });
}

#[test]
fn a_file_laid_out_anew_is_the_same() {
    let (here, there) = (Folder::new("compact"), Folder::new("pretty"));
    let document = export(&filled(&here), &["base"]);
    let value: Value = serde_json::from_slice(&document).unwrap();
    let mut to = store(&there);
    to.import(&document[..]).unwrap();
    let known = to.import(&serde_json::to_vec_pretty(&value).unwrap()[..]).unwrap();
    assert_eq!((known.trials_known, known.trials_added), (3, 0));
}

#[test]
fn a_later_export_of_a_run_adds_what_is_new() {
    let (here, there) = (Folder::new("first"), Folder::new("then"));
    let (from, mut to) = (filled(&here), store(&there));
    to.import(&export(&from, &[&id(2)])[..]).unwrap();
    from.append(&record(2, 3)).unwrap();
    from.end_run(&id(2), RunOutcome::Interrupted).unwrap();
    from.tag(&id(2), "late").unwrap();
    let added = to.import(&export(&from, &[&id(2)])[..]).unwrap();
    assert_eq!((added.runs_known, added.trials_known, added.trials_added), (1, 3, 1));
    assert_eq!(to.run(&id(2)).unwrap(), from.run(&id(2)).unwrap());
}

#[test]
fn what_a_newer_linerate_put_in_a_record_survives() {
    let folder = Folder::new("newer-field");
    let mut document: Value = serde_json::from_slice(&export(&filled(&folder), &["base"])).unwrap();
    document["runs"][0]["records"][0]["colour"] = json!("blue");
    let there = Folder::new("keeps-it");
    let mut to = store(&there);
    to.import(&serde_json::to_vec(&document).unwrap()[..]).unwrap();
    let out: Value = serde_json::from_slice(&export(&to, &["base"])).unwrap();
    assert_eq!(out["runs"][0]["records"][0]["colour"], "blue");
}

#[test]
fn the_same_id_with_other_content_is_refused() {
    let (here, there) = (Folder::new("one"), Folder::new("other"));
    let mut to = filled(&there);
    let mut document: Value = serde_json::from_slice(&export(&filled(&here), &["base"])).unwrap();
    document["runs"][0]["records"][1]["clock"]["uncertainty_ns"] = json!(1);
    let bytes = serde_json::to_vec(&document).unwrap();
    let error = to.import(&bytes[..]).unwrap_err();
    assert!(matches!(error, StoreError::Import(ImportError::Conflict(_))), "{error}");
    assert!(error.to_string().contains("trial 1 of run 00000001"), "{error}");
    document["runs"][0]["info"]["seed"] = json!(5);
    let bytes = serde_json::to_vec(&document).unwrap();
    assert!(to.import(&bytes[..]).unwrap_err().to_string().contains("and differs; nothing was imported"));
}

#[test]
fn garbage_is_refused_without_a_trace() {
    let folder = Folder::new("garbage");
    let mut to = store(&folder);
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let runs = |runs: &str| format!(r#"{{"schema":"linerate.history/1","runs":{runs}}}"#);
    let records = |records: &str| {
        let info = serde_json::to_string(&info(1)).unwrap();
        runs(&format!(r#"[{{"info":{info},"ended_at":null,"outcome":null,"tags":[],"records":{records}}}]"#))
    };
    for document in [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        deep(1_000_000),
        "[".repeat(1_000_000),
        r#"{"a":"#.repeat(100_000),
        runs("7"),
        runs("[7]"),
        runs(&deep(1_000_000)),
        runs(&format!("[{}]", deep(1_000_000))),
        records("[{}]"),
        records(&deep(1_000_000)),
        records(&format!("[{}]", deep(1_000_000))),
        records(&format!("[{}]", r#"{"schema":"#.repeat(100_000) + "1" + &"}".repeat(100_000))),
    ] {
        let error = refusal(&mut to, document.as_bytes());
        assert!(error.starts_with("import: ") && error.len() < 500, "{error}");
    }
    refusal(&mut to, b"\xff\xfe");
    // More than a record will ever have, and far below the limit.
    let long = io::Read::take(io::repeat(b'['), 64_000_000);
    assert!(matches!(to.import(long), Err(StoreError::Import(_))));
}

#[test]
fn a_damaged_file_is_refused_or_reads_as_a_whole() {
    let (here, there) = (Folder::new("whole"), Folder::new("damaged"));
    let from = store(&here);
    from.begin_run(&info(1)).unwrap();
    from.append(&record(1, 0)).unwrap();
    let good = export(&from, &["last"]);
    let mut random = Random::new();
    let mut to = store(&there);
    for _ in 0..300 {
        let mut document = good.clone();
        for _ in 0..=random.below(3) {
            // Mostly in the first kilobyte, where the structure is.
            let end = if random.below(4) == 0 { document.len() as u64 } else { 1000 };
            let at = usize::try_from(random.below(end)).unwrap().min(document.len() - 1);
            match random.below(3) {
                0 => document[at] = b"{}[]\",:0-e\\\0\xff"[usize::try_from(random.below(13)).unwrap()],
                // One byte is always left, to be changed in turn.
                1 if document.len() > 1 => drop(document.remove(at)),
                _ => document.truncate(at.max(1)),
            }
        }
        if to.import(&document[..]).is_ok() {
            for run in to.runs(&Filter::default()).unwrap() {
                to.records(&run.info.id).unwrap();
                to.remove(&run.info.id).unwrap();
            }
        }
        assert!(to.runs(&Filter::default()).unwrap().is_empty());
    }
}

#[test]
fn values_that_can_not_be_are_refused_with_their_place() {
    let (here, there) = (Folder::new("values"), Folder::new("refused"));
    let good: Value = serde_json::from_slice(&export(&filled(&here), &["base"])).unwrap();
    let mut to = store(&there);
    let cases: [(&str, Value, &str); 10] = [
        ("/schema", json!("linerate.history/2"), "this linerate reads 'linerate.history/1'"),
        ("/runs/0/info/id", json!("../../etc"), "32 lower-case hex digits"),
        ("/runs/0/info/started_at", json!("noon"), "'noon' is no RFC 3339 time"),
        ("/runs/0/info/seed", json!(-1), "run number 0"),
        ("/runs/0/ended_at", json!("later"), "'later' is no RFC 3339 time"),
        ("/runs/0/outcome", json!("splendid"), "run number 0"),
        ("/runs/0/tags", json!(["last"]), "tag 'last'"),
        ("/runs/0/records/2/run", json!(id(2)), "record number 2 of run 00000001"),
        ("/runs/0/records/2/schema", json!("linerate.record/9"), "linerate.record/9"),
        ("/runs/0/records/2/started_at", json!(""), "is no RFC 3339 time"),
    ];
    for (pointer, value, words) in cases {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        let error = refusal(&mut to, &serde_json::to_vec(&document).unwrap());
        assert!(error.contains(words), "{pointer}: {error}");
    }
}

#[test]
fn an_export_that_can_not_be_written_says_so() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = Folder::new("unwritable");
    let store = filled(&folder);
    assert!(matches!(store.export(&["base"], Full), Err(StoreError::Export { .. })));
    let mut nothing = Vec::new();
    assert!(matches!(store.export(&["base", "none"], &mut nothing), Err(StoreError::NoSuchRun(_))));
    assert!(nothing.is_empty());
    let records: Vec<Record> = store.records("base").unwrap();
    assert_eq!(records.len(), 3);
}

#[test]
fn a_qualification_is_a_run_that_travels_and_goes() {
    let text = include_str!("fixtures/qualification-v1.json");
    let qualification: linerate_model::qualification::Qualification = serde_json::from_str(text).unwrap();
    let folder = Folder::new("qualification");
    let mut store = Store::open(&folder.path().join("a.db")).unwrap();
    store.add_qualification(&qualification).unwrap();
    assert!(matches!(store.add_qualification(&qualification), Err(StoreError::RunExists(_))));
    let run = store.run("last").unwrap();
    assert_eq!(run.cases, Some(qualification.cases.len() as u64));
    assert_eq!(run.links, std::slice::from_ref(&qualification.dut.link));
    assert_eq!(store.qualification("last").unwrap().as_ref(), Some(&qualification));
    let of_link = |link: &str| Filter { link: Some(link.to_owned()), ..Filter::default() };
    assert_eq!(store.runs(&of_link("lr-*")).unwrap().len(), 1);
    assert!(store.runs(&of_link("eth*")).unwrap().is_empty());

    let mut document = Vec::new();
    store.export(&["last"], &mut document).unwrap();
    let mut other = Store::open(&folder.path().join("b.db")).unwrap();
    for added in [1, 0] {
        assert_eq!(other.import(document.as_slice()).unwrap().runs_added, added);
    }
    assert_eq!(other.qualification("last").unwrap(), Some(qualification));
    let changed = String::from_utf8(document).unwrap().replace("\"medium\":\"", "\"medium\":\"other-");
    assert!(other.import(changed.as_bytes()).is_err());
    other.remove("last").unwrap();
    assert!(other.runs(&Filter::default()).unwrap().is_empty());
    assert!(matches!(other.qualification("last"), Err(StoreError::Empty { .. })));
}
