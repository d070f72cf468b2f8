//! STRESS-02: soak.

use std::time::{Duration, Instant};

use linerate_model::bench::LinkAct;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, FlowAsk};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "STRESS-02",
    title: "soak",
    does: "TCP and UDP of mixed sizes over both IP versions, both ways, with mode changes, for as long as \
           is asked; every byte compared.",
    holds: "No wrong byte, no error counter, no reset, memory flat, no link loss.",
    skipped: "",
    source: "NICDRV netstress, LNST",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 180, judge },
};

/// The smoke run; `--repeat` makes it a soak.
const TIME: Duration = Duration::from_secs(20);
const SIZES: [u32; 7] = [1, 63, 536, 1460, 4096, 16_384, 65_000];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let carrier = bench.dut.snapshot()?.carrier_changes;
    let mut flows = Vec::new();
    for version in [Version::V4, Version::V6] {
        if bench.addresses(version).is_err() {
            bench.warn(format!("IP{} was left out: the links have no addresses of it", version.word()));
            continue;
        }
        let tcp = FlowAsk { connections: 2, write_bytes: SIZES.to_vec(), ..FlowAsk::tcp(version) };
        flows.push(bench.start_flow(&tcp)?);
        flows.push(bench.start_flow(&FlowAsk::udp(version))?);
    }
    let (begun, time) = (Instant::now(), bench.patient(TIME));
    let link = bench.dut.link().to_owned();
    let mut on = false;
    while begun.elapsed() < time {
        on = !on;
        bench.dut.act(LinkAct::SetPromiscuous { link: link.clone(), on })?;
        let pause = Duration::from_millis(bench.rng().between(10, 200));
        bench.sleep(pause)?;
    }
    let mut bytes = 0;
    for flow in &flows {
        let (dut, peer) = bench.finish_flow(flow, Duration::from_secs(20))?;
        bytes += dut.received_bytes + peer.received_bytes;
    }
    bench.measure("compared", bytes as f64, "bytes");
    let after = bench.dut.snapshot()?.carrier_changes;
    if carrier != after {
        bench.fail(ReasonCode::Link, format!("carrier changes went from {carrier:?} to {after:?}"));
    }
    Ok(())
}
