//! PAUSE-01: flow control settings.

use std::time::Duration;

use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "PAUSE-01",
    title: "flow control settings",
    does: "All eight mixes of autonegotiation, receive and transmit pause.",
    holds: "What is set reads back as it resolves; the link stays.",
    skipped: "It is not supported.",
    source: "LNST, ksft",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb (settings only), hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 120, judge },
};

const KEYS: [&str; 3] = ["pause-autoneg", "pause-rx", "pause-tx"];
/// Probes each way under each mix on a fast machine.
const PROBES: usize = 200;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let settings = bench.dut.settings()?;
    let can = |key: &str| settings.iter().any(|s| s.key == key && s.changeable && s.value.is_some());
    let keys: Vec<&str> = KEYS.into_iter().filter(|key| can(key)).collect();
    if keys.is_empty() {
        return Err(Trouble::no_feature("flow control cannot be set"));
    }
    bench.unmerged_dut()?;
    let mut taken = 0;
    for mix in 0..1_u8 << keys.len() {
        let values: Vec<(&str, &str)> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| (*key, if mix >> at & 1 == 1 { "on" } else { "off" }))
            .collect();
        let words: Vec<String> = values.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let words = words.join(", ");
        if set(bench, &values, &words)? {
            taken += 1;
        }
        let limit = bench.patient(Duration::from_secs(10));
        if let Err(why) = bench.dut.await_carrier(limit)? {
            bench.fail(ReasonCode::Link, format!("no carrier with {words}: {why}"));
            return Ok(());
        }
        let count = bench.count(PROBES, 50) as u64;
        for way in Way::BOTH {
            bench.half_rate(way, count, &format!("with {words}"))?;
        }
    }
    bench.measure("mixes taken", f64::from(taken), "");
    if taken == 0 {
        bench.fail(ReasonCode::Refused, "no mix of flow control settings was taken");
    }
    Ok(())
}

/// Sets a mix; whether it is in force. With negotiation the partner has a word in what comes of it (IEEE Std 802.3
/// table 28B-3), and some drivers take only what they can negotiate: those are told, not judged.
fn set(bench: &mut Bench, values: &[(&str, &str)], words: &str) -> Result<bool, Trouble> {
    for (key, value) in values {
        if let Err(why) = bench.dut.try_set(key, value)? {
            bench.warn(format!("of {words}: {key} {value}: {why}"));
        }
    }
    let negotiates = values.contains(&("pause-autoneg", "on"));
    let mut is_in_force = true;
    for (key, value) in values {
        let now = bench.dut.setting(key)?.unwrap_or_default();
        if now != *value {
            is_in_force = false;
            // What was refused one by one may have gone out of force again by the next.
            if !negotiates {
                bench.warn(format!("with {words}: {key} reads {now}"));
            }
        }
    }
    Ok(is_in_force)
}
