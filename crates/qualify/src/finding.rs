//! What a case finds: each kind of fault told a few times, counted beyond that.

use std::collections::BTreeMap;

use linerate_model::qualification::{Evidence, Measured, Reason, ReasonCode};

/// Faults of one kind that are told one by one.
const TOLD: usize = 5;

/// Something that must hold and did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind.
    pub code: ReasonCode,
    /// What was expected and what came.
    pub text: String,
    /// The input that shows it.
    pub evidence: Option<Evidence>,
}

/// All that a case found and measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    faults: Vec<Reason>,
    seen: BTreeMap<ReasonCode, usize>,
    /// Worth knowing, no reason to fail.
    pub warnings: Vec<String>,
    /// Numbers.
    pub measured: Vec<Measured>,
    /// The first input that failed.
    pub evidence: Option<Evidence>,
}

impl Findings {
    /// Adds a fault.
    pub fn add(&mut self, finding: Finding) {
        let seen = self.seen.entry(finding.code).or_default();
        *seen += 1;
        if *seen <= TOLD {
            self.faults.push(Reason { code: finding.code, text: finding.text });
        }
        if self.evidence.is_none() {
            self.evidence = finding.evidence;
        }
    }

    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Whether a kind of fault is among them.
    pub fn has(&self, code: ReasonCode) -> bool {
        self.seen.contains_key(&code)
    }

    /// The faults in the order found; of kinds with more than a few, the last one says how many there are.
    pub fn into_faults(self) -> Vec<Reason> {
        let mut faults = self.faults;
        for (code, seen) in self.seen {
            if seen > TOLD {
                faults.push(Reason { code, text: format!("and {} more of this kind", seen - TOLD) });
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_of_a_kind_are_counted() {
        let mut findings = Findings::default();
        for number in 0..12 {
            let text = format!("frame {number} is lost");
            findings.add(Finding { code: ReasonCode::Loss, text, evidence: None });
        }
        findings.add(Finding { code: ReasonCode::Pad, text: "dirty".to_owned(), evidence: None });
        let faults = findings.into_faults();
        assert_eq!(faults.len(), 7);
        assert_eq!(faults[6].text, "and 7 more of this kind");
    }
}
