//! After each case: does the link still carry traffic both ways (ground rule G5)? If not: can it be brought back?

use std::time::Duration;

use linerate_model::bench::{BenchRequest, EchoSpec, FrameOut};
use linerate_model::qualification::ReasonCode;
use linerate_model::trial::Side;

use crate::bench::{Bench, Way};
use crate::finding::Findings;
use crate::frame::{Version, out};
use crate::must::delivery::Rules;
use crate::station::nanoseconds;
use crate::trouble::Trouble;

const PINGS: u32 = 10;
const FRAMES: usize = 64;

/// What became of the link.
pub(crate) enum Life {
    /// It carries traffic.
    Alive,
    /// It did not, and does again after this.
    Recovered(&'static str),
    /// It does not.
    Dead,
}

/// Looks, and tries to bring the link back where needed. Faults are added to the case.
pub(crate) fn check(bench: &mut Bench, disruptive: bool) -> Result<Life, Trouble> {
    let faults = look(bench)?;
    if faults.is_clean() {
        return Ok(Life::Alive);
    }
    let code = if faults.has(ReasonCode::StuckTx) { ReasonCode::StuckTx } else { ReasonCode::StuckRx };
    let told: Vec<String> = faults.into_faults().into_iter().take(3).map(|fault| fault.text).collect();
    bench.fail(code, format!("the link is not as before after the case: {}", told.join("; ")));
    // It may only need a moment: a carrier that comes back, a neighbour that is asked for again.
    bench.sleep(Duration::from_secs(2))?;
    if look(bench)?.is_clean() {
        return Ok(Life::Recovered("two seconds of waiting"));
    }
    if !disruptive {
        return Ok(Life::Dead);
    }
    for side in [Side::Dut, Side::Peer] {
        let limit = bench.patient(Duration::from_secs(10));
        let station = bench.station(side);
        station.set_up(false)?;
        station.set_up(true)?;
        // Without carrier the look below tells.
        let _ = station.await_carrier(limit)?;
        bench.sleep(Duration::from_millis(200))?;
        if look(bench)?.is_clean() {
            return Ok(Life::Recovered(match side {
                Side::Dut => "taking the dut's link down and up",
                Side::Peer => "taking the peer's link down and up",
            }));
        }
    }
    Ok(Life::Dead)
}

/// Pings and probe frames each way; faults are given apart from the case's own.
fn look(bench: &mut Bench) -> Result<Findings, Trouble> {
    let own = std::mem::take(&mut bench.findings);
    let looked = Way::BOTH
        .into_iter()
        .try_for_each(|way| frames(bench, way))
        .and_then(|()| [Side::Dut, Side::Peer].into_iter().try_for_each(|side| pings(bench, side)));
    let faults = std::mem::replace(&mut bench.findings, own);
    looked.map(|()| faults)
}

fn frames(bench: &mut Bench, way: Way) -> Result<(), Trouble> {
    let lane = bench.lane(way)?;
    let hosts = bench.hosts(way);
    let probes = bench.probes(&hosts, &[128; FRAMES]);
    let frames: Vec<FrameOut> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    if arrived.frames.is_empty() {
        let code = if way == Way::ToPeer { ReasonCode::StuckTx } else { ReasonCode::StuckRx };
        bench.fail(code, format!("no frame arrives, {}", way.words()));
    }
    bench.close_lane(&lane)
}

fn pings(bench: &mut Bench, side: Side) -> Result<(), Trouble> {
    let version = [Version::V4, Version::V6].into_iter().find(|version| bench.addresses(*version).is_ok());
    let Some(version) = version else { return Ok(()) };
    let (dut, peer) = bench.addresses(version)?;
    let to = if side == Side::Dut { peer } else { dut };
    let timeout_ns = nanoseconds(bench.patient(Duration::from_secs(1)));
    let station = bench.station(side);
    let spec = EchoSpec {
        to,
        link: Some(station.link().to_owned()),
        payloads_bytes: vec![56],
        rounds: PINGS,
        in_flight: 4,
        gap_ns: 0,
        timeout_ns,
        dont_fragment: false,
        seed: 5,
    };
    let reply = station.try_ask(&BenchRequest::Echo(spec))?;
    let name = station.name();
    match reply {
        Ok(linerate_model::bench::BenchReply::Echoes(report)) if report.answered == u64::from(PINGS) => {}
        Ok(linerate_model::bench::BenchReply::Echoes(report)) => {
            let text = format!("{} of {PINGS} pings of the {name} answered", report.answered);
            bench.fail(ReasonCode::Loss, text);
        }
        Ok(_) => return Err(Trouble::harness("send echoes: unexpected answer")),
        Err(why) => bench.fail(ReasonCode::Loss, format!("pings of the {name}: {why}")),
    }
    Ok(())
}
