//! CHAN-01: queues.

use std::time::Duration;

use linerate_link::settings::Allowed;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Running};
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CHAN-01",
    title: "queues",
    does: "Every legal number of queues, up and down, under traffic.",
    holds: "The number reads back, all flows go on, interrupts are given back, illegal numbers are refused.",
    skipped: "The link has one queue.",
    source: "ksft queues, LNST, DTS dynamic_queue",
    privilege: Privilege::Admin,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

/// Kinds of queues that ethtool counts.
const KINDS: [&str; 3] = ["channels-combined", "channels-rx", "channels-tx"];
/// Beyond so many, only powers of two are tried.
const EACH_UP_TO: u64 = 8;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let mut kinds = Vec::new();
    for key in KINDS {
        if let Some(info) = bench.dut.setting_info(key)?
            && let (true, Some(value), Allowed::Number { max, .. }) =
                (info.changeable, info.value, info.allowed)
            && (2..u64::from(u32::MAX)).contains(&max)
        {
            kinds.push((key, value, max));
        }
    }
    if kinds.is_empty() {
        return Err(Trouble::no_feature("the link has one queue of a kind, or their number cannot be set"));
    }
    let interrupts = bench.dut.snapshot()?.interrupts.len();
    let running = bench.start_running()?;
    for (key, before, max) in &kinds {
        if !numbers(bench, &running, key, *max)? {
            return Ok(());
        }
        no_queue(bench, key)?;
        bench.dut.set(key, before)?;
        if !bench.still_running(&running, &format!("after {key} is {before} again"))? {
            return Ok(());
        }
    }
    bench.finish_running(&running)?;
    let after = bench.dut.snapshot()?.interrupts.len();
    if after > interrupts {
        bench.fail(ReasonCode::Leak, format!("the link has {after} interrupts, had {interrupts} before"));
    }
    bench.warn(
        "numbers beyond the most are refused by linerate itself: the driver's own refusal was not tried",
    );
    Ok(())
}

/// Every number up, then down; whether traffic goes on with each.
fn numbers(bench: &mut Bench, running: &Running, key: &str, max: u64) -> Result<bool, Trouble> {
    let up: Vec<u64> = (1..=max)
        .filter(|number| *number <= EACH_UP_TO || number.is_power_of_two() || *number == max)
        .collect();
    for number in up.iter().chain(up.iter().rev()) {
        let answer = bench.dut.try_set(key, &number.to_string())?;
        let now = bench.dut.setting(key)?.unwrap_or_default();
        let limit = bench.patient(Duration::from_secs(10));
        if let Err(why) = bench.dut.await_carrier(limit)? {
            bench.fail(ReasonCode::Link, format!("no carrier with {key} {number}: {why}"));
            return Ok(false);
        }
        match answer {
            // Some drivers take powers of two alone: that number then stays as it was.
            Err(why) if !number.is_power_of_two() && *number != max => {
                bench.warn(format!("{key} {number} was refused: {why}"));
            }
            Err(why) => {
                bench
                    .fail(ReasonCode::Refused, format!("{key} {number} of at most {max} was refused: {why}"));
            }
            Ok(()) if now != number.to_string() => {
                bench.fail(ReasonCode::Readback, format!("{key} was set to {number} and reads {now}"));
            }
            Ok(()) => {}
        }
        if !bench.still_running(running, &format!("with {key} {number}"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// No queue at all for one direction is refused (ethnl_set_channels in net/ethtool/channels.c), and changes nothing.
fn no_queue(bench: &mut Bench, key: &str) -> Result<(), Trouble> {
    let has_others = |bench: &mut Bench| -> Result<bool, Trouble> {
        let mut others = KINDS.iter().filter(|kind| **kind != key);
        others.try_fold(false, |any, kind| {
            let number = bench.dut.setting(kind)?.and_then(|text| text.parse::<u64>().ok());
            Ok(any
                || (*kind == "channels-combined" || key == "channels-combined")
                    && number.is_some_and(|n| n > 0))
        })
    };
    if has_others(bench)? {
        return Ok(());
    }
    let before = bench.dut.setting(key)?;
    if bench.dut.try_set(key, "0")?.is_ok() {
        bench.fail(ReasonCode::Accepted, format!("{key} 0 was accepted, which leaves no queue"));
    }
    let after = bench.dut.setting(key)?;
    if after != before {
        bench.fail(ReasonCode::Readback, format!("refusing {key} 0 changed it from {before:?} to {after:?}"));
    }
    Ok(())
}
