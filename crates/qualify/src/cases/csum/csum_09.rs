//! CSUM-09: checksums switched off.

use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use super::csum_01;
use super::deliver::{self, Sample};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::{Sum, Version};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-09",
    title: "checksums switched off",
    does: "Receive checksums off, then transmit checksums off; kept over down and up and MTU changes.",
    holds: "Off, no packet is called good and the stack's sums are right; the switch stays.",
    skipped: "It is fixed.",
    source: "NDISTest, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["rx", "tx", "kept"], limit_s: 60, judge },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    match bench.variant() {
        "rx" => {
            bench.unmerged_dut()?;
            bench.with_setting(Side::Dut, "rx", "off", not_called_good)
        }
        "tx" => {
            bench.neutral_peer()?;
            bench.with_setting(Side::Dut, "tx", "off", csum_01::all_lengths)
        }
        _ => kept(bench),
    }
}

/// Off, the driver says nothing of any checksum.
fn not_called_good(bench: &mut Bench) -> Result<(), Trouble> {
    let samples: Vec<Sample> = (20..84)
        .map(|length| Sample { payload: bench.rng().bytes(length), sum: Sum::Right, behind: Vec::new() })
        .collect();
    let marked = deliver::udp(bench, Version::V4, &samples)?;
    if marked > 0 {
        let text =
            format!("receive checksums are off, and {marked} of {} packets were called good", samples.len());
        bench.fail(ReasonCode::CsumFalseOk, text);
    }
    Ok(())
}

/// The switches stay where they were put.
fn kept(bench: &mut Bench) -> Result<(), Trouble> {
    for key in ["rx", "tx"] {
        bench.with_setting(Side::Dut, key, "off", |bench| {
            bench.dut.set_up(false)?;
            bench.dut.set_up(true)?;
            still_off(bench, key, "down and up")?;
            if bench.dut.try_set("mtu", "1400")?.is_ok() {
                still_off(bench, key, "a change of MTU")?;
                bench.dut.set("mtu", "1500")?;
            }
            Ok(())
        })?;
    }
    let limit = bench.patient(std::time::Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier: {why}"));
    }
    Ok(())
}

fn still_off(bench: &mut Bench, key: &str, after: &str) -> Result<(), Trouble> {
    if bench.dut.feature(key)? == Some(true) {
        bench.fail(ReasonCode::ConfigLost, format!("{key} was off, and is on after {after}"));
    }
    Ok(())
}
