//! Qualifications as KTAP, JUnit, JSON, a table for a terminal and a page of HTML; frames as pcapng.
//!
//! Everything derives from [`Qualification`]; what comes from nodes is a stranger's bytes and is escaped.

mod compare;
mod dump;
mod group;
mod json;
mod junit;
mod ktap;
mod page;
mod pcapng;
mod table;

pub use compare::{Change, ChangedCase, Comparison, compare_qualifications, comparison_text};
pub use group::Totals;
pub use json::{ParseQualificationError, is_qualification, parse_qualification, qualification_json};
pub use junit::junit;
pub use ktap::{KtapOptions, kselftest_exit, ktap};
pub use page::qualification_html;
pub use pcapng::{Direction, PacketIn, captured_bytes, pcapng};
pub use table::{case_line, qualification_text};

use linerate_model::qualification::{CaseResult, Qualification};

/// `CSUM-03.v6_udp`, or `CSUM-03` where it has no variants; `@2` behind it for the second repeat.
pub fn case_name(case: &CaseResult) -> String {
    let mut name = case.id.clone();
    if !case.variant.is_empty() {
        name.push('.');
        name += &case.variant;
    }
    if case.repeat > 0 {
        name.push('@');
        name += &(case.repeat + 1).to_string();
    }
    name
}

/// Driver of the link under test, or its kind, or `unknown`.
pub fn driver(qualification: &Qualification) -> &str {
    let link = qualification.dut.environment.link.as_ref();
    link.and_then(|link| link.driver.as_deref().or(link.kind.as_deref())).unwrap_or("unknown")
}

/// The one number or the one reason that tells most of a case.
pub(crate) fn gist(case: &CaseResult) -> String {
    if let Some(expected) = &case.expected {
        return expected.reason.clone();
    }
    if let Some(reason) = &case.reason {
        return format!("{}: {}", reason.code.word(), reason.text);
    }
    if let Some(warning) = case.warnings.first() {
        return format!("warning: {warning}");
    }
    case.measured.first().map(measured).unwrap_or_default()
}

/// `name 12.3 unit`.
pub(crate) fn measured(number: &linerate_model::qualification::Measured) -> String {
    let value = crate::numbers::significant(number.value, 4);
    let value = if number.value.fract() == 0.0 { format!("{:.0}", number.value) } else { value };
    format!("{} {value} {}", number.name, number.unit).trim_end().to_owned()
}
