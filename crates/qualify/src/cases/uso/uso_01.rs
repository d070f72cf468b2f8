//! USO-01: UDP segmentation.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::bench::socket::SocketKind;
use linerate_model::bench::{Handle, SocketOptions};
use linerate_model::qualification::{Level, ReasonCode};
use linerate_model::trial::Side;

use crate::bench::Bench;
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "USO-01",
    title: "UDP segmentation",
    does: "1 to 64 segments by UDP_SEGMENT, whole and partial tails, both IP versions, checksums on and off.",
    holds: "Each datagram's length and data is right, and there are as many as there must be.",
    skipped: "Without the offload the stack's own is judged.",
    source: "ksft uso",
    privilege: Privilege::None,
    shown_on: "veth, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered { variants: &["v4", "v6", "v4_tx_off", "v6_tx_off"], limit_s: 30, judge },
};

/// Datagram sizes, and how many of each in a send: whole, and with a last one that is shorter.
const SIZES: [u16; 5] = [1, 100, 536, 1000, 1400];
const COUNTS: [usize; 5] = [1, 2, 3, 17, 45];

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let version = if bench.variant().starts_with("v6") { Version::V6 } else { Version::V4 };
    if bench.variant().ends_with("tx_off") {
        return bench.with_setting(Side::Dut, "tx", "off", |bench| all_sizes(bench, version));
    }
    all_sizes(bench, version)
}

fn all_sizes(bench: &mut Bench, version: Version) -> Result<(), Trouble> {
    let (dut, peer) = bench.addresses(version)?;
    let (receiver, port) = bench.peer.open_socket(options(peer, 0))?;
    let to = Some(SocketAddr::new(peer, port));
    for size in SIZES {
        let (sender, _) = bench.dut.open_socket(options(dut, size))?;
        for count in COUNTS {
            for short in [0, 1] {
                let bytes = (count * usize::from(size)).min(65_000).saturating_sub(short).max(1);
                one_send(bench, sender, receiver, to, (bytes, size.into()))?;
                if !bench.is_clean() {
                    return Ok(());
                }
            }
        }
        bench.dut.close(sender)?;
    }
    Ok(())
}

fn one_send(
    bench: &mut Bench,
    sender: Handle,
    receiver: Handle,
    to: Option<SocketAddr>,
    (bytes, size): (usize, usize),
) -> Result<(), Trouble> {
    let payload = bench.rng().bytes(bytes);
    let sent = bench.dut.send_socket(sender, payload.clone(), to)?;
    if let Some(refusal) = sent.refused.first() {
        bench.fail(ReasonCode::Refused, format!("{bytes} bytes in datagrams of {size}: {}", refusal.reason));
        return Ok(());
    }
    let must: Vec<&[u8]> = payload.chunks(size).collect();
    let idle = bench.patient(Duration::from_millis(250));
    let came = bench.peer.receive_socket(receiver, must.len() as u32, idle, 20 * idle)?;
    let lengths: Vec<usize> = came.iter().map(|one| one.bytes.len()).collect();
    if came.len() != must.len() {
        let text =
            format!("{bytes} bytes in datagrams of {size} came as {}, must be {}", came.len(), must.len());
        bench.fail(ReasonCode::Seg, text);
    } else if let Some(wrong) = came.iter().zip(&must).position(|(got, must)| got.bytes.0 != *must) {
        let text = format!("datagram {wrong} of {} is not what was sent (lengths {lengths:?})", must.len());
        bench.fail(ReasonCode::Data, text);
    }
    Ok(())
}

fn options(address: IpAddr, segment_bytes: u16) -> SocketOptions {
    SocketOptions {
        kind: SocketKind::Udp,
        bind: SocketAddr::new(address, 0),
        connect: None,
        link: None,
        gro: false,
        segment_bytes,
        no_checksum: false,
        groups: Vec::new(),
        dont_fragment: false,
        timestamps: false,
    }
}
