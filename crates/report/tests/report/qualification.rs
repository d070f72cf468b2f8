//! Qualifications in every form, read back where there is a reader.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_model::NodeUrl;
use linerate_model::bench::frame::{Addressed, ChecksumWord, Tag};
use linerate_model::bench::{Bytes, FrameIn};
use linerate_model::environment::{Environment, LinkInfo};
use linerate_model::qualification::*;
use linerate_report::qualification::*;
use serde_json::Value;

pub(crate) fn qualification() -> Qualification {
    let mut cases = vec![
        case("TX-01", "", "tx", Outcome::Pass),
        case("RX-02", "", "rx", Outcome::Skip),
        case("CSUM-01", "v4_udp", "csum", Outcome::Pass),
        case("CSUM-01", "v6_udp", "csum", Outcome::Fail),
        case("CSUM-03", "", "csum", Outcome::ExpectedFail),
        case("VLAN-01", "", "vlan", Outcome::UnexpectedPass),
        case("LIFE-01", "", "life", Outcome::Timeout),
        case("STAT-01", "", "stat", Outcome::Error),
        case("FILT-01", "", "filt", Outcome::Skip),
    ];
    cases[0].measured.push(Measured { name: "frames".into(), value: 5820.0, unit: String::new() });
    cases[0].warnings.push("rx_bytes counts the FCS".into());
    Qualification {
        schema: QUALIFICATION_SCHEMA.to_owned(),
        run: "0123456789abcdef0123456789abcdef".into(),
        started_at: "2026-12-01T12:00:00.5Z".into(),
        duration_ns: 41_200_000_000,
        command: vec!["linerate".into(), "qualify".into(), "--seed".into(), "7".into()],
        seed: 7,
        level: Level::Quick,
        dut: end("lr-dut", "e1000e"),
        peer: end("lr-peer", "virtio_net"),
        medium: "hub".into(),
        emulator: Some("QEMU 10.0.2".into()),
        calibration: Some(Calibration {
            frames_per_second: 123_456.0,
            flow_bits_per_second: 3.2e9,
            request_ns: 90_000,
            round_trip_ns: 41_000,
        }),
        cases,
        ended: Ended::Complete,
        journal: vec![JournalEntry {
            case: "LIFE-01".into(),
            end: "dut".into(),
            what: "mtu".into(),
            before: Some("1500".into()),
            after: "9000".into(),
            restored: Some(false),
        }],
    }
}

fn end(link: &str, driver: &str) -> End {
    let info = LinkInfo { name: link.into(), driver: Some(driver.into()), mtu: 1500, ..LinkInfo::default() };
    let environment = Environment {
        linerate_version: "0.1.0".into(),
        host: "lab<1>".into(),
        kernel: "6.18.4".into(),
        architecture: "x86_64".into(),
        link: Some(info),
        ..Environment::default()
    };
    End {
        node: NodeUrl::Local,
        link: link.into(),
        environment,
        settings_before: BTreeMap::from([("mtu".into(), "1500".into()), ("tso".into(), "on".into())]),
        settings_after: BTreeMap::from([("mtu".into(), "9000".into())]),
        identity: BTreeMap::from([("vendor".into(), "0x8086".into())]),
    }
}

pub(crate) fn case(id: &str, variant: &str, area: &str, outcome: Outcome) -> CaseResult {
    let reason = |code, text: &str| Some(Reason { code, text: text.to_owned() });
    let sent: Vec<u8> = (0..=255).cycle().take(1514).collect();
    let mut got = sent.clone();
    got[700] ^= 0x10;
    CaseResult {
        id: id.into(),
        variant: variant.into(),
        area: area.into(),
        title: "one frame of each length, each way".into(),
        outcome,
        reason: match outcome {
            Outcome::Pass | Outcome::UnexpectedPass => None,
            Outcome::Skip => reason(ReasonCode::NotShown, "a hub carries no giants"),
            Outcome::Timeout => reason(ReasonCode::Slow, "no end within 30 s"),
            Outcome::Error => reason(ReasonCode::Harness, "ask the peer: connection lost"),
            _ => reason(ReasonCode::Data, "frame 17 differs & <is> \"wrong\" # here\u{1b}[31m"),
        },
        more_reasons: if outcome == Outcome::Fail {
            vec![reason(ReasonCode::Count, "1 too few").unwrap()]
        } else {
            vec![]
        },
        warnings: vec![],
        duration_ns: 1_234_567_890,
        measured: vec![],
        counters: BTreeMap::from([("dut.link.rx_errors".into(), 3)]),
        evidence: (outcome == Outcome::Fail).then(|| Evidence {
            what: "frame 17 of length 1514, dut to peer".into(),
            expected: Some(Bytes(sent)),
            got: Some(Bytes(got)),
            offset: Some(700),
        }),
        log: if outcome == Outcome::Fail {
            vec!["dut: e1000e: Detected Hardware Unit Hang".into()]
        } else {
            vec![]
        },
        capture: (outcome == Outcome::Fail).then(|| "CSUM-01.v6_udp.pcapng".into()),
        expected: matches!(outcome, Outcome::ExpectedFail | Outcome::UnexpectedPass).then(|| Expected {
            reason: "the emulator adds padding".into(),
            link: Some("https://example.org/1".into()),
        }),
        repeat: 0,
    }
}

#[test]
fn ktap_has_exact_lines_directives_and_totals() {
    let text = ktap(&qualification(), KtapOptions::default());
    let results: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    assert_eq!(
        results,
        [
            "KTAP version 1",
            "1..8",
            "ok 1 TX-01",
            "ok 2 RX-02 # SKIP NOT_SHOWN: a hub carries no giants",
            "  KTAP version 1",
            "  1..2",
            "  ok 1 CSUM-01.v4_udp",
            "  not ok 2 CSUM-01.v6_udp # DATA: frame 17 differs & <is> \"wrong\" # here [31m",
            "not ok 3 CSUM-01 # DATA: frame 17 differs & <is> \"wrong\" # here [31m",
            "ok 4 CSUM-03 # XFAIL the emulator adds padding",
            "ok 5 VLAN-01 # XPASS the emulator adds padding",
            "not ok 6 LIFE-01 # TIMEOUT SLOW: no end within 30 s",
            "not ok 7 STAT-01 # ERROR HARNESS: ask the peer: connection lost",
            "ok 8 FILT-01 # SKIP NOT_SHOWN: a hub carries no giants",
        ]
    );
    assert_eq!(text.lines().last(), Some("# Totals: pass:1 fail:2 xfail:1 xpass:1 skip:2 error:1"));
    assert!(text.contains("  # first difference at offset 700 (0x2bc)\n"), "{text}");
    assert!(!text.contains("#:"));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn metadata_stands_between_version_and_plan() {
    let text = ktap(&qualification(), KtapOptions { metadata: true });
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"));
    let metadata: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("1..")).collect();
    assert!(metadata.iter().all(|line| line.starts_with("#:")), "{metadata:?}");
    assert!(metadata.contains(&"#:ktap_test: linerate-qualify") && metadata.contains(&"#:linerate_seed: 7"));
    let without: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("#:")).collect();
    assert_eq!(without, ktap(&qualification(), KtapOptions::default()).lines().collect::<Vec<_>>());
}

#[test]
fn exit_codes_are_those_of_kselftest() {
    let with = |outcomes: &[Outcome]| {
        let mut q = qualification();
        q.cases = outcomes.iter().map(|outcome| case("TX-01", "", "tx", *outcome)).collect();
        kselftest_exit(&q)
    };
    assert_eq!(with(&[Outcome::Pass, Outcome::Skip, Outcome::ExpectedFail]), 0);
    for bad in [Outcome::Fail, Outcome::Timeout, Outcome::Error] {
        assert_eq!(with(&[Outcome::Pass, bad, Outcome::UnexpectedPass]), 1);
    }
    assert_eq!(with(&[Outcome::ExpectedFail, Outcome::Skip]), 2);
    assert_eq!(with(&[Outcome::Pass, Outcome::UnexpectedPass]), 3);
    assert_eq!(with(&[Outcome::Skip]), 4);
    assert_eq!(with(&[]), 4);
    let interrupted = Qualification { ended: Ended::Interrupted, ..qualification() };
    assert_eq!(kselftest_exit(&interrupted), 1);
}

#[test]
fn junit_reads_back_with_the_attributes_that_readers_use() {
    use quick_xml::events::Event;
    let text = junit(&qualification());
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut suites, mut cases, mut kinds, mut depth) = (Vec::new(), 0, BTreeMap::new(), 0);
    loop {
        let event = reader.read_event().unwrap();
        let (Event::Start(element) | Event::Empty(element)) = &event else {
            match event {
                Event::End(_) => depth -= 1,
                Event::Eof => break,
                _ => {}
            }
            continue;
        };
        depth += i32::from(matches!(event, Event::Start(_)));
        let attribute = |name: &str| {
            let found = element.try_get_attribute(name).unwrap();
            found.map(|a| a.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap().into_owned())
        };
        let name = element.name().as_ref().to_owned();
        *kinds.entry(name.clone()).or_insert(0) += 1;
        match name.as_str() {
            "testsuite" => {
                suites.push(attribute("name").unwrap());
                assert_eq!(attribute("timestamp").as_deref(), Some("2026-12-01T12:00:00"));
                assert_eq!(attribute("hostname").as_deref(), Some("lab<1>"));
                attribute("tests").unwrap().parse::<u32>().unwrap();
            }
            "testcase" => {
                cases += 1;
                assert!(attribute("classname").unwrap().starts_with("e1000e."));
                assert_eq!(attribute("time").as_deref(), Some("1.235"));
            }
            "failure" if attribute("type").as_deref() == Some("DATA") => {
                assert_eq!(
                    attribute("message").as_deref(),
                    Some("DATA: frame 17 differs & <is> \"wrong\" # here [31m")
                );
            }
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    assert_eq!(suites, ["tx", "rx", "csum", "vlan", "life", "stat", "filt"]);
    assert_eq!(cases, 9);
    assert_eq!((kinds["failure"], kinds["error"], kinds["skipped"]), (2, 1, 3));
}

#[test]
fn the_table_fits_and_says_all_that_is_bad() {
    let text = qualification_text(&qualification(), 80, false);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn json_reads_back_and_keeps_to_the_schema() {
    let q = qualification();
    let text = qualification_json(&q);
    assert_eq!(parse_qualification(&text).unwrap(), q);
    assert!(
        is_qualification(&text)
            && !is_qualification("[]")
            && !is_qualification("{\"schema\": \"linerate.record/1\"}")
    );
    let other = text.replace(QUALIFICATION_SCHEMA, "linerate.qualification/2");
    assert!(is_qualification(&other));
    assert!(matches!(parse_qualification(&other), Err(ParseQualificationError::Schema(_))));
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    if let Err(error) = validator.validate(&value) {
        panic!("{error} at {}", error.instance_path());
    }
    let mut wrong = value;
    wrong["cases"][0]["outcome"] = "perhaps".into();
    assert!(!validator.is_valid(&wrong));
}

fn schema() -> Value {
    let mut schema = schemars::schema_for!(Qualification).to_value();
    schema["title"] = "linerate qualification, version 1".into();
    schema["properties"]["schema"]["const"] = QUALIFICATION_SCHEMA.into();
    schema
}

/// `LINERATE_BLESS=1 cargo test -p linerate-report schema` writes it anew after an intended change of the model.
#[test]
fn the_schema_of_qualifications_is_what_the_model_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/qualification-v1.json");
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("LINERATE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "schema/qualification-v1.json is not that of the model: see this test for how to renew it"
    );
}

#[test]
fn a_capture_reads_back_block_by_block() {
    let frame = FrameIn {
        bytes: Bytes(vec![7; 61]),
        length_bytes: 61,
        time_ns: 1_764_590_400_123_456_789,
        tag: Some(Tag { protocol: 0x8100, control: 0x2005 }),
        checksum: ChecksumWord::None,
        addressed: Addressed::Host,
        offload: None,
    };
    let bytes = captured_bytes(&frame);
    assert_eq!(bytes[12..16], [0x81, 0, 0x20, 5]);
    let packet = PacketIn {
        interface: 1,
        time_ns: frame.time_ns,
        direction: Direction::In,
        length_bytes: 65,
        bytes: bytes.clone(),
        comment: Some("the wrong one".into()),
    };
    let file = pcapng(&["dut.eth1".into(), "peer.eth2".into()], &[packet], "CSUM-01");
    let (mut at, mut kinds) = (0, Vec::new());
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(word(at + length - 4) as usize, length);
        kinds.push(word(at));
        if word(at) == 6 {
            assert_eq!(word(at + 8), 1);
            let time = (u64::from(word(at + 12)) << 32) | u64::from(word(at + 16));
            assert_eq!(time, frame.time_ns);
            assert_eq!((word(at + 20), word(at + 24)), (65, 65));
            assert_eq!(file[at + 28..at + 93], bytes);
        }
        at += length;
    }
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6]);
    tcpdump_reads(&file);
}

fn tcpdump_reads(file: &[u8]) {
    if !std::path::Path::new("/usr/bin/tcpdump").exists() {
        return;
    }
    let path = std::env::temp_dir().join(format!("lr-{}.pcapng", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let shown = std::process::Command::new("/usr/bin/tcpdump").arg("-enr").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(
        text.contains("vlan 5") || text.contains("802.1Q"),
        "{text}{}",
        String::from_utf8_lossy(&shown.stderr)
    );
}

pub(crate) fn side_by_side() -> Vec<Qualification> {
    let mut second = qualification();
    second.dut.environment.link.as_mut().unwrap().driver = Some("igb".into());
    second.cases.retain(|case| case.id != "FILT-01");
    second.cases[3] = case("CSUM-01", "v6_udp", "csum", Outcome::Pass);
    vec![qualification(), second]
}

#[test]
fn the_page_has_the_matrix_and_the_failing_byte_and_no_strangers_markup() {
    let mut runs = side_by_side();
    runs[0].dut.environment.kernel = "6.18</small><script>alert(1)</script>".into();
    let page = qualification_html(&runs);
    assert!(!page.contains("<script"));
    for text in
        ["igb", "e1000e", "not run", "id=\"r0-CSUM-01-v6-udp\"", "href=\"#r0-CSUM-01-v6-udp\"", "<b>ac</b>"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_comparison_tells_regressions_capabilities_and_what_is_fixed() {
    use Outcome::*;
    let with = |outcomes: &[Outcome]| {
        let mut q = qualification();
        let ids = ["TX-01", "TX-02", "RX-01", "RX-02", "RX-03", "RX-04", "RX-05", "RX-06"];
        q.cases = ids.iter().zip(outcomes).map(|(id, outcome)| case(id, "", "tx", *outcome)).collect();
        q
    };
    let base = with(&[Pass, Fail, Fail, Skip, Pass, ExpectedFail, Skip, Pass]);
    let new = with(&[Fail, Pass, Timeout, Pass, Skip, Pass, Error]);
    let comparison = compare_qualifications(&base, &new);
    let changes: Vec<Change> = comparison.cases.iter().map(|case| case.change).collect();
    assert_eq!(
        changes,
        [
            Change::Regression,
            Change::Fixed,
            Change::StillFailing,
            Change::Gained,
            Change::Lost,
            Change::FixedAgainstExpectation,
            Change::NewFailure,
            Change::Gone
        ]
    );
    assert!(comparison.is_worse());
    assert!(!compare_qualifications(&base, &base).is_worse());
    let text = comparison_text(&base, &new, 80, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}
