//! Trends as a table for a terminal and as a drawing.

use linerate_model::trend::Trend;
use linerate_report::{trend_svg, trend_table};

use crate::browser::trend;

#[test]
fn a_trend_as_a_table() {
    let text = trend_table(&trend(), 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_trend_without_changes_says_so() {
    let text = trend_table(&Trend { changes: Vec::new(), ..trend() }, 80);
    assert!(text.contains("No change in 60 values."));
}

#[test]
fn a_drawing_stands_alone() {
    let evil = Trend { trial: "<script>alert(1)</script>".to_owned(), ..trend() };
    let svg = trend_svg(&evil);
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("prefers-color-scheme: dark"), "colours for both");
    assert!(svg.contains("-6.38 %") && svg.contains("+10.4 %"), "the changes");
    assert!(!svg.contains("<script"), "strangers' bytes stay text");
    let nothing = trend_svg(&Trend { points: Vec::new(), changes: Vec::new(), ..trend() });
    assert!(nothing.contains("</svg>"));
}
