//! CSUM-03: checksums of short frames.

use linerate_model::qualification::Level;

use super::deliver;
use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::{SHORTEST_BYTES, Version};
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-03",
    title: "checksums of short frames",
    does: "Short TCP and UDP packets over IPv4 with 0 to 17 bytes of payload, padded with bytes that are \
           not zero, good and bad; and bytes behind longer datagrams.",
    holds: "Padding is in no sum: good packets are delivered and bad ones are not.",
    skipped: "",
    source: "new (hme, r8169)",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["udp", "tcp", "udp_behind", "tcp_behind"], limit_s: 60, judge },
};

/// Payloads whose frames need padding.
const SHORT: usize = 17;
/// Bytes of Ethernet, IPv4 and UDP headers; those of TCP are 12 more.
const UDP_HEADERS: usize = 42;
const TCP_HEADERS: usize = 54;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    bench.allow_growth(&["dut.protocols.*InCsumErrors", "dut.driver.*csum_err*", "dut.driver.*_errors"]);
    let variant = bench.variant().to_owned();
    let is_udp = variant.starts_with("udp");
    let headers = if is_udp { UDP_HEADERS } else { TCP_HEADERS };
    let mut samples = Vec::new();
    if variant.ends_with("behind") {
        for (length, behind) in [(100, 1), (100, 2), (101, 3), (500, 46), (1000, 200)] {
            let (payload, behind) = (bench.rng().bytes(length), dirt(bench, behind));
            samples.extend(deliver::good_and_bad(&payload, &behind));
        }
    } else {
        for length in 0..=SHORT {
            let payload = bench.rng().bytes(length);
            let behind = dirt(bench, SHORTEST_BYTES.saturating_sub(headers + length));
            samples.extend(deliver::good_and_bad(&payload, &behind));
        }
    }
    if is_udp {
        deliver::udp(bench, Version::V4, &samples).map(drop)
    } else {
        deliver::tcp(bench, Version::V4, &samples)
    }
}

/// Padding with something in it: a sum that takes it in is wrong.
fn dirt(bench: &mut Bench, bytes: usize) -> Vec<u8> {
    bench.rng().bytes(bytes).into_iter().map(|byte| byte | 1).collect()
}
