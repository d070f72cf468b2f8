//! Pages as a browser lays them out: nothing sticks out at phone or desktop width, and no text of a plot is cut off,
//! covered by another or too small.
//!
//! The browser measures by a script in a page around them; the pages themselves have none. `LINERATE_PAGES=FOLDER` keeps
//! the pages there, to look at them.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_model::Record;
use linerate_model::trend::{Trend, TrendChange, TrendPoint};
use linerate_model::verdict::Better;
use linerate_model::workload::WorkloadKind;
use linerate_report::qualification::qualification_html;
use linerate_report::{HtmlOptions, Run, html, parse_json, trend_svg};
use linerate_testkit::{need, run_within};

use crate::qualification::{qualification, side_by_side};
use crate::samples::{record, sample, with_size};
use crate::verdicts::verdict_table;

const WIDTHS: [u32; 2] = [390, 1280];

/// Text of a plot at phone width, pixels.
const SMALLEST_TEXT: u32 = 10;

#[test]
fn nothing_overflows() {
    need!(tool("chromium"));
    let folder = Folder::new("linerate-pages");
    let pages = pages();
    keep(&pages);
    let probe = folder.path.join("probe.html");
    fs::write(&probe, probe_page(&pages)).unwrap();
    let shown = browse(&folder.path, &probe);
    let faults = shown
        .split_once("<pre id=\"out\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .unwrap_or_else(|| panic!("the probe did not run:\n{}", &shown[shown.len().saturating_sub(2000)..]))
        .0;
    let (faults, end) = faults.rsplit_once("measured ").expect("the probe's last line");
    assert_eq!(end.trim(), format!("{} pages", pages.len() * WIDTHS.len()));
    assert_eq!(faults, "", "in the browser");
}

#[test]
fn real_records_of_a_sweep_make_a_page() {
    let records = fixture("size-sweep");
    let page = html(&[run("sweep", &records)], &HtmlOptions::default());
    for text in ["Goodput by size", "Packets by size", "CPU of both nodes over time", "--size 128,2K,16K,64K"]
    {
        assert!(page.contains(text), "{text}");
    }
    let records = fixture("in-flight");
    let page = html(&[run("exchange", &records)], &HtmlOptions::default());
    for text in ["Latency distribution", "Latency percentiles", "--rate 300rps,1krps", "--in-flight 1,4"] {
        assert!(page.contains(text), "{text}");
    }
}

fn pages() -> Vec<(&'static str, String)> {
    let (sizes, exchange, udp) = (fixture("size-sweep"), fixture("in-flight"), fixture("udp-rates"));
    let (near, far) = (two_hosts(1.0, "eth1"), two_hosts(0.93, &"very-long-name-of-a-link".repeat(5)));
    let verdicts = verdict_table();
    let trends = [trend()];
    let options = HtmlOptions { verdicts: Some(&verdicts), trends: &trends, ..HtmlOptions::default() };
    let suite: Vec<Record> =
        WorkloadKind::ALL.into_iter().map(sample).zip(0..).map(|(s, n)| record(n, &s)).collect();
    let alone = HtmlOptions::default();
    vec![
        ("size-sweep", html(&[run("sweep", &sizes)], &alone)),
        ("in-flight", html(&[run("in-flight", &exchange)], &alone)),
        ("udp-rates", html(&[run("udp", &udp)], &alone)),
        (
            "two-runs",
            html(&[run("kernel-6.18 (before)", &near), run("kernel-6.19-rc1 (after)", &far)], &options),
        ),
        ("suite", html(&[run("suite", &suite)], &alone)),
        ("one-trial", html(&[run("one", &suite[..1])], &alone)),
        ("qualification", qualification_html(&[qualification()])),
        ("qualifications", qualification_html(&side_by_side())),
    ]
}

fn run<'a>(name: &str, records: &'a [Record]) -> Run<'a> {
    Run { name: name.to_owned(), records, command: None, left_out: &[] }
}

fn fixture(name: &str) -> Vec<Record> {
    let path = format!("{}/tests/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    parse_json(&fs::read_to_string(path).unwrap()).unwrap()
}

fn two_hosts(pace: f64, link: &str) -> Vec<Record> {
    let mut records = Vec::new();
    for (repeat, noise) in [(0, 1.0), (1, 1.012), (2, 0.99)] {
        for size in [128, 1024, 8192, 65_536] {
            let mut s = with_size(sample(WorkloadKind::TcpStream), size);
            s.trial.repeat = repeat;
            s.pace = 2.9e9 * pace * noise * (size as f64 / 65_536.0).powf(0.3);
            let mut r = record(u32::try_from(records.len()).unwrap(), &s);
            r.dut.environment.link.as_mut().unwrap().name = link.to_owned();
            records.push(r);
        }
    }
    records
}

pub(crate) fn trend() -> Trend {
    let points = (0..60_u32).map(|n| TrendPoint {
        at: format!("2026-{:02}-{:02}T03:00:00Z", 1 + n / 28, 1 + n % 28),
        run: format!("{n:032x}"),
        value: if n < 22 {
            23.4e9
        } else if n < 41 {
            21.9e9
        } else {
            24.2e9
        } + f64::from(n * 7919 % 13) * 2e7,
    });
    let change = |index, before: f64, after: f64| {
        let effect_percent = Some((after / before - 1.0) * 100.0);
        TrendChange { index, before, after, effect_percent, p: 0.002 }
    };
    Trend {
        trial: "tcp-stream 64K x8 IPv4".to_owned(),
        metric: "goodput".to_owned(),
        unit: "bit/s".to_owned(),
        better: Some(Better::Higher),
        points: points.collect(),
        changes: vec![change(22, 23.52e9, 22.02e9), change(41, 22.02e9, 24.32e9)],
    }
}

fn keep(pages: &[(&str, String)]) {
    let Some(folder) = std::env::var_os("LINERATE_PAGES").map(PathBuf::from) else { return };
    for (name, page) in pages {
        fs::write(folder.join(format!("{name}.html")), page).unwrap();
    }
    fs::write(folder.join("trend.svg"), trend_svg(&trend())).unwrap();
}

/// A page that holds each page at each width, and writes down what is wrong with them.
fn probe_page(pages: &[(&str, String)]) -> String {
    let mut frames = Vec::new();
    for (name, page) in pages {
        for width in WIDTHS {
            let safe = page.replace('&', "&amp;").replace('"', "&quot;");
            frames.push(format!(
                "<iframe title=\"{name}\" style=\"border:0\" width=\"{width}\" height=\"900\" srcdoc=\"{safe}\"></iframe>"
            ));
        }
    }
    let script = SCRIPT.replace("SMALLEST", &SMALLEST_TEXT.to_string());
    format!(
        "<!DOCTYPE html><meta charset=utf-8>{}<pre id=\"out\"></pre><script>{script}</script>",
        frames.concat()
    )
}

const SCRIPT: &str = r#"
const out = document.getElementById("out");
const tell = (frame, text) => out.append(`${frame.title} at ${frame.width}: ${text}\n`);
function measure(frame) {
  const page = frame.contentDocument, width = Number(frame.width);
  page.querySelectorAll("details").forEach(d => d.open = true);
  if (page.documentElement.scrollWidth > width) tell(frame, `is ${page.documentElement.scrollWidth} wide`);
  for (const e of page.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    const scrolls = e.parentElement.closest(".scroll");
    if (box.width > 0 && (box.right > width + 1 || box.left < -1) && !scrolls) tell(frame, `<${e.localName}> to ${box.right}: ${e.textContent.slice(0, 40)}`);
  }
  for (const svg of page.querySelectorAll("svg")) {
    const title = svg.querySelector("title").textContent, room = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent.trim(), t.getBoundingClientRect(), t]);
    texts.forEach(([text, box, t], i) => {
      if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1 || box.bottom > room.bottom + 1) tell(frame, `${title}: '${text}' is cut off`);
      const size = parseFloat(t.getAttribute("font-size")) * room.width / svg.viewBox.baseVal.width;
      if (size < SMALLEST) tell(frame, `${title}: '${text}' is ${size} px`);
      for (const [other, near] of texts.slice(i + 1)) {
        const across = Math.min(box.right, near.right) - Math.max(box.left, near.left);
        const down = Math.min(box.bottom, near.bottom) - Math.max(box.top, near.top);
        if (across > 1 && down > 4) tell(frame, `${title}: '${text}' covers '${other}'`);
      }
    });
  }
}
window.addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  frames.forEach(measure);
  out.append(`measured ${frames.length} pages`);
});
"#;

/// The document as it is after its script ran.
fn browse(folder: &Path, page: &Path) -> String {
    let mut browser = Command::new("chromium");
    browser
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1400,1000",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()));
    run_within(browser, Duration::from_secs(120)).expect_code(0).stdout
}

/// A folder that goes away with the test.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
