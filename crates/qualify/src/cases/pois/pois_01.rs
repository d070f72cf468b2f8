//! POIS-01: hostile frames.

use linerate_model::qualification::Level;

use crate::bench::{Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Extension, Packet, Version, ethernet, out};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "POIS-01",
    title: "hostile frames",
    does: "Known killing patterns, lying length fields, every EtherType, empty datagrams, the most \
           options, random frames.",
    holds: "Nothing hangs, the dut lives, good traffic is unharmed.",
    skipped: "",
    source: "UNH 4.1.4; new",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &["patterns", "lengths", "ether_types", "packets", "random"],
        limit_s: 120,
        judge,
    },
};

/// Where the byte stood that stopped the 82574L.
const DEADLY_AT: usize = 0x47f;
const RANDOM: usize = 50_000;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    // Wrong frames are counted wherever they are found to be.
    bench.allow_growth(&["dut.link.rx_*", "dut.driver.*", "dut.protocols.*"]);
    let lane = bench.lane(Way::ToDut)?;
    let hosts = bench.hosts(Way::ToDut);
    let (to, from) = (hosts.to_mac, hosts.from_mac);
    let frames: Vec<Vec<u8>> = match bench.variant() {
        "patterns" => (0..=255_u8)
            .map(|byte| {
                let mut frame = ethernet(to, from, &[], 0x0800, &[0x45; 1400]);
                frame[DEADLY_AT] = byte;
                frame
            })
            .collect(),
        // IEEE Std 802.3: up to 1500 it is a length; here it lies.
        "lengths" => {
            (0..=1500_u16).step_by(3).map(|length| ethernet(to, from, &[], length, &[0xaa; 100])).collect()
        }
        "ether_types" => {
            let step = bench.scale().ceil() as usize;
            (1536..=u16::MAX)
                .step_by(step)
                .filter(|kind| *kind != 0x88b5)
                .map(|kind| ethernet(to, from, &[], kind, &[0x5a; 50]))
                .collect()
        }
        "packets" => wrong_packets(bench),
        _ => {
            let count = bench.count(RANDOM, 500);
            (0..count).map(|_| random_frame(bench)).collect()
        }
    };
    for part in frames.chunks(2048) {
        bench.check()?;
        let sent: Vec<_> = part.iter().cloned().map(out).collect();
        bench.peer.send(&lane.out, &sent)?;
        good_ones_pass(bench, &lane)?;
        if !bench.is_clean() {
            return Ok(());
        }
    }
    bench.measure("frames", frames.len() as f64, "frames");
    Ok(())
}

/// The capture sees only the suite's own EtherType.
fn good_ones_pass(bench: &mut Bench, lane: &Lane) -> Result<(), Trouble> {
    let hosts = bench.hosts(Way::ToDut);
    let probes = bench.probes(&hosts, &[60, 61, 500, 1400]);
    let frames: Vec<_> = probes.iter().cloned().map(out).collect();
    let arrived = bench.exchange(lane, &frames)?;
    bench.judge(lane, &probes, &arrived, Rules::default());
    Ok(())
}

/// Datagrams that are empty, shorter or longer than they say, with all the options there can be.
fn wrong_packets(bench: &mut Bench) -> Vec<Vec<u8>> {
    let hosts = bench.real_hosts(Way::ToDut);
    let mut frames = Vec::new();
    for version in [Version::V4, Version::V6] {
        for payload in [0, 1, 40, 1000] {
            let whole = Packet::udp(&hosts, version, vec![7; payload]);
            let frame = whole.frame();
            for length in [0, 1, 7, 20, 0x7fff, 0xffff_u16] {
                let mut lying = frame.clone();
                // Total length of IPv4, payload length of IPv6.
                let at = if version == Version::V4 { 16 } else { 18 };
                lying[at..at + 2].copy_from_slice(&length.to_be_bytes());
                frames.push(lying);
            }
            for end in [14, 15, 20, 33, 34, 41] {
                frames.push(frame[..end.min(frame.len())].to_vec());
            }
            let mut loaded = whole.clone();
            if let Some(ip) = loaded.v4() {
                ip.options = vec![0x83; 40];
            }
            if let Some(ip) = loaded.v6() {
                ip.extensions = vec![Extension::padding(0, 8), Extension::padding(60, 1000)];
            }
            frames.push(loaded.frame());
        }
    }
    frames
}

/// Random bytes, or a good packet with a few bytes changed.
fn random_frame(bench: &mut Bench) -> Vec<u8> {
    let hosts = bench.real_hosts(Way::ToDut);
    let length = bench.rng().between(0, 1400) as usize;
    if bench.rng().below(2) == 0 {
        let kind = bench.rng().below(1 << 16) as u16;
        let payload = bench.rng().bytes(length);
        return ethernet(hosts.to_mac, hosts.from_mac, &[], if kind == 0x88b5 { 0 } else { kind }, &payload);
    }
    let version = if bench.rng().below(2) == 0 { Version::V4 } else { Version::V6 };
    let mut frame = Packet::tcp(&hosts, version, vec![0x33; length]).frame();
    for _ in 0..bench.rng().between(1, 4) {
        let at = bench.rng().between(14, frame.len() as u64 - 1) as usize;
        frame[at] = bench.rng().below(256) as u8;
    }
    frame
}
