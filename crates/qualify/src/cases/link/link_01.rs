//! LINK-01: what is told of the link.

use std::time::Duration;

use linerate_model::environment::LinkInfo;
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::station::Station;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "LINK-01",
    title: "what is told of the link",
    does: "Carrier, operational state, speed, duplex and autonegotiation by netlink, ioctl and sysfs, and \
           the peer's view.",
    holds: "All agree; carrier does not change for a while.",
    skipped: "A virtual link tells no speed.",
    source: "NICDRV test06, rhcert, ksft",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 30, judge },
};

/// How long the carrier is watched.
const WATCHED: Duration = Duration::from_secs(2);

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let before = bench.dut.snapshot()?.carrier_changes;
    for side in [Side::Dut, Side::Peer] {
        let faults = contradictions(bench.station(side))?;
        let name = bench.station(side).name();
        for fault in faults {
            bench.fail(ReasonCode::Link, format!("{name}: {fault}"));
        }
    }
    same_speed(bench)?;
    bench.sleep(WATCHED)?;
    let after = bench.dut.snapshot()?.carrier_changes;
    if before != after {
        bench.fail(
            ReasonCode::Link,
            format!("carrier changes went from {before:?} to {after:?} in {WATCHED:?}"),
        );
    }
    Ok(())
}

/// What netlink and sysfs tell differently. A file that cannot be read is told by EINVAL while a driver does not know.
fn contradictions(station: &mut Station) -> Result<Vec<String>, Trouble> {
    let Some(link) = station.describe()? else {
        return Ok(vec![format!("netlink does not know {}", station.link())]);
    };
    let folder = format!("/sys/class/net/{}", link.name);
    let mut faults = Vec::new();
    if !link.carrier {
        faults.push("netlink tells no carrier".to_owned());
    }
    let told = [
        ("ifindex", Some(link.index.to_string())),
        ("mtu", Some(link.mtu.to_string())),
        ("carrier", Some(u8::from(link.carrier).to_string())),
        ("address", link.mac.clone()),
        ("speed", link.speed_mbit.map(|speed| speed.to_string())),
        ("duplex", link.duplex),
    ];
    for (file, netlink) in told {
        let Some(sysfs) = station.read_file(&format!("{folder}/{file}"))? else { continue };
        let sysfs = sysfs.trim();
        let unknown = sysfs == "-1" || sysfs == "unknown" || sysfs == "4294967295";
        match netlink {
            Some(netlink) if netlink != sysfs => {
                faults.push(format!("{file} is {netlink} by netlink and {sysfs} by sysfs"));
            }
            None if !unknown => faults.push(format!("{file} is unknown by netlink and {sysfs} by sysfs")),
            _ => {}
        }
    }
    if let Some(state) = station.read_file(&format!("{folder}/operstate"))?
        && !matches!(state.trim(), "up" | "unknown")
    {
        faults.push(format!("operational state is {} with carrier", state.trim()));
    }
    Ok(faults)
}

/// Both ends of a cable run at one speed and, but for a broken negotiation, one duplex.
fn same_speed(bench: &mut Bench) -> Result<(), Trouble> {
    let (Some(dut), Some(peer)) = (bench.dut.describe()?, bench.peer.describe()?) else { return Ok(()) };
    if let Some(speed) = dut.speed_mbit {
        bench.measure("speed", f64::from(speed), "Mbit/s");
    } else {
        bench.warn("the driver tells no speed");
    }
    // Behind a switch, a hub or an emulator each end has a speed of its own.
    if bench.medium() != "cable" {
        return Ok(());
    }
    if dut.speed_mbit != peer.speed_mbit || dut.duplex != peer.duplex {
        let words = |link: &LinkInfo| format!("{:?} Mbit/s {:?}", link.speed_mbit, link.duplex);
        bench.fail(ReasonCode::Link, format!("dut runs at {}, peer at {}", words(&dut), words(&peer)));
    }
    Ok(())
}
