//! COAL-01: interrupt moderation.

use std::time::Duration;

use linerate_link::settings::Allowed;
use linerate_model::bench::EchoSpec;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::station::nanoseconds;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "COAL-01",
    title: "interrupt moderation",
    does: "Times and frame counts at 0, the smallest, a usual and the largest value, illegal ones, \
           adaptive on and off; interrupts and latency are measured.",
    holds: "Values read back (rounded), interrupts stay below the bound, latency follows, illegal ones are \
           refused; 0 loses no wake-up.",
    skipped: "The link has no moderation settings.",
    source: "LNST, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "e1000e, igb, virtio, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

/// Values of each parameter; a driver rounds them, or refuses those that it cannot have.
const TIMES_US: [u64; 5] = [0, 1, 30, 200, 1000];
const FRAMES: [u64; 3] = [1, 8, 64];
/// No card waits for so long: beyond what any register holds.
const ILLEGAL: u64 = u32::MAX as u64;
/// Probes each way with each value on a fast machine.
const PROBES: usize = 500;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let settings = bench.dut.settings()?;
    let can = |key: &str| settings.iter().any(|s| s.key == key && s.changeable && s.value.is_some());
    let keys: Vec<&str> =
        ["rx-usecs", "tx-usecs", "rx-frames", "tx-frames"].into_iter().filter(|key| can(key)).collect();
    let adaptive: Vec<&str> = ["adaptive-rx", "adaptive-tx"].into_iter().filter(|key| can(key)).collect();
    if keys.is_empty() && adaptive.is_empty() {
        return Err(Trouble::no_feature("the link has no moderation settings"));
    }
    bench.unmerged_dut()?;
    for key in adaptive {
        for value in ["on", "off"] {
            match bench.dut.try_set(key, value)? {
                Ok(()) => drop(wakes_up(bench, &format!("with {key} {value}"))?),
                Err(why) => bench.warn(format!("{key} {value}: {why}")),
            }
        }
    }
    for key in keys {
        values(bench, key)?;
    }
    Ok(())
}

fn values(bench: &mut Bench, key: &str) -> Result<(), Trouble> {
    let before = bench.dut.setting(key)?.unwrap_or_default();
    let is_time = key.ends_with("usecs");
    let values: &[u64] = if is_time { &TIMES_US } else { &FRAMES };
    let mut taken = 0;
    for value in values {
        let was = bench.dut.setting(key)?;
        let answer = bench.dut.try_set(key, &value.to_string())?;
        let now = bench.dut.setting(key)?;
        match answer {
            // Rounded: told as a refusal by the node, since it is not what was asked for.
            Err(_) if now != was => bench.warn(format!("{key} {value} became {}", now.unwrap_or_default())),
            Err(_) => continue,
            Ok(()) if now.as_deref() != Some(&value.to_string()) => {
                bench.fail(ReasonCode::Readback, format!("{key} was set to {value} and reads {now:?}"));
            }
            Ok(()) => {}
        }
        taken += 1;
        let when = format!("with {key} {value}");
        let interrupts = wakes_up(bench, &when)?;
        if let Some(latency_ns) = latency_ns(bench)? {
            bench.measure(format!("round trip {when}"), latency_ns as f64 / 1000.0, "us");
        }
        if let Some(interrupts) = interrupts {
            bench.measure(format!("interrupts a probe {when}"), interrupts, "");
        }
    }
    if taken == 0 {
        bench.fail(ReasonCode::Refused, format!("{key}: each of {values:?} was refused"));
    }
    illegal(bench, key)?;
    bench.dut.set(key, &before)
}

/// Every probe arrives, which one lost wake-up would keep: interrupts of the link for each of them, where it tells them.
fn wakes_up(bench: &mut Bench, when: &str) -> Result<Option<f64>, Trouble> {
    let count = bench.count(PROBES, 50) as u64;
    let before: u64 = bench.dut.snapshot()?.interrupts.values().sum();
    for way in Way::BOTH {
        bench.half_rate(way, count, when)?;
    }
    let after: u64 = bench.dut.snapshot()?.interrupts.values().sum();
    Ok((before > 0).then(|| after.saturating_sub(before) as f64 / (2 * count) as f64))
}

fn illegal(bench: &mut Bench, key: &str) -> Result<(), Trouble> {
    let takes_it = bench.dut.setting_info(key)?.is_some_and(|info| match info.allowed {
        Allowed::Number { max, .. } => max >= ILLEGAL,
        _ => false,
    });
    let before = bench.dut.setting(key)?;
    if !takes_it {
        return Ok(());
    }
    let answer = bench.dut.try_set(key, &ILLEGAL.to_string())?;
    let after = bench.dut.setting(key)?;
    if answer.is_ok() {
        // A driver that keeps the number in memory alone takes any: no fault of what reaches the card.
        bench.warn(format!("{key} takes {ILLEGAL}"));
    } else if after != before && after.as_deref() == Some(&ILLEGAL.to_string()) {
        bench.fail(ReasonCode::Readback, format!("{key} {ILLEGAL} was refused and is in force"));
    }
    Ok(())
}

/// Median round trip from the peer to the dut.
fn latency_ns(bench: &mut Bench) -> Result<Option<u64>, Trouble> {
    let Ok((to, _)) = bench.addresses(Version::V4) else { return Ok(None) };
    let spec = EchoSpec {
        to,
        link: Some(bench.peer.link().to_owned()),
        payloads_bytes: vec![56],
        rounds: 20,
        in_flight: 1,
        gap_ns: 0,
        timeout_ns: nanoseconds(bench.patient(Duration::from_secs(1))),
        dont_fragment: false,
        seed: 1,
    };
    let report = bench.peer.echo(spec)?;
    if report.lost > 0 {
        let text = format!("{} of {} pings unanswered", report.lost, report.sent);
        bench.fail(ReasonCode::Loss, text);
    }
    Ok(report.round_trip_ns.map(|[_, median, _]| median))
}
