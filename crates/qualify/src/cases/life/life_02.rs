//! LIFE-02: driver taken off and given back.

use linerate_model::bench::DeviceAct;
use linerate_model::qualification::{Level, ReasonCode};

use super::{comes_back, identity};
use crate::bench::{Bench, FlowAsk};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "LIFE-02",
    title: "driver taken off and given back",
    does: "The driver is unbound from the device and bound again, 50 times idle and 20 times under \
           traffic with open sockets.",
    holds: "The link goes and comes back each time with the same permanent address and resources; nothing \
           holds the old one; traffic flows afterwards.",
    skipped: "The device is on no bus with bind (veth).",
    source: "NICDRV test10 and test11; new",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["idle", "busy"], limit_s: 300, judge },
};

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let Some(device) = bench.dut.facts().bus.clone().filter(|_| !bench.dut.is_veth()) else {
        return Err(Trouble::not_shown("the device is on no bus with bind"));
    };
    let driver = bench.dut.driver().to_owned();
    let before = identity(bench)?;
    let mac = bench.dut.mac();
    let busy = bench.variant() == "busy";
    let rounds = if busy { bench.count(20, 3) } else { bench.count(50, 5) };
    for round in 0..rounds {
        let flow = match busy {
            true => Some(bench.start_flow(&FlowAsk { reconnect: true, ..FlowAsk::udp(Version::V4) })?),
            false => None,
        };
        if let Err(why) = bench.dut.try_device(DeviceAct::Unbind { device: device.clone() })? {
            return Err(Trouble::not_shown(format!("{device} cannot be taken from its driver: {why}")));
        }
        if bench.dut.link_now()?.is_some() {
            bench
                .fail(ReasonCode::Link, format!("round {round}: the link is still there without its driver"));
        }
        bench.dut.device(DeviceAct::Bind { device: device.clone(), driver: driver.clone() })?;
        if !comes_back(bench, &format!("in round {round}"))? {
            return Ok(());
        }
        if let Some(flow) = flow {
            bench.dut.close(flow.dut)?;
            bench.peer.close(flow.peer)?;
        }
    }
    bench.measure("rounds", rounds as f64, "");
    let after = identity(bench)?;
    if before != after {
        let changed: Vec<&String> = before.keys().filter(|key| before.get(*key) != after.get(*key)).collect();
        bench.fail(ReasonCode::Readback, format!("other facts of the device than before: {changed:?}"));
    }
    if bench.dut.link_now()?.and_then(|link| link.mac) != bench.dut.facts().mac {
        bench.fail(ReasonCode::Readback, format!("another address than {mac:02x?}"));
    }
    Ok(())
}
