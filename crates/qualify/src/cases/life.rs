//! Cases of the area `life`.

pub(crate) mod life_01;
pub(crate) mod life_02;
pub(crate) mod life_03;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_model::bench::{BenchReply, BenchRequest, LinkAct};
use linerate_model::qualification::ReasonCode;

use crate::bench::Bench;
use crate::trouble::Trouble;

/// How long a driver may take to make its link.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);

/// What is known of the dut's device.
fn identity(bench: &mut Bench) -> Result<BTreeMap<String, String>, Trouble> {
    let link = bench.dut.link().to_owned();
    match bench.dut.ask(&BenchRequest::Identity { link })? {
        BenchReply::Facts(facts) => Ok(facts),
        _ => Err(Trouble::harness("tell a device's identity: unexpected answer")),
    }
}

/// Waits for the link of a driver that was given its device again, and gives it back what it had: up, and its addresses.
/// False, with a fault, where it does not come.
fn comes_back(bench: &mut Bench, after: &str) -> Result<bool, Trouble> {
    let limit = bench.patient(APPEARS_WITHIN);
    let begun = Instant::now();
    while bench.dut.link_now()?.is_none() {
        if begun.elapsed() > limit {
            bench.fail(ReasonCode::Link, format!("no link came back within {limit:?} {after}"));
            return Ok(false);
        }
        bench.sleep(Duration::from_millis(20))?;
    }
    let link = bench.dut.link().to_owned();
    let had = bench.dut.facts().addresses.clone();
    bench.dut.set_up(true)?;
    let there: Vec<IpAddr> = match bench.dut.link_now()? {
        Some(now) => now.addresses.iter().map(|one| one.address).collect(),
        None => Vec::new(),
    };
    for one in had.iter().filter(|one| one.scope != "link" && !there.contains(&one.address)) {
        let act = LinkAct::AddAddress { link: link.clone(), address: one.address, prefix: one.prefix };
        // One that came back by itself meanwhile is refused.
        let _ = bench.dut.try_act(act)?;
    }
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier {after}: {why}"));
        return Ok(false);
    }
    Ok(true)
}

/// Memory that drivers take from, KiB: slab, vmalloc, per-CPU (`/proc/meminfo`).
fn kernel_memory_kib(bench: &mut Bench) -> Result<Option<i64>, Trouble> {
    let Some(text) = bench.dut.read_file("/proc/meminfo")? else { return Ok(None) };
    let value = |name: &str| -> Option<i64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Ok(value("SUnreclaim:")
        .map(|slab| slab + value("VmallocUsed:").unwrap_or(0) + value("Percpu:").unwrap_or(0)))
}
