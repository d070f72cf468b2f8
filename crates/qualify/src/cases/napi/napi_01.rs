//! NAPI-01: polling.

use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "NAPI-01",
    title: "polling",
    does: "Threaded polling, deferred interrupts, flush timeouts.",
    holds: "Traffic is right, settings stay.",
    skipped: "",
    source: "ksft napi_threaded",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Settings and their values; the flush timeout is in nanoseconds.
const SETTINGS: [(&str, &[&str]); 3] = [
    ("napi-threaded", &["on", "off", "on"]),
    ("napi-defer-hard-irqs", &["2", "100", "0"]),
    ("gro-flush-timeout", &["20000", "1000000", "0"]),
];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let settings = bench.dut.settings()?;
    let can = |key: &str| settings.iter().any(|s| s.key == key && s.changeable && s.value.is_some());
    let tried: Vec<_> = SETTINGS.into_iter().filter(|(key, _)| can(key)).collect();
    if tried.is_empty() {
        return Err(Trouble::not_shown(
            "the settings of polling cannot be read here (no /sys of this namespace)",
        ));
    }
    let running = bench.start_running()?;
    for (key, values) in &tried {
        for value in *values {
            match bench.dut.try_set(key, value)? {
                // A driver without NAPI of its own has no threads to make (dev_set_threaded in net/core/dev.c).
                Err(why) if *key == "napi-threaded" => {
                    bench.warn(format!("{key} {value} was refused: {why}"));
                }
                Err(why) => bench.fail(ReasonCode::Refused, format!("{key} {value} was refused: {why}")),
                Ok(()) => reads(bench, key, value, "after it was set")?,
            }
            if !bench.still_running(&running, &format!("with {key} {value}"))? {
                return Ok(());
            }
        }
    }
    // Deferred interrupts and a timeout that ends the deferral go together.
    for (key, value) in [("gro-flush-timeout", "200000"), ("napi-defer-hard-irqs", "10")] {
        if tried.iter().any(|(known, _)| *known == key) {
            bench.dut.set(key, value)?;
        }
    }
    if !bench.still_running(&running, "with deferred interrupts and a flush timeout")? {
        return Ok(());
    }
    bench.finish_running(&running)?;
    stay(bench, &tried)
}

/// What is set stays when the number of queues changes.
fn stay(bench: &mut Bench, tried: &[(&str, &[&str])]) -> Result<(), Trouble> {
    let mut before = Vec::new();
    for (key, _) in tried {
        before.push((*key, bench.dut.setting(key)?.unwrap_or_default()));
    }
    for key in ["channels-combined", "channels-rx"] {
        let Some(number) = bench.dut.setting(key)?.and_then(|text| text.parse::<u64>().ok()) else {
            continue;
        };
        if number < 2 || bench.dut.try_set(key, "1")?.is_err() {
            continue;
        }
        bench.dut.set(key, &number.to_string())?;
        for (setting, value) in &before {
            reads(bench, setting, value, &format!("after {key} went to 1 and back"))?;
        }
    }
    Ok(())
}

fn reads(bench: &mut Bench, key: &str, value: &str, when: &str) -> Result<(), Trouble> {
    let now = bench.dut.setting(key)?.unwrap_or_default();
    if now != value {
        bench.fail(ReasonCode::ConfigLost, format!("{key} reads {now} {when}, must be {value}"));
    }
    Ok(())
}
