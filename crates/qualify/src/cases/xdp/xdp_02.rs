//! XDP-02: XDP and configuration.

use std::time::Duration;

use linerate_link::settings::Allowed;
use linerate_model::bench::{PortOptions, probe};
use linerate_model::qualification::{Level, ReasonCode};

use super::{attach, pass};
use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, out};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "XDP-02",
    title: "XDP and configuration",
    does: "Attached at MTUs up to and above what fits a buffer; MTU, rings, queues and LRO changed while \
           attached; detached while down.",
    holds: "What is refused changes nothing, what is accepted works, nothing crashes.",
    skipped: "As XDP-01.",
    source: "ksft xdp and hds; new (fbnic CVE)",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &[
            "native_mtu",
            "native_settings",
            "native_down",
            "generic_mtu",
            "generic_settings",
            "generic_down",
        ],
        limit_s: 60,
        judge,
    },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    bench.neutral_peer()?;
    let spec = pass(bench);
    let program = attach(bench, spec)?;
    let variant = bench.variant().to_owned();
    match variant.split_once('_').map_or("", |(_, what)| what) {
        "mtu" => mtus(bench),
        "settings" => settings(bench),
        _ => {
            bench.dut.set_up(false)?;
            bench.dut.close(program)?;
            bench.dut.set_up(true)?;
            works(bench, 1500, "after the program was taken off while the link was down")
        }
    }
}

/// Sizes around what fits a page with its headroom, and beyond.
fn mtus(bench: &mut Bench) -> Result<(), Trouble> {
    for mtu in [1500, 3000, 3498, 3520, 4000, 9000] {
        change(bench, "mtu", &mtu.to_string())?;
        let now = bench.dut.setting("mtu")?.and_then(|text| text.parse().ok()).unwrap_or(1500);
        works(bench, now, &format!("with MTU {now}"))?;
    }
    Ok(())
}

/// Rings, queues and LRO, each to the least and the most that the driver tells.
fn settings(bench: &mut Bench) -> Result<(), Trouble> {
    for key in ["rx-ring", "tx-ring", "channels-combined", "channels-rx", "channels-tx", "lro", "rx-gro-hw"] {
        let Some(info) = bench.dut.setting_info(key)? else { continue };
        let values = match info.allowed {
            Allowed::Number { min, max, .. } => vec![min.max(1).to_string(), max.to_string()],
            _ => vec!["on".to_owned(), "off".to_owned()],
        };
        for value in values {
            change(bench, key, &value)?;
            works(bench, 1500, &format!("with {key} {value}"))?;
        }
    }
    Ok(())
}

/// What is refused changes nothing; what is accepted reads back.
fn change(bench: &mut Bench, key: &str, value: &str) -> Result<(), Trouble> {
    let before = bench.dut.setting(key)?;
    let refused = bench.dut.try_set(key, value)?.is_err();
    let after = bench.dut.setting(key)?;
    let wrong = match refused {
        true => before != after,
        false => after.as_deref() != Some(value),
    };
    if wrong {
        let did = if refused { "refused" } else { "accepted" };
        let text = format!("{key} {value} was {did} and went from {before:?} to {after:?}");
        bench.fail(ReasonCode::Readback, text);
    }
    Ok(())
}

/// Small frames, and the largest that both ends may send, arrive at the dut.
fn works(bench: &mut Bench, mtu: usize, when: &str) -> Result<(), Trouble> {
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier {when}: {why}"));
        return Ok(());
    }
    let largest = match bench.peer.try_set("mtu", &mtu.to_string())? {
        Ok(()) => mtu,
        Err(_) => 1500.min(mtu),
    };
    let into = PortOptions {
        largest_bytes: 1 << 14,
        slots: 256,
        ether_type: probe::ETHER_TYPE,
        ..PortOptions::default()
    };
    let lane = bench.lane_with(Way::ToDut, PortOptions::default(), into)?;
    let hosts = bench.hosts(Way::ToDut);
    let probes = bench.probes(&hosts, &[60, 60, largest + ETHERNET_BYTES, 61, largest + ETHERNET_BYTES - 1]);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    bench.close_lane(&lane)?;
    if !bench.is_clean() {
        bench.warn(format!("first seen {when}"));
    }
    Ok(())
}
