//! VLAN-03: two tags.

use std::time::Duration;

use linerate_model::bench::probe::ProbeId;
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{ETHERNET_BYTES, TAG_BYTES, TPID_CUSTOMER, TPID_SERVICE, out, tag, tagged_probe};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "VLAN-03",
    title: "two tags",
    does: "A service tag before a customer tag, and two customer tags, with full payload both ways.",
    holds: "Tags and bytes are exact.",
    skipped: "",
    source: "DTS qinq",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &["service_customer", "customer_customer", "service_customer_stag_off"],
        limit_s: 30,
        judge,
    },
};

/// Payload without tags that must fit behind two of them.
const FULL_BYTES: u32 = 1500;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    match bench.variant() {
        "service_customer_stag_off" => {
            // Both are one offload for the outer tag; a link without it shows what the other variants do.
            bench.with_setting(Side::Dut, "tx-vlan-stag-hw-insert", "off", |bench| {
                both_ways(bench, TPID_SERVICE)
            })
        }
        "customer_customer" => both_ways(bench, TPID_CUSTOMER),
        _ => both_ways(bench, TPID_SERVICE),
    }
}

fn both_ways(bench: &mut Bench, outer: u16) -> Result<(), Trouble> {
    let longest = room_for_two(bench)? as usize + ETHERNET_BYTES;
    bench.measure("longest frame", longest as f64, "bytes");
    for way in Way::BOTH {
        let lane = bench.packet_lane(way)?;
        let hosts = bench.hosts(way);
        let (run, stream) = (bench.run(), bench.stream());
        let lengths = [64, 65, 68, 128, 509, 1000, longest - 5, longest - 4, longest - 1, longest];
        let mut expected = Vec::new();
        for (n, length) in lengths.into_iter().cycle().take(4 * lengths.len()).enumerate() {
            let n16 = n as u16;
            let (one, two) = (n16 * 101 % 4094 + 1, n16 * 37 % 4094 + 1);
            let tags = [
                tag(outer, n as u8 % 8, n % 2 == 1, one),
                tag(TPID_CUSTOMER, 7 - n as u8 % 8, n % 3 == 1, two),
            ];
            expected.push(tagged_probe(&hosts, &tags, ProbeId { run, stream, sequence: n as u64 }, length));
        }
        let frames: Vec<_> = expected.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &expected, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}

/// Makes both links take full payload behind two tags, where they can: the kernel counts tags as payload of a raw frame, but
/// for one customer tag (packet_snd in net/packet/af_packet.c). Gives the MTU in force.
fn room_for_two(bench: &mut Bench) -> Result<u32, Trouble> {
    let mtu = bench.dut.mtu().min(bench.peer.mtu());
    if mtu != FULL_BYTES {
        return Ok(mtu);
    }
    let larger = FULL_BYTES + 2 * TAG_BYTES as u32;
    for side in [Side::Peer, Side::Dut] {
        if let Err(why) = bench.station(side).try_set("mtu", &larger.to_string())? {
            let name = bench.station(side).name();
            let text = format!("the {name} takes no MTU of {larger}: payload is two tags below full: {why}");
            bench.warn(text);
            return Ok(FULL_BYTES);
        }
    }
    let limit = bench.patient(Duration::from_secs(10));
    if let Err(why) = bench.dut.await_carrier(limit)? {
        bench.fail(ReasonCode::Link, format!("no carrier: {why}"));
    }
    Ok(larger)
}
