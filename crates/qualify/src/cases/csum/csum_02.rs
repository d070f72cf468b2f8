//! CSUM-02: receive checksums.

use linerate_model::qualification::Level;

use super::deliver;
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-02",
    title: "receive checksums",
    does: "The peer sends TCP and UDP over IPv4 and IPv6 with good and bad checksums: one bit flipped, \
           off by a carry, zero; a tap and a socket read at the dut.",
    holds: "A bad packet is never called good and never reaches a socket; a good one always does, and is \
           called good where receive checksums are on.",
    skipped: "Receive checksums are off and fixed: then only delivery is judged.",
    source: "NICDRV netstat sums, ksft csum, DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "e1000e, igb, hardware; elsewhere only delivery",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["v4_udp", "v6_udp", "v4_tcp", "v6_tcp"], limit_s: 60, judge },
};

/// Every payload up to here, then each 97th up to what fits the MTU.
const EVERY: usize = 80;
/// Headers of IPv6 and TCP, the longest that are sent here.
const HEADERS: usize = 60;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    // The bad ones are counted, as they must be.
    bench.allow_growth(&["dut.protocols.*InCsumErrors", "dut.driver.*csum_err*", "dut.driver.*_errors"]);
    let most = (bench.dut.mtu().min(bench.peer.mtu()) as usize).saturating_sub(HEADERS);
    let lengths: Vec<usize> = (0..=EVERY).chain((EVERY..most).step_by(97)).chain([most]).collect();
    let step = bench.scale().ceil() as usize;
    let mut samples = Vec::new();
    for length in lengths.into_iter().step_by(step) {
        let payload = bench.rng().bytes(length);
        samples.extend(deliver::good_and_bad(&payload, &[]));
    }
    match bench.variant() {
        "v4_udp" => deliver::udp(bench, Version::V4, &samples).map(drop),
        "v6_udp" => deliver::udp(bench, Version::V6, &samples).map(drop),
        "v4_tcp" => deliver::tcp(bench, Version::V4, &samples),
        _ => deliver::tcp(bench, Version::V6, &samples),
    }
}
