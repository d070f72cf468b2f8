//! TX-03: scattered buffers.

use std::time::Duration;

use linerate_model::bench::flow::FlowMethod;
use linerate_model::qualification::Level;
use linerate_model::trial::Side;

use crate::bench::{Bench, FlowAsk};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "TX-03",
    title: "scattered buffers",
    does: "TCP from pages at every offset, 1 to more than 17 pieces, one-byte pieces, pieces over page \
           borders, by sendfile, splice and zero copy.",
    holds: "Bytes are equal, nothing hangs, checksums over odd pieces are right.",
    skipped: "Without scatter and gather the stack's copy is judged instead.",
    source: "new (atlantic, tg3, hme)",
    privilege: Privilege::None,
    shown_on: "veth, e1000, e1000e, igb, 8139, vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::Offered {
        variants: &["writev", "sendfile", "zerocopy", "splice", "splice_v6", "no_sg"],
        limit_s: 60,
        judge,
    },
};

/// Sizes that put pages at every offset, and pieces over their borders.
const SIZES: [u32; 9] = [1, 3, 17, 61, 1447, 4095, 4097, 9001, 65_537];
const TIME: Duration = Duration::from_millis(400);

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let (method, version) = match bench.variant() {
        "writev" => (FlowMethod::Writev, Version::V4),
        "sendfile" => (FlowMethod::Sendfile, Version::V4),
        "zerocopy" => (FlowMethod::ZeroCopy, Version::V4),
        "splice_v6" => (FlowMethod::Splice, Version::V6),
        _ => (FlowMethod::Splice, Version::V4),
    };
    let duration = bench.patient(TIME);
    let ask = FlowAsk {
        method,
        write_bytes: SIZES.to_vec(),
        peer_sends: false,
        connections: 2,
        duration,
        ..FlowAsk::tcp(version)
    };
    if bench.variant() != "no_sg" {
        return scattered(bench, &ask);
    }
    bench.with_setting(Side::Dut, "sg", "off", |bench| scattered(bench, &ask))
}

fn scattered(bench: &mut Bench, ask: &FlowAsk) -> Result<(), Trouble> {
    let (dut, peer) = bench.run_flow(ask)?;
    bench.measure("compared", peer.received_bytes as f64, "bytes");
    if dut.copied_after_all > 0 {
        bench.measure("zero-copy sends that were copied", dut.copied_after_all as f64, "");
    }
    Ok(())
}
