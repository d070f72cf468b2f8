//! STAT-01: exact counters.

use linerate_model::qualification::Level;

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::finding::Finding;
use crate::frame::out;
use crate::must::count::{Counted, judge_counts};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "STAT-01",
    title: "exact counters",
    does: "A known number of frames of 60, 61, 512 and 1514 bytes each way, one at a time; rtnetlink, \
           ethtool, queues and /proc are read before and after.",
    holds: "Packets grow by exactly that number, bytes by their lengths without FCS, by one rule for both \
           directions; queues add up.",
    skipped: "",
    source: "DTS port_stats, ksft, NICDRV",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 30, judge },
};

/// The kernel's own frames (neighbour discovery, MLD) count as well and come when they like: a round that they disturbed is
/// done again.
const ROUNDS: usize = 4;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    let each = bench.count(250, 25);
    let lengths: Vec<usize> = [60, 61, 512, 1514].into_iter().cycle().take(4 * each).collect();
    bench.measure("frames each way", lengths.len() as f64, "frames");
    for way in Way::BOTH {
        let mut findings = Vec::new();
        for _ in 0..ROUNDS {
            findings = count(bench, way, &lengths)?;
            if findings.is_empty() || !bench.is_clean() {
                break;
            }
        }
        bench.add(findings);
    }
    Ok(())
}

/// Sends the frames one at a time; gives what is wrong with the dut's counters.
fn count(bench: &mut Bench, way: Way, lengths: &[usize]) -> Result<Vec<Finding>, Trouble> {
    let lane = bench.lane(way)?;
    let hosts = bench.hosts(way);
    let probes = bench.probes(&hosts, lengths);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let before = bench.dut.settled_snapshot()?;
    let arrived = bench.lock_step(&lane, &frames)?;
    let after = bench.dut.settled_snapshot()?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    bench.close_lane(&lane)?;
    let counted = Counted { way, frames: lengths.len() as u64, bytes: lengths.iter().sum::<usize>() as u64 };
    Ok(judge_counts(&before, &after, counted))
}
