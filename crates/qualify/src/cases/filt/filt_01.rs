//! FILT-01: unicast filter.

use linerate_model::bench::act::LinkKind;
use linerate_model::bench::frame::MacAddress;
use linerate_model::bench::{LinkAct, PortOptions};
use linerate_model::qualification::{Level, ReasonCode};

use super::{count_arrivals, needs_filter};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::BROADCAST;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-01",
    title: "unicast filter",
    does: "Frames to the dut's own address, to another's, to all, and to a macvlan's; promiscuous mode \
           off, on, and off.",
    holds: "Frames to others are not seen unless promiscuous, and then all are; two users of the mode are \
           counted.",
    skipped: "The link has no receive filter (veth).",
    source: "ksft local_termination, DTS promiscuous, NICDRV, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 30, judge },
};

const FRAMES: usize = 100;
/// Nobody's: locally administered.
const FOREIGN: MacAddress = [0x02, 0x4c, 0x52, 0x00, 0x00, 0x77];
/// A macvlan's.
const SECOND: MacAddress = [0x02, 0x4c, 0x52, 0x00, 0x00, 0x02];
const MACVLAN: &str = "lr-mv0";

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    needs_filter(bench)?;
    let own = bench.dut.mac();
    let link = bench.dut.link().to_owned();
    let promiscuous = |on| LinkAct::SetPromiscuous { link: link.clone(), on };
    expect(bench, "its own address", own, FRAMES)?;
    expect(bench, "all", BROADCAST, FRAMES)?;
    expect(bench, "another's address", FOREIGN, 0)?;
    bench.dut.act(promiscuous(true))?;
    expect(bench, "another's address, promiscuous", FOREIGN, FRAMES)?;
    // A second user of the mode comes and goes: the first still has it.
    let second = bench.dut.open_port(PortOptions { promiscuous: true, ..PortOptions::default() })?;
    bench.dut.close(second.handle)?;
    expect(bench, "another's address, promiscuous after a second user left", FOREIGN, FRAMES)?;
    bench.dut.act(promiscuous(false))?;
    expect(bench, "another's address, no longer promiscuous", FOREIGN, 0)?;
    macvlan(bench)
}

fn macvlan(bench: &mut Bench) -> Result<(), Trouble> {
    let kind = LinkKind::Macvlan { link: bench.dut.link().to_owned(), mac: SECOND };
    if let Err(why) = bench.dut.try_act(LinkAct::Make { name: MACVLAN.to_owned(), kind })? {
        bench.warn(format!("a second address was not tried: the kernel has no macvlan: {why}"));
        return Ok(());
    }
    bench.dut.act(LinkAct::SetUp { link: MACVLAN.to_owned(), up: true })?;
    expect(bench, "a macvlan's address", SECOND, FRAMES)?;
    bench.dut.act(LinkAct::Remove { name: MACVLAN.to_owned() })?;
    expect(bench, "the address of a macvlan that is gone", SECOND, 0)
}

/// All of the frames, or none.
fn expect(bench: &mut Bench, what: &str, to: MacAddress, must: usize) -> Result<(), Trouble> {
    let came = count_arrivals(bench, &[to; FRAMES])?.into_iter().filter(|came| *came).count();
    if came != must {
        let code = if came > must { ReasonCode::FilterLeak } else { ReasonCode::FilterMiss };
        bench.fail(code, format!("to {what}: {came} of {FRAMES} frames were received, must be {must}"));
    }
    Ok(())
}
