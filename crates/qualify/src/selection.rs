//! Which cases are run.

use std::collections::BTreeSet;

use linerate_model::qualification::{Level, ReasonCode};

use crate::case::{Case, OptIn, Run};
use crate::glob::matches;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Cases up to this level.
    pub level: Level,
    /// Globs on `TX-01` or `tx.tx-01.VARIANT`; empty is all.
    pub cases: Vec<String>,
    /// Areas; empty is all.
    pub areas: Vec<String>,
    /// Cases may take the link down.
    pub disruptive: bool,
    /// Harm that is allowed.
    pub allow: BTreeSet<OptIn>,
    /// How often all is run.
    pub repeat: u32,
    /// Ends with the first case that fails.
    pub stop_on_fail: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            level: Level::Quick,
            cases: Vec::new(),
            areas: Vec::new(),
            disruptive: true,
            allow: BTreeSet::new(),
            repeat: 1,
            stop_on_fail: false,
        }
    }
}

/// A variant of a case that is to be run, or why it is not.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// The case.
    pub case: &'static Case,
    /// The variant; empty where it has only one.
    pub variant: &'static str,
    /// Why it will be skipped whatever the link is; `None` is run.
    pub skip: Option<(ReasonCode, &'static str)>,
}

/// Why a selection selects nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A glob that no case matches.
    #[error("no case matches '{0}'; `linerate qualify --list` shows them")]
    NoCase(String),
    /// An area that there is not.
    #[error("there is no area '{0}'; there are: {1}")]
    NoArea(String, String),
    /// All together select nothing.
    #[error("no case is left: {0}")]
    Nothing(String),
}

/// The variants that a selection runs or skips, in order. What is beyond its level is not among them, unless it is asked for
/// by its very id.
///
/// # Errors
/// Where a part of it, or the whole, selects nothing.
pub fn plan(catalogue: &[&'static Case], asked: &Selection) -> Result<Vec<Planned>, SelectionError> {
    check_words(catalogue, asked)?;
    let mut planned = Vec::new();
    for case in catalogue.iter().copied() {
        if !asked.areas.is_empty() && !asked.areas.iter().any(|area| matches(area, &case.area())) {
            continue;
        }
        for variant in case.variants() {
            if is_asked(case, variant, asked) {
                planned.push(Planned { case, variant, skip: skip(case, asked) });
            }
        }
    }
    if planned.is_empty() {
        let why = "those that match are beyond the level; see --level".to_owned();
        return Err(SelectionError::Nothing(why));
    }
    Ok(planned)
}

fn check_words(catalogue: &[&'static Case], asked: &Selection) -> Result<(), SelectionError> {
    for glob in &asked.cases {
        let known =
            |case: &&&'static Case| case.variants().iter().any(|variant| glob_matches(glob, case, variant));
        if !catalogue.iter().any(|case| known(&case)) {
            return Err(SelectionError::NoCase(glob.clone()));
        }
    }
    for area in &asked.areas {
        if !catalogue.iter().any(|case| matches(area, &case.area())) {
            let known: BTreeSet<String> = catalogue.iter().map(|case| case.area()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(SelectionError::NoArea(area.clone(), known));
        }
    }
    Ok(())
}

fn is_asked(case: &Case, variant: &str, asked: &Selection) -> bool {
    if asked.cases.is_empty() {
        return case.level <= asked.level;
    }
    asked.cases.iter().any(|glob| {
        let named = !glob.contains(['*', '?']);
        glob_matches(glob, case, variant) && (named || case.level <= asked.level)
    })
}

fn glob_matches(glob: &str, case: &Case, variant: &str) -> bool {
    matches(glob, case.id)
        || matches(glob, &case.name(variant))
        || matches(glob, &format!("{}.{variant}", case.id))
}

fn skip(case: &Case, asked: &Selection) -> Option<(ReasonCode, &'static str)> {
    if let Run::NotOffered(why) = case.run {
        return Some((ReasonCode::NotOffered, why));
    }
    if case.disruptive && !asked.disruptive {
        return Some((ReasonCode::NotAllowed, "it takes the link down, and --disruptive no was given"));
    }
    let missing = case.opt_in.filter(|opt_in| !asked.allow.contains(opt_in))?;
    Some((
        ReasonCode::NotAllowed,
        match missing {
            OptIn::Nvm => "it writes to the NIC's memory; --allow nvm runs it",
            OptIn::Pm => "it suspends the machine; --allow pm runs it",
            OptIn::PciReset => "it resets the PCI function; --allow pci-reset runs it",
            OptIn::Firmware => "it writes firmware; --allow firmware runs it",
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::CATALOGUE;

    fn ids(asked: &Selection) -> Vec<&'static str> {
        let mut ids: Vec<_> = plan(&CATALOGUE, asked).unwrap().iter().map(|p| p.case.id).collect();
        ids.dedup();
        ids
    }

    #[test]
    fn levels_hold_one_another_and_globs_choose() {
        let all = ids(&Selection { level: Level::Full, ..Selection::default() });
        assert_eq!(all.len(), 116);
        let core = ids(&Selection { level: Level::Core, ..Selection::default() });
        assert_eq!(core.len(), 48);
        let quick = ids(&Selection::default());
        assert!(quick.iter().all(|id| core.contains(id)) && quick.len() < core.len());
        let asked =
            Selection { cases: vec!["csum.*".to_owned()], level: Level::Core, ..Selection::default() };
        assert_eq!(ids(&asked), ["CSUM-01", "CSUM-02", "CSUM-03"]);
        let asked = Selection { cases: vec!["tx-01".to_owned()], ..Selection::default() };
        assert_eq!(ids(&asked), ["TX-01"]);
        let asked = Selection { areas: vec!["mtu".to_owned()], level: Level::Full, ..Selection::default() };
        assert_eq!(ids(&asked), ["MTU-01", "MTU-02"]);
    }

    #[test]
    fn words_that_select_nothing_are_refused() {
        let none = Selection { cases: vec!["nosuch*".to_owned()], ..Selection::default() };
        assert!(matches!(plan(&CATALOGUE, &none), Err(SelectionError::NoCase(_))));
        let none = Selection { areas: vec!["nosuch".to_owned()], ..Selection::default() };
        assert!(matches!(plan(&CATALOGUE, &none), Err(SelectionError::NoArea(..))));
    }

    #[test]
    fn what_can_do_harm_needs_to_be_allowed() {
        let asked = Selection { cases: vec!["NVM-01".to_owned()], ..Selection::default() };
        assert!(plan(&CATALOGUE, &asked).unwrap()[0].skip.is_some());
        let quiet = Selection { disruptive: false, level: Level::Core, ..Selection::default() };
        let skipped = plan(&CATALOGUE, &quiet).unwrap();
        let mtu = skipped.iter().find(|p| p.case.id == "MTU-01").unwrap();
        assert_eq!(mtu.skip.map(|(code, _)| code), Some(ReasonCode::NotAllowed));
    }
}
