//! Failures that are known: where they are expected, why, and where to read more. Data, in TOML.
//!
//! ```toml
//! [[expected]]
//! driver = "e1000"
//! kernel = "5.10..6.18"
//! emulator = "QEMU*"
//! case = "diag.diag-01*"
//! reason = "the emulator's self-test registers do not answer"
//! link = "https://example.org/report"
//! ```
//! A missing field matches everything. An entry never hides a kernel warning or a fault of the suite; a case that passes
//! against its entry asks for the entry to be removed.

use linerate_model::qualification::{CaseResult, End, Expected, Outcome, ReasonCode};
use serde::Deserialize;

use crate::glob;

/// The list that linerate ships.
pub const SHIPPED: &str = include_str!("../expected.toml");

/// A list of expected failures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedList {
    /// Its entries; the first that matches counts.
    #[serde(default)]
    expected: Vec<Entry>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Driver, a glob.
    driver: Option<String>,
    /// `5.10..6.18`, both ends included; either may be left out. A plain version is that one with all its patches.
    kernel: Option<String>,
    /// `vendor:device` in hex, or bus address; a glob.
    device: Option<String>,
    /// Emulator with its version, a glob: `QEMU 7.*`. Where there is none, only an entry without this field matches.
    emulator: Option<String>,
    /// Medium: `veth`, `hub` ...; a glob.
    medium: Option<String>,
    /// Case with its variant, a glob: `csum.csum-01.v4*`; or its id.
    case: String,
    /// Why.
    reason: String,
    /// Where to read more.
    link: Option<String>,
}

/// Why a list can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the list of expected failures: {0}")]
pub struct ExpectedError(String);

/// Where a result comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Driver of the link under test.
    pub driver: String,
    /// Kernel release.
    pub kernel: String,
    /// `vendor:device` in hex, where there is one.
    pub device: String,
    /// Bus address.
    pub bus: String,
    /// Emulator with its version; empty where there is none.
    pub emulator: String,
    /// What joins the ends.
    pub medium: String,
}

impl Place {
    /// The place of results: the end under test, its emulator (empty where there is none), what joins the ends.
    pub fn of(dut: &End, emulator: &str, medium: &str) -> Self {
        let environment = &dut.environment;
        let link = environment.link.as_ref();
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        let fact = |name: &str| text(dut.identity.get(name)).trim_start_matches("0x").to_owned();
        let driver = link.and_then(|link| link.driver.as_ref().or(link.kind.as_ref()));
        let device = format!("{}:{}", fact("vendor"), fact("device"));
        Self {
            driver: text(driver),
            kernel: environment.kernel.clone(),
            device: if device == ":" { String::new() } else { device },
            bus: text(link.and_then(|link| link.bus.as_ref())),
            emulator: emulator.to_owned(),
            medium: medium.to_owned(),
        }
    }
}

impl ExpectedList {
    /// Reads a list.
    ///
    /// # Errors
    /// The place in the text and what is wrong there: no TOML, an unknown field, a range that is none.
    pub fn parse(text: &str) -> Result<Self, ExpectedError> {
        let list: Self = toml::from_str(text).map_err(|error| ExpectedError(error.to_string()))?;
        for entry in &list.expected {
            if let Some(kernel) = &entry.kernel {
                range(kernel)
                    .map_err(|why| ExpectedError(format!("kernel '{kernel}' of {}: {why}", entry.case)))?;
            }
            if entry.reason.trim().is_empty() {
                return Err(ExpectedError(format!("the entry for {} has no reason", entry.case)));
            }
        }
        Ok(list)
    }

    /// The shipped list.
    ///
    /// # Errors
    /// Never for a released linerate: a test reads it.
    pub fn shipped() -> Result<Self, ExpectedError> {
        Self::parse(SHIPPED)
    }

    /// This list, before another.
    #[must_use]
    pub fn before(mut self, other: Self) -> Self {
        self.expected.extend(other.expected);
        self
    }

    /// Puts an entry to a result: a failure becomes expected, a pass becomes one against expectation.
    pub fn apply(&self, result: &mut CaseResult, place: &Place) {
        let Some(entry) = self.expected.iter().find(|entry| entry.covers(result, place)) else { return };
        let never_hidden = |code: ReasonCode| matches!(code, ReasonCode::Klog | ReasonCode::Harness);
        let outcome = match result.outcome {
            Outcome::Fail | Outcome::Timeout => Outcome::ExpectedFail,
            Outcome::Pass => Outcome::UnexpectedPass,
            _ => return,
        };
        if result.reason.iter().chain(&result.more_reasons).any(|reason| never_hidden(reason.code)) {
            return;
        }
        result.outcome = outcome;
        result.expected = Some(Expected { reason: entry.reason.clone(), link: entry.link.clone() });
    }
}

impl Entry {
    fn covers(&self, result: &CaseResult, place: &Place) -> bool {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| !text.is_empty() && glob::matches(pattern, text))
        };
        let dot = if result.variant.is_empty() { "" } else { "." };
        let id = format!("{}{dot}{}", result.id, result.variant);
        let name = format!("{}.{id}", result.area);
        let is_case = [&id, &name, &result.id].iter().any(|text| glob::matches(&self.case, text));
        is_case
            && fits(&self.driver, &place.driver)
            && (fits(&self.device, &place.device) || fits(&self.device, &place.bus))
            && fits(&self.emulator, &place.emulator)
            && fits(&self.medium, &place.medium)
            && self
                .kernel
                .as_ref()
                .is_none_or(|kernel| range(kernel).is_ok_and(|range| within(&place.kernel, &range)))
    }
}

/// Numbers of a version, as many as it has: `6.18.4-rc1` is 6, 18, 4.
type Version = Vec<u32>;

fn range(text: &str) -> Result<(Option<Version>, Option<Version>), String> {
    let version = |text: &str| match text.trim() {
        "" => Ok(None),
        text if text.split('.').all(|part| part.parse::<u32>().is_ok()) => Ok(Some(numbers(text))),
        text => Err(format!("'{text}' is no version")),
    };
    match text.split_once("..") {
        Some((from, to)) => Ok((version(from)?, version(to)?)),
        None => Ok((version(text)?, version(text)?)),
    }
}

fn numbers(release: &str) -> Version {
    let plain = release.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    plain.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Compared by as many numbers as a bound has, so that `..6.18` takes 6.18.4.
fn within(release: &str, (from, to): &(Option<Version>, Option<Version>)) -> bool {
    let release = numbers(release);
    let cut = |bound: &Version| {
        release.iter().copied().chain(std::iter::repeat(0)).take(bound.len()).collect::<Version>()
    };
    from.as_ref().is_none_or(|from| cut(from) >= *from) && to.as_ref().is_none_or(|to| cut(to) <= *to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::qualification::Reason;

    fn result(outcome: Outcome, code: Option<ReasonCode>) -> CaseResult {
        CaseResult {
            id: "DIAG-01".into(),
            variant: "offline".into(),
            area: "diag".into(),
            title: String::new(),
            outcome,
            reason: code.map(|code| Reason { code, text: "x".into() }),
            more_reasons: vec![],
            warnings: vec![],
            duration_ns: 1,
            measured: vec![],
            counters: std::collections::BTreeMap::new(),
            evidence: None,
            log: vec![],
            capture: None,
            expected: None,
            repeat: 0,
        }
    }

    fn place() -> Place {
        Place {
            driver: "e1000".into(),
            kernel: "6.12.4-amd64".into(),
            emulator: "QEMU 7.2.0".into(),
            device: "8086:100e".into(),
            medium: "hub".into(),
            ..Place::default()
        }
    }

    fn after(list: &str, mut result: CaseResult) -> CaseResult {
        ExpectedList::parse(list).unwrap().apply(&mut result, &place());
        result
    }

    const LIST: &str = "[[expected]]\ndriver = 'e1000'\nkernel = '6.1..6.12'\nemulator = 'QEMU 7*'\n\
                        device = '8086:*'\ncase = 'diag.*'\nreason = 'known'\nlink = 'https://example.org'\n";

    #[test]
    fn failures_are_expected_and_passes_ask_for_removal() {
        let failed = after(LIST, result(Outcome::Fail, Some(ReasonCode::Refused)));
        assert_eq!(failed.outcome, Outcome::ExpectedFail);
        assert_eq!(failed.expected.unwrap().reason, "known");
        assert_eq!(after(LIST, result(Outcome::Pass, None)).outcome, Outcome::UnexpectedPass);
        assert_eq!(after(LIST, result(Outcome::Skip, Some(ReasonCode::NoFeature))).outcome, Outcome::Skip);
    }

    #[test]
    fn kernel_warnings_and_faults_of_the_suite_are_never_hidden() {
        for code in [ReasonCode::Klog, ReasonCode::Harness] {
            assert_eq!(after(LIST, result(Outcome::Fail, Some(code))).outcome, Outcome::Fail);
            let mut second = result(Outcome::Fail, Some(ReasonCode::Loss));
            second.more_reasons.push(Reason { code, text: String::new() });
            assert_eq!(after(LIST, second).outcome, Outcome::Fail);
        }
        let error = result(Outcome::Error, Some(ReasonCode::Harness));
        assert_eq!(after(LIST, error).outcome, Outcome::Error);
    }

    #[test]
    fn each_field_must_match() {
        let fails = || result(Outcome::Fail, Some(ReasonCode::Loss));
        for (from, to) in [
            ("driver = 'e1000'", "driver = 'igb'"),
            ("6.1..6.12", "6.13.."),
            ("6.1..6.12", "..6.11"),
            ("QEMU 7*", "QEMU 10*"),
            ("8086:*", "10ec:*"),
            ("diag.*", "csum.*"),
        ] {
            let list = LIST.replace(from, to);
            assert_eq!(after(&list, fails()).outcome, Outcome::Fail, "{to}");
        }
        for kernel in ["6.12", "..6.12", "6.12..", "..", "6.12.4"] {
            let list = LIST.replace("6.1..6.12", kernel);
            assert_eq!(after(&list, fails()).outcome, Outcome::ExpectedFail, "{kernel}");
        }
        for case in ["DIAG-01", "diag-01.offline", "diag.diag-01.off*"] {
            assert_eq!(
                after(&LIST.replace("diag.*", case), fails()).outcome,
                Outcome::ExpectedFail,
                "{case}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_list_is_told() {
        for (list, word) in [
            (LIST.replace("driver", "drivers"), "drivers"),
            (LIST.replace("6.1..6.12", "six"), "six"),
            (LIST.replace("'known'", "' '"), "no reason"),
            ("nonsense".to_owned(), "read the list"),
        ] {
            let error = ExpectedList::parse(&list).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_shipped_list_reads() {
        assert!(!ExpectedList::shipped().unwrap().expected.is_empty());
    }
}
