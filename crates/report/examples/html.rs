//! Makes a report of files of records: `cargo run -p linerate-report --example html -- RUN.json... > report.html`.

use std::io::Write as _;

use linerate_model::Record;
use linerate_report::{HtmlOptions, Run, html, parse_json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files: Vec<(String, Vec<Record>)> = Vec::new();
    for path in std::env::args().skip(1) {
        let records = parse_json(&std::fs::read_to_string(&path)?)?;
        let name = std::path::Path::new(&path)
            .file_stem()
            .map_or_else(|| path.clone(), |s| s.to_string_lossy().into_owned());
        files.push((name, records));
    }
    let runs: Vec<Run<'_>> = files
        .iter()
        .map(|(name, records)| Run { name: name.clone(), records, command: None, left_out: &[] })
        .collect();
    std::io::stdout().write_all(html(&runs, &HtmlOptions::default()).as_bytes())?;
    Ok(())
}
