//! FILT-02: multicast filter.

use std::collections::BTreeSet;

use linerate_model::bench::LinkAct;
use linerate_model::bench::frame::MacAddress;
use linerate_model::qualification::{Level, ReasonCode};

use super::{count_arrivals, needs_filter};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::must::filter::{bucket_high, bucket_low, bucket_slice};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-02",
    title: "multicast filter",
    does: "Groups that are not joined, groups that fall in each bucket of known hash tables, joined and \
           left in random order, 1 to 300 at once, all-multicast, IPv6 groups.",
    holds: "Every joined group is received, always; others no more often than a full hash table predicts; \
           all-multicast takes all; after leaving all it is as before.",
    skipped: "The link has no multicast filter (veth).",
    source: "NICDRV test04, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Groups joined at the end; beyond what most tables hold exactly.
const MANY: usize = 300;
/// Groups that nobody joins.
const OTHERS: usize = 32;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    needs_filter(bench)?;
    let link = bench.dut.link().to_owned();
    let others: Vec<MacAddress> = (0..OTHERS).map(|_| random_group(bench)).collect();
    let before = others_received(bench, &others)?;
    if before * 2 > OTHERS {
        let text = format!("no group is joined, and {before} of {OTHERS} other groups are received");
        bench.fail(ReasonCode::FilterLeak, text);
    }
    let mut groups = groups(bench);
    bench.rng().shuffle(&mut groups);
    let mut joined: Vec<MacAddress> = Vec::new();
    for batch in groups.chunks(groups.len().div_ceil(6).max(1)) {
        for mac in batch {
            bench.dut.act(LinkAct::JoinGroup { link: link.clone(), mac: *mac })?;
            joined.push(*mac);
        }
        // Some leave while others join, in no order.
        for _ in 0..batch.len() / 8 {
            let at = bench.rng().below(joined.len() as u64) as usize;
            let mac = joined.swap_remove(at);
            bench.dut.act(LinkAct::LeaveGroup { link: link.clone(), mac })?;
        }
        all_received(bench, &joined, "joined")?;
        if !bench.is_clean() {
            return Ok(());
        }
    }
    let full = others_received(bench, &others)?;
    bench.measure("groups joined", joined.len() as f64, "groups");
    bench.measure("other groups received beside them", full as f64 * 100.0 / OTHERS as f64, "%");
    bench.dut.act(LinkAct::SetAllMulticast { link: link.clone(), on: true })?;
    all_received(bench, &others, "under all-multicast")?;
    bench.dut.act(LinkAct::SetAllMulticast { link: link.clone(), on: false })?;
    for mac in joined.drain(..) {
        bench.dut.act(LinkAct::LeaveGroup { link: link.clone(), mac })?;
    }
    let after = others_received(bench, &others)?;
    if after > before {
        let text = format!("of {OTHERS} groups {after} are received after all were left, {before} before");
        bench.fail(ReasonCode::FilterLeak, text);
    }
    Ok(())
}

/// One group for each bucket of the tables that are known, and IPv6 groups; on a slow machine fewer.
fn groups(bench: &mut Bench) -> Vec<MacAddress> {
    let many = bench.count(MANY, 64);
    let (mut high, mut low, mut slice) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut groups = BTreeSet::new();
    while groups.len() < many {
        let mac = random_group(bench);
        let is_new =
            high.insert(bucket_high(mac)) | low.insert(bucket_low(mac)) | slice.insert(bucket_slice(mac));
        if is_new {
            groups.insert(mac);
        }
    }
    groups.into_iter().collect()
}

/// An IPv4 or IPv6 group, away from those that the stack joins by itself.
fn random_group(bench: &mut Bench) -> MacAddress {
    let [a, b, c, d] = (bench.rng().draw() as u32).to_be_bytes();
    if a & 1 == 0 { [0x01, 0x00, 0x5e, 0x40 | (b & 0x3f), c, d] } else { [0x33, 0x33, 0x7f, b, c, d] }
}

fn all_received(bench: &mut Bench, groups: &[MacAddress], how: &str) -> Result<(), Trouble> {
    let came = count_arrivals(bench, groups)?;
    for mac in groups.iter().zip(&came).filter(|(_, came)| !**came).map(|(mac, _)| mac) {
        let words: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("group {} ({how}, one of {}) was not received", words.join(":"), groups.len());
        bench.fail(ReasonCode::FilterMiss, text);
    }
    Ok(())
}

fn others_received(bench: &mut Bench, others: &[MacAddress]) -> Result<usize, Trouble> {
    Ok(count_arrivals(bench, others)?.into_iter().filter(|came| *came).count())
}
