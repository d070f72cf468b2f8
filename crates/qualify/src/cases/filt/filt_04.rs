//! FILT-04: more unicast addresses.

use linerate_model::bench::PortOptions;
use linerate_model::bench::frame::MacAddress;
use linerate_model::qualification::{Level, ReasonCode};

use super::{count_arrivals, needs_filter};
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "FILT-04",
    title: "more unicast addresses",
    does: "1 to 600 additional addresses, beyond what the filter holds.",
    holds: "Each is received; when the filter is full the link takes all; when they are removed it filters \
           again.",
    skipped: "The link has no receive filter (veth).",
    source: "DTS mac_filter, ksft",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, virtio, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

/// Numbers of addresses: below, at and beyond what filters of common cards hold.
const NUMBERS: [usize; 7] = [1, 4, 15, 16, 64, 128, 600];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    needs_filter(bench)?;
    // Of those that nobody asks for, a card may let some pass while its filter is full, and none before and after.
    let foreign: Vec<MacAddress> = (0..16).map(|n| [0x02, 0x4c, 0x52, 0xff, 0, n]).collect();
    let before = received(bench, &foreign)?;
    if before > 0 {
        bench.fail(
            ReasonCode::FilterLeak,
            format!("{before} of {} foreign frames are received", foreign.len()),
        );
    }
    for number in NUMBERS {
        let macs: Vec<MacAddress> = (0..number).map(second).collect();
        let port = bench.dut.open_port(PortOptions { unicast: macs.clone(), ..PortOptions::default() })?;
        let came = count_arrivals(bench, &macs)?;
        bench.dut.close(port.handle)?;
        let lost = came.iter().filter(|came| !**came).count();
        if lost > 0 {
            let first = came.iter().position(|came| !came).unwrap_or_default();
            let text =
                format!("of {number} more addresses {lost} are not received; the first is number {first}");
            bench.fail(ReasonCode::FilterMiss, text);
            return Ok(());
        }
        let still = received(bench, &macs)?;
        if still > 0 {
            let text = format!("of {number} addresses that are removed {still} are still received");
            bench.fail(ReasonCode::FilterLeak, text);
        }
    }
    let after = received(bench, &foreign)?;
    if after > 0 {
        let text = format!("{after} of {} foreign frames are received after all were removed", foreign.len());
        bench.fail(ReasonCode::FilterLeak, text);
    }
    Ok(())
}

/// Addresses that differ in both of their low bytes, so that they do not fall in one bucket.
fn second(n: usize) -> MacAddress {
    let [high, low] = (n as u16).to_be_bytes();
    [0x02, 0x4c, 0x52, 0x01 + high, low, (n as u8).wrapping_mul(29)]
}

fn received(bench: &mut Bench, to: &[MacAddress]) -> Result<usize, Trouble> {
    Ok(count_arrivals(bench, to)?.into_iter().filter(|came| *came).count())
}
