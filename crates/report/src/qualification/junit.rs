//! JUnit XML with the attributes that Jenkins and GitLab read: a suite for each area, a test case for each variant.

use std::io;

use linerate_model::qualification::{CaseResult, End, Outcome, Qualification};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::ElementWriter;

use super::dump::dump_lines;
use super::group::Totals;
use super::{case_name, driver, gist, measured};

/// A qualification as JUnit XML.
pub fn junit(qualification: &Qualification) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory fails only if a part's own writing does, and none does I/O.
    let written = document(qualification, &mut writer);
    debug_assert!(written.is_ok());
    let mut text = String::from_utf8(writer.into_inner()).unwrap_or_default();
    text.push('\n');
    text
}

type Xml = Writer<Vec<u8>>;

fn document(qualification: &Qualification, xml: &mut Xml) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let mut areas: Vec<&str> = Vec::new();
    for case in &qualification.cases {
        if !areas.contains(&case.area.as_str()) {
            areas.push(&case.area);
        }
    }
    let element = xml.create_element("testsuites").with_attribute(("name", "linerate qualify"));
    let element = counts(element, qualification.cases.iter().collect::<Vec<_>>().as_slice());
    element.write_inner_content(|xml| {
        for area in areas {
            suite(qualification, area, xml)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn suite(qualification: &Qualification, area: &str, xml: &mut Xml) -> io::Result<()> {
    let cases: Vec<&CaseResult> = qualification.cases.iter().filter(|case| case.area == area).collect();
    let host = clean(&qualification.dut.environment.host);
    let name = clean(area);
    let element = xml
        .create_element("testsuite")
        .with_attribute(("name", name.as_str()))
        .with_attribute(("timestamp", whole_seconds(&qualification.started_at)))
        .with_attribute(("hostname", host.as_str()));
    counts(element, &cases).write_inner_content(|xml| {
        properties(qualification, xml)?;
        cases.iter().try_for_each(|case| test_case(qualification, case, xml))
    })?;
    Ok(())
}

fn counts<'a>(element: ElementWriter<'a, Vec<u8>>, cases: &[&CaseResult]) -> ElementWriter<'a, Vec<u8>> {
    let totals = Totals::of(cases.iter().map(|case| case.outcome));
    let time: u64 = cases.iter().map(|case| case.duration_ns).sum();
    element
        .with_attribute(("tests", totals.all().to_string().as_str()))
        .with_attribute(("failures", totals.fail.to_string().as_str()))
        .with_attribute(("errors", totals.error.to_string().as_str()))
        .with_attribute(("skipped", (totals.skip + totals.xfail).to_string().as_str()))
        .with_attribute(("time", seconds(time).as_str()))
}

fn properties(qualification: &Qualification, xml: &mut Xml) -> io::Result<()> {
    let mut all = vec![
        ("run".to_owned(), qualification.run.clone()),
        ("seed".to_owned(), qualification.seed.to_string()),
        ("medium".to_owned(), qualification.medium.clone()),
        ("command".to_owned(), qualification.command.join(" ")),
    ];
    all.extend(qualification.emulator.iter().map(|emulator| ("emulator".to_owned(), emulator.clone())));
    for (side, end) in [("dut", &qualification.dut), ("peer", &qualification.peer)] {
        all.extend(inventory(end).into_iter().map(|(name, value)| (format!("{side}.{name}"), value)));
    }
    xml.create_element("properties").write_inner_content(|xml| {
        for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
            xml.create_element("property")
                .with_attribute(("name", clean(name).as_str()))
                .with_attribute(("value", clean(value).as_str()))
                .write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn inventory(end: &End) -> Vec<(String, String)> {
    let environment = &end.environment;
    let mut facts = vec![
        ("node".to_owned(), end.node.to_string()),
        ("link".to_owned(), end.link.clone()),
        ("host".to_owned(), environment.host.clone()),
        ("kernel".to_owned(), environment.kernel.clone()),
        ("architecture".to_owned(), environment.architecture.clone()),
        ("linerate".to_owned(), environment.linerate_version.clone()),
    ];
    if let Some(link) = &environment.link {
        facts.push(("driver".to_owned(), link.driver.clone().unwrap_or_default()));
        facts.push(("firmware".to_owned(), link.firmware.clone().unwrap_or_default()));
        facts.push(("bus".to_owned(), link.bus.clone().unwrap_or_default()));
        facts.push(("mtu".to_owned(), link.mtu.to_string()));
    }
    for (name, value) in &end.identity {
        if !facts.iter().any(|(known, _)| known == name) {
            facts.push((name.clone(), value.clone()));
        }
    }
    facts
}

fn test_case(qualification: &Qualification, case: &CaseResult, xml: &mut Xml) -> io::Result<()> {
    let class = clean(&format!("{}.{}", driver(qualification), case.area));
    let element = xml
        .create_element("testcase")
        .with_attribute(("classname", class.as_str()))
        .with_attribute(("name", clean(&case_name(case)).as_str()))
        .with_attribute(("time", seconds(case.duration_ns).as_str()));
    element.write_inner_content(|xml| {
        let message = clean(&gist(case));
        let kind = case.reason.as_ref().map(|reason| reason.code.word()).unwrap_or_default();
        match case.outcome {
            Outcome::Pass | Outcome::UnexpectedPass => {}
            Outcome::Skip => with_message("skipped", &message, xml)?,
            Outcome::ExpectedFail => with_message("skipped", &format!("expected: {message}"), xml)?,
            Outcome::Fail | Outcome::Timeout => trouble("failure", &message, &kind, case, xml)?,
            Outcome::Error => trouble("error", &message, &kind, case, xml)?,
        }
        let said = said(case);
        if !said.is_empty() {
            xml.create_element("system-out").write_text_content(BytesText::new(&clean(&said.join("\n"))))?;
        }
        Ok(())
    })?;
    Ok(())
}

fn with_message(name: &str, message: &str, xml: &mut Xml) -> io::Result<()> {
    xml.create_element(name).with_attribute(("message", message)).write_empty().map(drop)
}

fn trouble(name: &str, message: &str, kind: &str, case: &CaseResult, xml: &mut Xml) -> io::Result<()> {
    let mut lines: Vec<String> = case
        .reason
        .iter()
        .chain(&case.more_reasons)
        .map(|reason| format!("{}: {}", reason.code.word(), reason.text))
        .collect();
    lines.extend(case.evidence.iter().flat_map(dump_lines));
    xml.create_element(name)
        .with_attribute(("message", message))
        .with_attribute(("type", kind))
        .write_text_content(BytesText::new(&clean(&lines.join("\n"))))
        .map(drop)
}

fn said(case: &CaseResult) -> Vec<String> {
    let mut lines = vec![case.title.clone()];
    if case.outcome == Outcome::UnexpectedPass {
        lines.push(format!("passed though a failure was expected ({}): remove the entry", gist(case)));
    }
    lines.extend(case.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.extend(case.measured.iter().map(measured));
    lines.extend(case.counters.iter().map(|(name, delta)| format!("{name} {delta:+}")));
    lines.extend(case.log.iter().map(|line| format!("log: {line}")));
    lines.extend(case.capture.iter().map(|file| format!("capture: {file}")));
    lines.retain(|line| !line.is_empty());
    lines
}

/// Without the characters that XML 1.0 cannot hold even escaped (section 2.2).
fn clean(text: &str) -> String {
    let allowed =
        |c: char| matches!(c, '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if allowed(c) { c } else { ' ' }).collect()
}

/// RFC 3339 without fraction and zone, which is what Jenkins reads.
fn whole_seconds(time: &str) -> &str {
    time.get(..19).unwrap_or(time)
}

fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}
