//! MTU-02: traffic at each MTU.

use std::time::Duration;

use linerate_link::settings::Allowed;
use linerate_model::bench::{EchoSpec, PortOptions, probe};
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::{Bench, FlowAsk, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, SHORTEST_BYTES, Version, out};
use crate::must::delivery::Rules;
use crate::station::nanoseconds;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "MTU-02",
    title: "traffic at each MTU",
    does: "At each of many MTUs: frames of the 64 longest lengths both ways, pings one byte below, at and \
           above it, and TCP.",
    holds: "Frames of full size pass both ways, one byte more is refused by the sender.",
    skipped: "The MTU is fixed, or the value beyond its bounds.",
    source: "NICDRV, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, e1000, e1000e, igb, vmxnet3, virtio, 8139, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 180, judge },
};

/// The smallest, the usual, and those next to sizes of buffers.
const MTUS: [u64; 24] = [
    46, 60, 68, 576, 1280, 1499, 1500, 1501, 2030, 2034, 2044, 2048, 2052, 2062, 4064, 4078, 4082, 4096,
    4100, 4110, 8192, 9000, 16_000, 65_535,
];
/// Headers of an ICMP echo over IPv4 (RFC 791, RFC 792).
const ECHO_HEADERS: u64 = 28;
/// The smallest MTU that IPv4 works with (RFC 791 section 3.2).
const LEAST_IPV4: u64 = 68;
/// Linux sends no segment below 48 bytes (`tcp_min_snd_mss`), which headers with timestamps bring to 100.
const LEAST_TCP: u64 = 128;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    let bounds = [bounds(bench, Side::Dut)?, bounds(bench, Side::Peer)?];
    let [least, most] = [
        bounds.iter().map(|(least, _)| *least).max().unwrap_or(0),
        bounds.iter().map(|(_, most)| *most).min().unwrap_or(0),
    ];
    let mut mtus: Vec<u64> = MTUS.into_iter().chain([least, most]).collect();
    mtus.retain(|mtu| (least..=most).contains(mtu));
    mtus.sort_unstable();
    mtus.dedup();
    if mtus.len() < 2 {
        return Err(Trouble::no_feature(format!("the MTU is fixed at {most}")));
    }
    bench.measure("MTUs tried", mtus.len() as f64, "");
    for mtu in mtus {
        for side in [Side::Peer, Side::Dut] {
            if let Err(why) = bench.station(side).try_set("mtu", &mtu.to_string())? {
                let name = bench.station(side).name();
                bench.fail(ReasonCode::Refused, format!("{name}: MTU {mtu} is within the bounds: {why}"));
                return Ok(());
            }
        }
        at(bench, mtu)?;
        if !bench.is_clean() {
            bench.warn(format!("the first fault was at MTU {mtu}"));
            return Ok(());
        }
    }
    Ok(())
}

fn bounds(bench: &mut Bench, side: Side) -> Result<(u64, u64), Trouble> {
    match bench.station(side).setting_info("mtu")?.map(|info| info.allowed) {
        Some(Allowed::Number { min, max, .. }) => Ok((min, max)),
        _ => Err(Trouble::not_shown("the kernel does not tell the bounds of the MTU")),
    }
}

fn at(bench: &mut Bench, mtu: u64) -> Result<(), Trouble> {
    let limit = bench.patient(Duration::from_secs(10));
    for side in [Side::Dut, Side::Peer] {
        if let Err(why) = bench.station(side).await_carrier(limit)? {
            bench.fail(ReasonCode::Link, format!("no carrier at MTU {mtu}: {why}"));
            return Ok(());
        }
    }
    for way in Way::BOTH {
        longest_frames(bench, way, mtu as usize + ETHERNET_BYTES)?;
    }
    if mtu >= LEAST_IPV4 && bench.addresses(Version::V4).is_ok() {
        echoes(bench, mtu)?;
        if mtu >= LEAST_TCP {
            // Paced: of a tiny MTU's segments whole seconds would wait in the sockets' buffers.
            let duration = bench.patient(Duration::from_millis(100));
            let ask = FlowAsk { duration, bits_per_second: mtu * 8 * 1000, ..FlowAsk::tcp(Version::V4) };
            bench.run_flow(&ask)?;
        }
    }
    Ok(())
}

/// The 64 longest lengths arrive; one byte more does not leave.
fn longest_frames(bench: &mut Bench, way: Way, longest: usize) -> Result<(), Trouble> {
    let largest_bytes = (longest + 64) as u32;
    let into =
        PortOptions { ether_type: probe::ETHER_TYPE, largest_bytes, slots: 256, ..PortOptions::default() };
    let lane = bench.lane_with(way, PortOptions::default(), into)?;
    let hosts = bench.hosts(way);
    let lengths: Vec<usize> = (longest.saturating_sub(63).max(SHORTEST_BYTES)..=longest).collect();
    let probes = bench.probes(&hosts, &lengths);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(&lane, &frames)?;
    bench.judge(&lane, &probes, &arrived, Rules::default());
    let beyond = bench.probes(&hosts, &[longest + 1]).into_iter().map(out).collect::<Vec<_>>();
    let arrived = bench.try_exchange(&lane, &beyond, 0)?;
    if arrived.sent.refused.is_empty() && way == Way::ToPeer {
        let text =
            format!("a frame of {} bytes was sent with an MTU of {}", longest + 1, longest - ETHERNET_BYTES);
        bench.fail(ReasonCode::Accepted, text);
    }
    bench.close_lane(&lane)
}

/// One byte below and at the MTU there are answers; one above it cannot be sent whole.
fn echoes(bench: &mut Bench, mtu: u64) -> Result<(), Trouble> {
    let (_, to) = bench.addresses(Version::V4)?;
    let whole = (mtu - ECHO_HEADERS).min(65_507) as u32;
    let mut payloads_bytes = vec![whole.saturating_sub(1), whole];
    payloads_bytes.extend((whole < 65_507).then_some(whole + 1));
    let beyond = payloads_bytes.get(2).copied();
    let spec = EchoSpec {
        to,
        link: None,
        payloads_bytes,
        rounds: 1,
        in_flight: 1,
        gap_ns: 0,
        timeout_ns: nanoseconds(bench.patient(Duration::from_secs(1))),
        dont_fragment: true,
        seed: 1,
    };
    let report = bench.dut.echo(spec)?;
    if report.answered != 2 || report.wrong > 0 {
        let text = format!(
            "MTU {mtu}: {} of 2 pings of full size were answered, {} wrong",
            report.answered, report.wrong
        );
        bench.fail(ReasonCode::Loss, text);
    }
    if let Some(beyond) = beyond
        && !report.refused.iter().any(|(bytes, errno)| *bytes == beyond && *errno == nix::libc::EMSGSIZE)
    {
        bench.fail(ReasonCode::Accepted, format!("MTU {mtu}: a ping one byte too long was not refused"));
    }
    Ok(())
}
