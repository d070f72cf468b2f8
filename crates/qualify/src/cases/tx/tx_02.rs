//! TX-02: runts and what pads them.

use std::time::Duration;

use linerate_model::bench::probe;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Arrived, Bench, Lane, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, Hosts, SHORTEST_BYTES, ethernet, out};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "TX-02",
    title: "runts and what pads them",
    does: "The dut sends a long frame of 0x5a, then one of 14 to 59 bytes of 0xa5, for each length, four \
           rounds.",
    holds: "On the wire frames have at least 60 bytes, and every byte of padding is zero.",
    skipped: "The medium carries runts as they are: then only padding that is there is judged.",
    source: "NICDRV test02; new",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 60, judge },
};

const ROUNDS: usize = 4;
/// Frames whose bytes may turn up behind a runt.
const LONG_BYTES: usize = 1400;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    let lane = bench.lane(Way::ToPeer)?;
    let hosts = bench.hosts(Way::ToPeer);
    for _ in 0..bench.count(ROUNDS, 1) {
        for length in ETHERNET_BYTES..SHORTEST_BYTES {
            long_then_short(bench, &lane, &hosts, length)?;
            if !bench.is_clean() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Behind the long frame the short one takes the next place in the ring, or the same buffer.
fn long_then_short(bench: &mut Bench, lane: &Lane, hosts: &Hosts, length: usize) -> Result<(), Trouble> {
    let frame = |byte: u8, length: usize| {
        let payload = vec![byte; length - ETHERNET_BYTES];
        ethernet(hosts.to_mac, hosts.from_mac, &[], probe::ETHER_TYPE, &payload)
    };
    let expected = vec![frame(0x5a, LONG_BYTES), frame(0xa5, length)];
    let frames: Vec<_> = expected.iter().cloned().map(out).collect();
    let idle = bench.patient(Duration::from_millis(250));
    let sent = bench.dut.send(&lane.out, &frames)?;
    if let Some(refusal) = sent.refused.first() {
        let text = format!("a frame of {length} bytes was refused: {}", refusal.reason);
        bench.fail(ReasonCode::Refused, text);
    }
    let (frames, _) = bench.peer.receive_within(&lane.into, expected.len(), idle, 20 * idle)?;
    // Emulators and virtual links carry runts as they are; a real wire does not.
    let padded = matches!(bench.medium(), "cable" | "switch");
    bench.judge(lane, &expected, &Arrived { sent, frames }, Rules { padded, ..Rules::default() });
    Ok(())
}
