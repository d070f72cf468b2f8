//! CSUM-06: IPv4 header checksum.

use std::time::Duration;

use linerate_model::bench::frame::ChecksumWord;
use linerate_model::bench::socket::SocketKind;
use linerate_model::qualification::{Level, ReasonCode};

use super::deliver;
use crate::bench::{Bench, Way};
use crate::case::{Case, Privilege, Run};
use crate::frame::{Packet, Transport, Udp, Version, out};
use crate::must::count::growth;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "CSUM-06",
    title: "IPv4 header checksum",
    does: "Packets with a wrong IP header checksum and a right one behind it.",
    holds: "They reach no socket, are counted, and are not called good.",
    skipped: "",
    source: "DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &[], limit_s: 30, judge },
};

const PACKETS: usize = 50;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    bench.unmerged_dut()?;
    bench.allow_growth(&["dut.protocols.Ip.InHdrErrors", "dut.protocols.IpExt.InCsumErrors", "dut.driver.*"]);
    let (dut, _) = bench.addresses(Version::V4)?;
    let (socket, port) = bench.dut.open_socket(deliver::options(SocketKind::Udp, dut))?;
    let lane = bench.packet_lane(Way::ToDut)?;
    let hosts = bench.real_hosts(Way::ToDut);
    let frames: Vec<_> = (0..PACKETS)
        .map(|index| {
            let mut packet = Packet::udp(&hosts, Version::V4, vec![index as u8; 64]);
            packet.transport = Transport::Udp(Udp { from: 20_000, to: port, wrong_length: None });
            let frame = packet.frame();
            let right = u16::from_be_bytes([frame[24], frame[25]]);
            if let Some(ip) = packet.v4() {
                ip.wrong_sum = Some(right ^ (1 << (index % 16)));
            }
            out(packet.frame())
        })
        .collect();
    let before = bench.dut.settled_snapshot()?;
    bench.peer.send(&lane.out, &frames)?;
    let idle = bench.patient(Duration::from_millis(200));
    let came = bench.dut.receive_socket(socket, PACKETS as u32, idle, 10 * idle)?;
    let seen = bench.dut.receive_within(&lane.into, PACKETS, idle, 10 * idle)?.0;
    let after = bench.dut.settled_snapshot()?;
    if !came.is_empty() {
        let text =
            format!("{} of {PACKETS} packets with a wrong header checksum reached a socket", came.len());
        bench.fail(ReasonCode::CsumFalseOk, text);
    }
    let marked = seen.iter().filter(|frame| frame.checksum == ChecksumWord::Valid).count();
    if marked > 0 {
        bench.fail(ReasonCode::CsumFalseOk, format!("{marked} of {PACKETS} were called good by the driver"));
    }
    // What the card threw away itself never came to be counted by IP.
    let counted = growth(&before.protocols, &after.protocols, "Ip.InHdrErrors").unwrap_or(0);
    if counted < seen.len() as i64 {
        let text = format!(
            "{} packets with a wrong header checksum came, InHdrErrors grew by {counted}",
            seen.len()
        );
        bench.fail(ReasonCode::Count, text);
    }
    Ok(())
}
