//! Reasons for distrust of a list of records, each told once.

use linerate_model::Record;
use linerate_model::hazard::Hazard;
use linerate_model::trial::Side;

use crate::text::{Style, paint, printable, wrap};
use crate::trial_text::trial_text;

/// One line or more for each hazard of the records: what, on which node, in how many trials, the evidence and the cure.
/// Hazards of the same kind on the same node are told once, with all the evidence of the first trial that has them.
pub fn hazard_lines(records: &[Record], width: usize, color: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for group in group(records) {
        let head = format!("! {}", group.hazard.kind.name());
        let text = format!("({}): {}", group.place(records.len()), group.evidence());
        let mut wrapped = wrap(&format!("{head} "), 2, &printable(&text), width);
        wrapped[0].replace_range(..head.len(), &paint(&head, Style::Yellow, color));
        lines.append(&mut wrapped);
        if !group.hazard.cure.is_empty() {
            lines.extend(wrap("  cure: ", 8, &printable(&group.hazard.cure), width));
        }
    }
    lines
}

pub(crate) struct Group<'a> {
    pub(crate) hazard: &'a Hazard,
    trials: Vec<&'a Record>,
    /// What the first trial has to say; a hazard of one kind can have several reasons there.
    evidence: Vec<&'a str>,
    /// Other trials say something else.
    varies: bool,
}

impl Group<'_> {
    /// `dut, 3 of 6 trials`.
    pub(crate) fn place(&self, of: usize) -> String {
        let side = match self.hazard.side {
            Some(Side::Dut) => "dut, ",
            Some(Side::Peer) => "peer, ",
            None => "",
        };
        let trials = match self.trials.as_slice() {
            [_] if of == 1 => "1 trial".to_owned(),
            [only] => trial_text(&only.trial),
            all if all.len() == of => format!("all {of} trials"),
            some => format!("{} of {of} trials", some.len()),
        };
        format!("{side}{trials}")
    }

    pub(crate) fn evidence(&self) -> String {
        let first = if self.varies { "first: " } else { "" };
        format!("{first}{}", self.evidence.join("; "))
    }
}

/// The hazards of records, those of one kind on one node together.
pub(crate) fn group(records: &[Record]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for record in records {
        for hazard in &record.hazards {
            let known =
                groups.iter_mut().find(|g| g.hazard.kind == hazard.kind && g.hazard.side == hazard.side);
            let Some(group) = known else {
                let evidence = vec![hazard.evidence.as_str()];
                groups.push(Group { hazard, trials: vec![record], evidence, varies: false });
                continue;
            };
            let told = group.evidence.contains(&hazard.evidence.as_str());
            let first_trial = std::ptr::eq(group.trials[0], record);
            if first_trial && !told {
                group.evidence.push(&hazard.evidence);
            }
            group.varies |= !first_trial && !told;
            if !group.trials.last().is_some_and(|last| std::ptr::eq(*last, record)) {
                group.trials.push(record);
            }
        }
    }
    groups
}
