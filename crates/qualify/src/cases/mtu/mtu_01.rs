//! MTU-01: bounds of the MTU.

use linerate_link::settings::Allowed;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::out;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "MTU-01",
    title: "bounds of the MTU",
    does: "The smallest, the largest, one beyond each, 0 and 1500 are set.",
    holds: "What is within the bounds is accepted and read back, what is not is refused and changes nothing; the \
            link works after each.",
    skipped: "",
    source: "ksft min_max_mtu, DTS, NICDRV test13",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let Some(info) = bench.dut.setting_info("mtu")? else {
        return Err(Trouble::harness("the link's MTU cannot be read"));
    };
    let Allowed::Number { min, max, .. } = info.allowed else {
        return Err(Trouble::not_shown("the kernel does not tell the bounds of the MTU"));
    };
    let mut accepted = vec![min, max];
    accepted.extend((min..=max).contains(&1500).then_some(1500));
    for mtu in accepted {
        set_within(bench, mtu)?;
        small_frames_pass(bench, mtu)?;
    }
    for mtu in [0, min.saturating_sub(1), max.saturating_add(1)] {
        if !(min..=max).contains(&mtu) {
            refused(bench, mtu)?;
        }
    }
    small_frames_pass(bench, 1500)
}

fn set_within(bench: &mut Bench, mtu: u64) -> Result<(), Trouble> {
    if let Err(why) = bench.dut.try_set("mtu", &mtu.to_string())? {
        bench.fail(ReasonCode::Refused, format!("MTU {mtu} is within the bounds and was refused: {why}"));
        return Ok(());
    }
    let now = bench.dut.setting("mtu")?;
    if now.as_deref() != Some(&mtu.to_string()) {
        bench.fail(
            ReasonCode::Readback,
            format!("MTU was set to {mtu} and reads {}", now.unwrap_or_default()),
        );
    }
    Ok(())
}

/// The kernel is asked by sysfs, since linerate itself refuses what is beyond the bounds that the link tells.
fn refused(bench: &mut Bench, mtu: u64) -> Result<(), Trouble> {
    let file = format!("/sys/class/net/{}/mtu", bench.dut.link());
    let before = bench.dut.setting("mtu")?;
    if bench.dut.read_file(&file)?.map(|text| text.trim().to_owned()) != before {
        bench.warn("the kernel's refusals were not tried: its /sys is that of another namespace");
        return Ok(());
    }
    if bench.dut.write_file(&file, &mtu.to_string())?.is_ok() {
        bench.fail(ReasonCode::Accepted, format!("MTU {mtu} is beyond the bounds and was accepted"));
    }
    let after = bench.dut.setting("mtu")?;
    if before != after {
        let words = format!("refusing MTU {mtu} changed it from {before:?} to {after:?}");
        bench.fail(ReasonCode::Readback, words);
    }
    Ok(())
}

fn small_frames_pass(bench: &mut Bench, mtu: u64) -> Result<(), Trouble> {
    let limit = bench.patient(std::time::Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier after MTU {mtu}: {why}"));
        return Ok(());
    }
    for way in Way::BOTH {
        let lane = bench.lane(way)?;
        let hosts = bench.hosts(way);
        let probes = bench.probes(&hosts, &[60; 16]);
        let frames: Vec<_> = probes.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &probes, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}
