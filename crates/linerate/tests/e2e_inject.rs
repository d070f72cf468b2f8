//! Faults injected from the command line are found, told in every format, kept, compared and removed.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linerate_testkit::need;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lr-inject-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn linerate(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.current_dir(folder).env("LINERATE_DB", folder.join("history.db")).args(words);
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_fault_is_found_and_a_card_without_one_passes() {
    need!(tun());
    let folder = Folder::new();
    let at = folder.0.as_path();
    let case = ["--case", "TX-01", "--seed", "7"];
    let clean = [&["qualify", "--inject", "none", "--ktap", "--json", "clean.json"][..], &case].concat();
    let clean = linerate(at, &clean);
    assert_eq!(clean.status.code(), Some(0), "{}", text(&clean));
    let ktap = String::from_utf8_lossy(&clean.stdout).into_owned();
    assert!(ktap.starts_with("KTAP version 1\n1..1\n  KTAP version 1\n"), "{ktap}");
    assert!(ktap.ends_with("ok 1 TX-01\n# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0\n"), "{ktap}");

    let files = ["--junit", "bad.xml", "--json", "bad.json", "--html", "bad.html", "--pcap", "frames"];
    let bad = [&["qualify", "--inject", "flip-bit", "-q", "--tag", "bad"][..], &files, &case].concat();
    let bad = linerate(at, &bad);
    assert_eq!(bad.status.code(), Some(1), "{}", text(&bad));
    assert!(text(&bad).contains("DATA"), "{}", text(&bad));
    for name in ["bad.xml", "bad.json", "bad.html", "frames/TX-01.lock_step.pcapng"] {
        assert!(at.join(name).metadata().unwrap().len() > 100, "{name}");
    }

    let compared = linerate(at, &["compare", "clean.json", "bad"]);
    assert_eq!(compared.status.code(), Some(1), "{}", text(&compared));
    assert!(text(&compared).contains("regressions: passed, fail now"), "{}", text(&compared));
    assert_eq!(linerate(at, &["compare", "clean.json", "clean.json"]).status.code(), Some(0));

    assert!(text(&linerate(at, &["history"])).contains("qualify"));
    assert!(text(&linerate(at, &["show", "bad"])).contains("TX-01"));
    assert_eq!(linerate(at, &["export", "bad", "-o", "out.json"]).status.code(), Some(0));
    assert_eq!(linerate(at, &["rm", "bad"]).status.code(), Some(0));
    let imported = linerate(at, &["import", "out.json"]);
    assert!(text(&imported).contains("1 new runs"), "{}", text(&imported));

    let expected = "[[expected]]\nmedium = 'injector'\ncase = 'TX-01*'\nreason = 'the injected bit'\n";
    std::fs::write(at.join("expected.toml"), expected).unwrap();
    let known = ["qualify", "--inject", "flip-bit", "-q", "--no-store", "--expected", "expected.toml"];
    let known = linerate(at, &[&known[..], &case].concat());
    assert_eq!(known.status.code(), Some(0), "{}", text(&known));
    assert!(text(&known).contains("the injected bit"), "{}", text(&known));

    let unknown = linerate(at, &["qualify", "--inject", "nonsense"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown));
}
