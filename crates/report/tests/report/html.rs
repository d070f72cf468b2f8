//! Reports as pages: what they say, and that strangers' bytes stay text.

use linerate_model::Record;
use linerate_model::hazard::HazardKind;
use linerate_model::trial::{Family, SettingLevel, Side};
use linerate_model::workload::WorkloadKind;
use linerate_report::{HtmlOptions, Interval, Run, html};
use proptest::prelude::*;

use crate::random::any_record;
use crate::samples::{Sample, hazard, record, sample, with_size};
use crate::verdicts::verdict_table;

fn run<'a>(name: &str, records: &'a [Record]) -> Run<'a> {
    Run { name: name.to_owned(), records, command: None, left_out: &[] }
}

fn page(records: &[Record]) -> String {
    html(&[run("first", records)], &HtmlOptions::default())
}

fn records(samples: &[Sample]) -> Vec<Record> {
    samples.iter().zip(0..).map(|(s, n)| record(n, s)).collect()
}

fn sizes() -> Vec<Record> {
    let mut samples = Vec::new();
    for repeat in 0..3 {
        for (size, pace) in [(128, 2e8), (1024, 9e8), (16_384, 2.1e9), (65_536, 2.9e9)] {
            let mut s = with_size(sample(WorkloadKind::TcpStream), size);
            s.trial.repeat = repeat;
            s.pace = pace * (1.0 + f64::from(repeat) * 0.01);
            samples.push(s);
        }
    }
    records(&samples)
}

#[test]
fn a_sweep_says_what_was_asked_and_answers() {
    let page = page(&sizes());
    assert!(page.contains("128, 1K, 16K, 64K"), "the levels");
    assert!(
        page.contains("tcp-stream carried 1.616 Gbit/s (size 128) to 23.43 Gbit/s (size 64K)"),
        "the answer"
    );
    assert!(page.contains("Goodput by size"), "the plot");
    assert!(page.contains("whiskers: least to most of the repeats"), "what whiskers mean");
    let command = "linerate run ssh:bench@far --dut local --link eth1 --peer-link enp3s0f0 --workload tcp-stream \
                   --family 4 --size 128,1K,16K,64K --streams 1 --send write --time 10 --warmup 1 --interval 1 --repeat 3";
    assert!(page.contains(command), "how to run it again");
    assert!(page.contains("<td>6.18.5</td><td>6.12.48</td>"), "kernels differ");
}

#[test]
fn a_page_needs_nothing_else() {
    let page = page(&sizes());
    for outside in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count(),
        "only the name of SVG"
    );
}

#[test]
fn strangers_bytes_stay_text() {
    let evil = "</style><script>alert('x')</script>\"><b>&amp;";
    let mut records = sizes();
    for r in &mut records {
        r.dut.environment.host = evil.to_owned();
        r.dut.environment.kernel = format!("{evil}\u{1b}[2J");
        r.limit.evidence = evil.to_owned();
        r.hazards = vec![hazard(HazardKind::StealTime, Some(Side::Dut), evil, evil)];
        if let Some(link) = &mut r.peer.environment.link {
            link.name = evil.to_owned();
            link.driver = Some(evil.to_owned());
        }
        r.dut.environment.sysctls.insert(evil.to_owned(), evil.to_owned());
    }
    let mut verdicts = verdict_table();
    verdicts.base = evil.to_owned();
    verdicts.rows[0].trial = evil.to_owned();
    verdicts.rows[0].metric = evil.to_owned();
    let options =
        HtmlOptions { title: Some(evil.to_owned()), verdicts: Some(&verdicts), ..HtmlOptions::default() };
    let run = Run { name: evil.to_owned(), records: &records, command: Some(evil.to_owned()), left_out: &[] };
    let page = html(&[run, self::run("other", &records)], &options);
    assert!(page.contains("alert("), "it is shown");
    assert!(!page.contains("<script"), "as text");
    assert!(!page.contains("<b>"), "as text");
    assert_eq!(page.matches("</style>").count(), 1, "the style sheet's own end");
}

#[test]
fn every_workload_and_family_has_its_plots() {
    let mut samples = Vec::new();
    for family in [Family::V4, Family::V6] {
        for kind in WorkloadKind::ALL {
            let mut s = sample(kind);
            s.shared = true;
            s.trial.family = family;
            samples.push(s);
        }
    }
    let page = page(&records(&samples));
    for title in
        ["Goodput by workload", "Transactions by workload", "Latency distribution", "CPU by core, both nodes"]
    {
        assert!(page.contains(title), "{title}");
    }
    assert_eq!(page.matches("linerate run --workload ").count(), 7, "a command for each workload");
}

#[test]
fn runs_stand_side_by_side() {
    let (base, mut new) = (sizes(), sizes());
    for r in &mut new {
        r.summary.goodput_bits_per_second *= 0.9;
    }
    let page = html(&[run("base", &base), run("new", &new)], &HtmlOptions::default());
    assert!(page.contains("Side by side"));
    assert!(page.contains("-10.0 %"), "the difference");
    assert!(page.contains("base: dut (local)"), "environments of both");
}

#[test]
fn whiskers_can_be_an_interval() {
    let of = |values: &[f64]| (values.len() > 2).then(|| (values[0] * 0.5, values[0] * 2.0));
    let interval = Some(Interval { name: "a wide interval", of: &of });
    let records = sizes();
    let page = html(&[run("r", &records)], &HtmlOptions { interval, ..HtmlOptions::default() });
    assert!(page.contains("whiskers: a wide interval"));
}

#[test]
fn nothing_measured_is_still_a_page() {
    let page = html(&[], &HtmlOptions::default());
    assert!(page.contains("No trial was completed."));
    let page = self::page(&[]);
    assert!(page.contains("</html>"));
}

#[test]
fn settings_are_factors() {
    let mut samples = Vec::new();
    for (send, pace) in [("on", 2.4e9), ("off", 1.1e9)] {
        for streams in [1, 2, 4, 8] {
            let mut s = sample(WorkloadKind::TcpStream);
            s.trial.streams = streams;
            s.trial.settings = vec![SettingLevel { key: "dut.tso".to_owned(), value: send.to_owned() }];
            s.pace = pace;
            samples.push(s);
        }
    }
    let page = page(&records(&samples));
    assert!(page.contains("varied: dut.tso"), "what was asked");
    assert!(page.contains("dut.tso=off</li>"), "a series for each level");
    assert!(page.contains("--streams 1,2,4,8"), "the other factor");
    assert!(page.contains("--set dut.tso=on,off"), "the command");
    let fact = "<th scope=\"row\">set for the trial: tso</th><td>off | on</td><td>-</td>";
    assert!(page.contains(fact), "what differs");
}

#[test]
fn trials_stand_in_the_order_of_the_plan() {
    let mut records = records(&[of_streams(4), of_streams(1), of_streams(2)]);
    for (r, combination) in records.iter_mut().zip([2, 0, 1]) {
        r.combination = Some(combination);
        r.seed = Some(7);
    }
    let page = page(&records);
    let row = |n: u32| page.find(&format!("<td>{n}</td>")).expect("a cell with the streams");
    assert!(row(1) < row(2) && row(2) < row(4));
    assert!(page.contains("--streams 1,2,4") && page.contains("--seed 7"), "the command");
}

fn of_streams(streams: u32) -> Sample {
    let mut s = sample(WorkloadKind::TcpStream);
    s.trial.streams = streams;
    s
}

/// Turns every number of a value into what a stranger may claim.
fn exaggerate(value: &mut serde_json::Value, claim: &serde_json::Value) {
    match value {
        serde_json::Value::Number(_) => *value = claim.clone(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|v| exaggerate(v, claim)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|v| exaggerate(v, claim)),
        _ => {}
    }
}

#[test]
fn absurd_figures_make_a_page_all_the_same() {
    let plain = records(&WorkloadKind::ALL.map(sample));
    for (summary, reading) in [
        (serde_json::json!(0), 0_u64),
        (serde_json::json!(u64::MAX), u64::MAX),
        (serde_json::json!(1_u64 << 62), 1),
    ] {
        let mut absurd = Vec::new();
        for (record, size) in plain.iter().zip(1..) {
            let mut value = serde_json::to_value(record).expect("a record");
            exaggerate(&mut value["summary"], &summary);
            for node in ["dut", "peer"] {
                exaggerate(
                    &mut value[node]["reading"]["intervals"],
                    &serde_json::json!(reading.min(u64::from(u32::MAX))),
                );
                exaggerate(
                    &mut value[node]["reading"]["meter"],
                    &serde_json::json!(reading.min(u64::from(u32::MAX))),
                );
            }
            value["trial"]["streams"] = serde_json::json!(size);
            absurd.push(serde_json::from_value::<Record>(value).expect("still a record"));
        }
        absurd[0].summary.goodput_bits_per_second = f64::MAX;
        absurd[1].summary.goodput_bits_per_second = f64::MIN_POSITIVE;
        absurd[2].summary.goodput_bits_per_second = -1.0;
        assert!(page(&absurd).ends_with("</html>"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_records_make_a_page(records in proptest::collection::vec(any_record(), 0..9)) {
        prop_assert!(page(&records).ends_with("</html>"));
    }
}
