//! LIFE-03: module unloaded and loaded.

use linerate_model::bench::DeviceAct;
use linerate_model::qualification::{Level, ReasonCode};

use super::{comes_back, identity, kernel_memory_kib};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "LIFE-03",
    title: "module unloaded and loaded",
    does: "The driver's module is unloaded and loaded 50 times, with the link up and down.",
    holds: "It loads each time; memory grows by less than 500 KiB over 50 rounds; nothing is left in /proc \
           and /sys.",
    skipped: "The driver is built in, or not in a module of its own.",
    source: "NICDRV test10, NDISTest",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 300, judge },
};

const ROUNDS: usize = 50;
/// The first rounds fill caches.
const WARM_UP: usize = 5;
/// Over fifty rounds; a figure of the suite's own.
const MOST_GROWTH_KIB: i64 = 500;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let Some(module) = identity(bench)?.remove("module") else {
        return Err(Trouble::not_shown("the driver is built in"));
    };
    if bench.dut.is_veth() {
        return Err(Trouble::not_shown("both ends of a veth pair go with the module"));
    }
    let rounds = bench.count(ROUNDS, 4);
    let warm_up = WARM_UP.min(rounds / 2);
    let mut before = None;
    for round in 0..rounds + warm_up {
        if round == warm_up {
            before = kernel_memory_kib(bench)?;
        }
        bench.dut.set_up(round % 2 == 0)?;
        if let Err(why) = bench.dut.try_device(DeviceAct::Unload { module: module.clone() })? {
            comes_back(bench, "after a refused unloading")?;
            return Err(Trouble::not_shown(format!("module {module} cannot be unloaded: {why}")));
        }
        bench.dut.device(DeviceAct::Load { module: module.clone(), parameters: String::new() })?;
        if !comes_back(bench, &format!("in round {round}"))? {
            return Ok(());
        }
    }
    bench.measure("rounds", rounds as f64, "");
    if let (Some(before), Some(after)) = (before, kernel_memory_kib(bench)?) {
        let grown = after - before;
        bench.measure("kernel memory grown", grown as f64, "KiB");
        let most = MOST_GROWTH_KIB * rounds as i64 / ROUNDS as i64;
        if rounds >= ROUNDS / 2 && grown > most.max(MOST_GROWTH_KIB / 2) {
            bench.fail(ReasonCode::Leak, format!("kernel memory grew by {grown} KiB over {rounds} rounds"));
        }
    }
    Ok(())
}
