//! Records with random contents, for what must hold for every record.

use linerate_model::Record;
use linerate_model::limit::Limiter;
use linerate_model::record::Outcome;
use linerate_model::trial::{Amount, Family};
use linerate_model::workload::WorkloadKind;
use proptest::prelude::*;

use crate::samples::{Sample, record, sample, with_size};

/// A record of any workload, with figures from nothing to far above what machines do.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let shape = (0..7_usize, any::<bool>(), any::<bool>(), 1..40_u32, 16..65_507_u64, 0..5_u32);
    let figures = (0.001..1e5_f64, 0.0..1e11_f64, 0.0..64.0_f64, 0.0..64.0_f64, 0.0..=1.0_f64, 0.01..1e8_f64);
    let rest = (any::<u32>(), any::<bool>(), any::<Option<u64>>(), "\\PC*", any::<bool>());
    (shape, figures, rest).prop_map(|(shape, figures, rest)| {
        let (kind, shared, v6, streams, size, repeat) = shape;
        let (seconds, pace, dut_busy, peer_busy, loss, median_us) = figures;
        let (count, interrupted, verify_seed, text, by_count) = rest;
        let mut s: Sample = with_size(sample(WorkloadKind::ALL[kind]), size);
        s.shared = shared;
        s.trial.family = if v6 { Family::V6 } else { Family::V4 };
        s.trial.streams = streams;
        s.trial.repeat = repeat;
        s.trial.verify_seed = verify_seed;
        if by_count {
            s.trial.amount = Amount::Transactions(u64::from(count));
        }
        (s.seconds, s.pace, s.dut_busy, s.peer_busy) = (seconds, pace, dut_busy, peer_busy);
        (s.loss, s.median_us) = (loss, median_us);
        s.retransmits = u64::from(count);
        s.bad_bytes = u64::from(count);
        s.outcome = if interrupted { Outcome::Interrupted } else { Outcome::Complete };
        s.limiter = if interrupted { Limiter::Unclear } else { s.limiter };
        let mut r = record(count, &s);
        r.limit.evidence.clone_from(&text);
        r.dut.environment.host = text;
        r
    })
}
