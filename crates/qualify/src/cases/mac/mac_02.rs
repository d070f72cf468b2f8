//! MAC-02: where the address comes from.

use linerate_model::bench::LinkAct;
use linerate_model::bench::frame::MacAddress;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::out;
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "MAC-02",
    title: "where the address comes from",
    does: "How the address was assigned, whether ports share it, whether it stays.",
    holds: "The kernel's word fits the address; no two links of the machine share it by chance.",
    skipped: "",
    source: "ksft",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 30, judge },
};

/// How an address was assigned (`NET_ADDR_*` in include/uapi/linux/netdevice.h).
const RANDOM: &str = "1";
const SET: &str = "3";
/// A locally administered address (IEEE Std 802c).
const NEW: MacAddress = [0x02, 0x4c, 0x52, 0x4d, 0x41, 0x43];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let mac = bench.dut.mac();
    if mac == MacAddress::default() || mac[0] & 1 == 1 {
        bench.fail(ReasonCode::Data, format!("the address {} is none that a link may have", words(mac)));
    }
    unique(bench, mac)?;
    let is_told = assigned(bench)?;
    match &is_told {
        None => bench.warn("how the address was assigned is not told: /sys is that of another namespace"),
        Some(how) if how == RANDOM && mac[0] & 2 == 0 => {
            let text = format!("{} was drawn at random and is not locally administered", words(mac));
            bench.fail(ReasonCode::Data, text);
        }
        Some(_) => {}
    }
    let link = bench.dut.link().to_owned();
    if let Err(why) = bench.dut.try_act(LinkAct::SetMac { link: link.clone(), mac: NEW })? {
        // MAC-01 judges that.
        bench.warn(format!("another address was refused: {why}"));
        return Ok(());
    }
    if is_told.is_some() && assigned(bench)?.as_deref() != Some(SET) {
        bench.fail(ReasonCode::Readback, "an address that was set is not told to be one");
    }
    is_in_force(bench)?;
    bench.dut.act(LinkAct::SetMac { link, mac })
}

/// No two links of a kind of their own have it: those on top of others share it by design.
fn unique(bench: &mut Bench, mac: MacAddress) -> Result<(), Trouble> {
    let (text, name) = (words(mac), bench.dut.link().to_owned());
    let others = bench.dut.links()?;
    let others = others.iter().filter(|link| link.name != name && link.kind.is_none() && !link.loopback);
    let shared: Vec<&str> =
        others.filter(|link| link.mac.as_deref() == Some(&text)).map(|link| link.name.as_str()).collect();
    if !shared.is_empty() {
        bench.fail(ReasonCode::Data, format!("{name} shares its address {text} with {}", shared.join(", ")));
    }
    if bench.peer.mac() == mac {
        bench.fail(ReasonCode::Data, format!("both ends have the address {text}"));
    }
    Ok(())
}

/// How the address was assigned; `None` where /sys does not show this link.
fn assigned(bench: &mut Bench) -> Result<Option<String>, Trouble> {
    let folder = format!("/sys/class/net/{}", bench.dut.link());
    let shown = bench.dut.read_file(&format!("{folder}/address"))?;
    let now = bench.dut.link_now()?.and_then(|link| link.mac);
    if shown.as_deref().map(str::trim) != now.as_deref() {
        return Ok(None);
    }
    Ok(bench.dut.read_file(&format!("{folder}/addr_assign_type"))?.map(|text| text.trim().to_owned()))
}

fn is_in_force(bench: &mut Bench) -> Result<(), Trouble> {
    let limit = bench.patient(std::time::Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier after a new address: {why}"));
    }
    let lane = bench.lane(Way::ToDut)?;
    let mut hosts = bench.hosts(Way::ToDut);
    hosts.to_mac = NEW;
    let probes = bench.probes(&hosts, &[60; 16]);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    bench.close_lane(&lane)
}

fn words(mac: MacAddress) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
