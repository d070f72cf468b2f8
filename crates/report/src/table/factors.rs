//! Which factors vary among the rows of a table, and what those that do not are.

use linerate_model::Record;
use linerate_model::workload::WorkloadKind;

use crate::trial_text::Factor;

/// What a factor does among records.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FactorUse {
    /// At its default wherever it applies.
    Default,
    /// The same wherever it is not at its default, which is in all trials of these workloads.
    Constant { value: String, workloads: Vec<WorkloadKind> },
    /// Something else: it needs a column.
    Varies,
}

/// Looks at the factor's values. A factor can be the same in all trials of one workload while another does not know it
/// (UDP has no nodelay): that is constant.
pub(super) fn use_of(factor: &Factor, records: &[&Record]) -> FactorUse {
    let mut by_kind: Vec<(WorkloadKind, String)> = Vec::new();
    for record in records {
        let (kind, value) = (record.trial.workload.kind(), (factor.value)(&record.trial));
        match by_kind.iter().find(|(known, _)| *known == kind) {
            Some((_, known)) if *known != value => return FactorUse::Varies,
            Some(_) => {}
            None => by_kind.push((kind, value)),
        }
    }
    by_kind.retain(|(_, value)| !value.is_empty());
    let Some((_, value)) = by_kind.first().cloned() else { return FactorUse::Default };
    if by_kind.iter().any(|(_, other)| *other != value) {
        return FactorUse::Varies;
    }
    FactorUse::Constant { value, workloads: by_kind.into_iter().map(|(kind, _)| kind).collect() }
}
