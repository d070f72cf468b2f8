//! FILT-03: filter modes under traffic.

use std::time::Duration;

use linerate_model::bench::LinkAct;
use linerate_model::bench::frame::MacAddress;
use linerate_model::qualification::{Level, ReasonCode};

use super::count_arrivals;
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-03",
    title: "filter modes under traffic",
    does: "Promiscuous and all-multicast modes go on and off every 10 to 200 ms during TCP and counted \
           multicast.",
    holds: "No joined multicast is lost once the mode stands, no link loss, no reset, data right.",
    skipped: "",
    source: "NICDRV netstress; new (sfc)",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

/// Changes of the modes on a fast machine.
const CHANGES: usize = 60;
/// Multicast frames to each group once a mode stands.
const FRAMES: usize = 4;
/// Groups that are joined: enough for several buckets of any hash table.
const GROUPS: u8 = 16;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let link = bench.dut.link().to_owned();
    let groups: Vec<MacAddress> = (0..GROUPS).map(|n| [0x01, 0x00, 0x5e, 0x4c, n * 13, n * 7]).collect();
    for mac in &groups {
        bench.dut.act(LinkAct::JoinGroup { link: link.clone(), mac: *mac })?;
    }
    let carrier = bench.dut.snapshot()?.carrier_changes;
    let running = bench.start_running()?;
    let each: Vec<MacAddress> = groups.iter().copied().cycle().take(groups.len() * FRAMES).collect();
    for _ in 0..bench.count(CHANGES, 12) {
        let on = bench.rng().below(2) == 1;
        let (act, mode) = if bench.rng().below(2) == 1 {
            (LinkAct::SetPromiscuous { link: link.clone(), on }, "promiscuous")
        } else {
            (LinkAct::SetAllMulticast { link: link.clone(), on }, "all-multicast")
        };
        bench.dut.act(act)?;
        let pause = Duration::from_millis(bench.rng().between(10, 100));
        bench.sleep(pause)?;
        let came = count_arrivals(bench, &each)?;
        let lost = came.iter().filter(|came| !**came).count();
        let word = if on { "on" } else { "off" };
        if lost > 0 {
            let text = format!("{lost} of {} frames to joined groups were lost, {mode} {word}", came.len());
            bench.fail(ReasonCode::FilterMiss, text);
        }
        if !bench.still_running(&running, &format!("after {mode} went {word}"))? || !bench.is_clean() {
            return Ok(());
        }
    }
    bench.finish_running(&running)?;
    let after = bench.dut.snapshot()?.carrier_changes;
    if carrier != after {
        bench.fail(ReasonCode::Link, format!("the carrier changed: {carrier:?} before, {after:?} after"));
    }
    Ok(())
}
