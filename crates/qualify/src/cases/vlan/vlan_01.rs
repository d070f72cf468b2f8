//! VLAN-01: VLAN tags both ways.

use linerate_model::bench::act::LinkKind;
use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::bench::{LinkAct, PortOptions};
use linerate_model::qualification::Level;
use linerate_model::trial::Side;

use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Hosts, TPID_CUSTOMER, ethernet, out, tag, tagged_probe};
use crate::must::delivery::Rules;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "VLAN-01",
    title: "VLAN tags both ways",
    does: "Tags of eight ids with all priorities and the drop bit, with tag insertion and stripping on \
           and off, as raw frames and by VLAN links.",
    holds: "The tag on the wire, and the one received, is exactly the one sent, once; priority tags reach \
           the link itself.",
    skipped: "Without VLAN links in the kernel only raw frames are judged.",
    source: "NICDRV test08, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &["raw", "raw_rxvlan_off", "raw_txvlan_off", "link", "link_rxvlan_off", "link_txvlan_off"],
        limit_s: 30,
        judge,
    },
};

const IDS: [u16; 8] = [0, 1, 2, 5, 100, 1000, 4093, 4094];
/// The id of the VLAN link.
const ID: u16 = 100;
const LINK: &str = "lr-v100";

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.neutral_peer()?;
    bench.unmerged_dut()?;
    let variant = bench.variant().to_owned();
    let by_link = variant.starts_with("link");
    let part = if by_link { vlan_link } else { raw };
    match variant.split_once('_') {
        None => part(bench),
        Some((_, setting)) => {
            let key = setting.trim_end_matches("_off");
            bench.with_setting(Side::Dut, key, "off", part)
        }
    }
}

/// Every id with every priority and drop bit, both ways.
fn raw(bench: &mut Bench) -> Result<(), Trouble> {
    for way in Way::BOTH {
        let lane = bench.packet_lane(way)?;
        let hosts = bench.hosts(way);
        let (run, stream) = (bench.run(), bench.stream());
        let mut expected = Vec::new();
        for id in IDS {
            for bits in 0..16_u8 {
                let tags = [tag(TPID_CUSTOMER, bits >> 1, bits & 1 == 1, id)];
                let probe = ProbeId { run, stream, sequence: expected.len() as u64 };
                expected.push(tagged_probe(&hosts, &tags, probe, 64 + usize::from(bits) * 90));
            }
        }
        let frames: Vec<_> = expected.iter().cloned().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &expected, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}

/// A VLAN link at the dut: what it sends has the tag, and of what the peer sends it gets its own, without the tag.
fn vlan_link(bench: &mut Bench) -> Result<(), Trouble> {
    let kind = LinkKind::Vlan { link: bench.dut.link().to_owned(), id: ID, protocol: TPID_CUSTOMER };
    if let Err(why) = bench.dut.try_act(LinkAct::Make { name: LINK.to_owned(), kind })? {
        return Err(Trouble::not_shown(format!("the dut's kernel has no VLAN links: {why}")));
    }
    bench.dut.act(LinkAct::SetUp { link: LINK.to_owned(), up: true })?;
    for way in Way::BOTH {
        let on_link = PortOptions { link: LINK.to_owned(), ..PortOptions::default() };
        let plain = PortOptions::default();
        let lane = match way {
            Way::ToPeer => bench.lane_with(way, on_link, plain)?,
            Way::ToDut => {
                let into = PortOptions { ether_type: probe::ETHER_TYPE, ..on_link };
                bench.lane_with(way, plain, into)?
            }
        };
        let hosts = bench.hosts(way);
        let lengths: Vec<usize> = (64..=1500).step_by(37).collect();
        let untagged = bench.probes(&hosts, &lengths);
        let tagged: Vec<Vec<u8>> = untagged.iter().map(|frame| with_tag(frame, &hosts)).collect();
        let (send, expected) = match way {
            Way::ToPeer => (untagged, tagged),
            Way::ToDut => (tagged, untagged),
        };
        let frames: Vec<_> = send.into_iter().map(out).collect();
        let arrived = bench.exchange(&lane, &frames)?;
        bench.judge(&lane, &expected, &arrived, Rules::default());
        bench.close_lane(&lane)?;
    }
    Ok(())
}

fn with_tag(frame: &[u8], hosts: &Hosts) -> Vec<u8> {
    let tags = [tag(TPID_CUSTOMER, 0, false, ID)];
    ethernet(hosts.to_mac, hosts.from_mac, &tags, probe::ETHER_TYPE, &frame[14..])
}
