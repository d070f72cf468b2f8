//! RING-01: ring sizes.

use linerate_link::settings::Allowed;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "RING-01",
    title: "ring sizes",
    does: "The smallest, two between, the largest, an odd one, one beyond and 0, each under traffic.",
    holds: "Accepted sizes read back, rounded at most up; others are refused and change nothing; no loss \
           at half the rate; no stale frame.",
    skipped: "Ring sizes cannot be set.",
    source: "ksft ring_reconfig, LNST, DTS",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, e100, pcnet, vmxnet3, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 180, judge },
};

/// Frames each way with each size on a fast machine.
const FRAMES: usize = 10_000;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let mut rings = Vec::new();
    for key in ["ring-rx", "ring-tx"] {
        if let Some(info) = bench.dut.setting_info(key)?
            && let (true, Allowed::Number { max, .. }) = (info.changeable, info.allowed)
            // A driver that tells no most has nothing to try the kernel with.
            && max < u64::from(u32::MAX)
        {
            rings.push((key, max));
        }
    }
    if rings.is_empty() {
        return Err(Trouble::no_feature("ring sizes cannot be set"));
    }
    bench.unmerged_dut()?;
    // A frame that finds the smallest ring full may be offered again (QEMU's e1000 counts each offer); one that is lost
    // is told by its number.
    bench.allow_growth(&["dut.driver.rx_missed_errors"]);
    for (key, max) in rings {
        one_ring(bench, key, max)?;
    }
    bench
        .warn("sizes beyond the most are refused by linerate itself: the driver's own refusal was not tried");
    Ok(())
}

fn one_ring(bench: &mut Bench, key: &str, max: u64) -> Result<(), Trouble> {
    let before = bench.dut.setting(key)?.unwrap_or_default();
    // A size of 1 is the way to the smallest: a driver makes of it what it can.
    for size in [1, (max / 4).max(1), (max / 2).max(1), max / 2 + 1, max] {
        let is_exact = size != 1 && size != max / 2 + 1;
        if try_size(bench, key, size, max, is_exact)? {
            traffic(bench, key, size)?;
        }
    }
    try_zero(bench, key)?;
    bench.dut.set(key, &before)?;
    await_link(bench)?;
    bench.dut.set_up(false)?;
    bench.dut.set_up(true)?;
    await_link(bench)?;
    traffic(bench, key, before.parse().unwrap_or_default())
}

/// Sets a size and reads it back; tells whether it is in force, rounded or not.
fn try_size(bench: &mut Bench, key: &str, size: u64, max: u64, is_exact: bool) -> Result<bool, Trouble> {
    let before = read(bench, key)?;
    let answer = bench.dut.try_set(key, &size.to_string())?;
    await_link(bench)?;
    let now = read(bench, key)?;
    if now >= size && now <= max && (now == size || answer.is_err()) && (now != before || now == size) {
        return Ok(true);
    }
    match answer {
        Err(why) if now == before && is_exact => {
            bench.fail(ReasonCode::Refused, format!("{key} {size} of at most {max} was refused: {why}"));
        }
        Err(_) if now == before => {}
        _ => bench.fail(ReasonCode::Readback, format!("{key} was set to {size} and reads {now}")),
    }
    Ok(false)
}

/// 0 is refused, or rounded up to the smallest.
fn try_zero(bench: &mut Bench, key: &str) -> Result<(), Trouble> {
    let answer = bench.dut.try_set(key, "0")?;
    await_link(bench)?;
    if answer.is_ok() || read(bench, key)? == 0 {
        bench.fail(ReasonCode::Accepted, format!("{key} 0 was accepted"));
    }
    Ok(())
}

fn read(bench: &mut Bench, key: &str) -> Result<u64, Trouble> {
    let text = bench.dut.setting(key)?.unwrap_or_default();
    text.parse().map_err(|_| Trouble::harness(format!("{key} reads '{text}'")))
}

fn traffic(bench: &mut Bench, key: &str, size: u64) -> Result<(), Trouble> {
    let count = bench.count(FRAMES, 200) as u64;
    for way in Way::BOTH {
        bench.half_rate(way, count, &format!("with {key} {size}"))?;
    }
    Ok(())
}

fn await_link(bench: &mut Bench) -> Result<(), Trouble> {
    let limit = bench.patient(std::time::Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier: {why}"));
    }
    Ok(())
}
