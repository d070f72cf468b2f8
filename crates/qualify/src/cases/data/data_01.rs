//! DATA-01: TCP with every byte compared.

use std::time::Duration;

use linerate_model::bench::FlowReport;
use linerate_model::bench::flow::FlowMethod;
use linerate_model::qualification::{Level, ReasonCode};

use crate::bench::{Bench, FlowAsk};
use crate::case::{Case, Privilege, Run};
use crate::frame::Version;
use crate::trouble::Trouble;

pub(crate) static CASE: Case = Case {
    id: "DATA-01",
    title: "TCP with every byte compared",
    does: "1, 4 and 16 TCP connections with writes of 1 to 65000 bytes, both ways at once, over IPv4 and IPv6, by \
           write, writev, sendfile and zero copy.",
    holds: "No wrong byte, every connection comes to its end, less than 1 % sent again, no checksum error counted.",
    skipped: "The links have no address of that IP version.",
    source: "NICDRV test01, ksft, LNST, NDISTest",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &["flip-bit-mended"],
    run: Run::Offered {
        variants: &[
            "v4_write",
            "v4_writev",
            "v4_sendfile",
            "v4_zerocopy",
            "v6_write",
            "v6_writev",
            "v6_sendfile",
            "v6_zerocopy",
        ],
        limit_s: 60,
        judge,
    },
};

/// Numbers of connections, with the sizes of writes that each number is tried with.
const LOADS: [(u32, &[u32]); 3] =
    [(1, &[65_000, 4096, 1460, 63, 1]), (4, &[1460, 4096, 65_000]), (16, &[4096])];
/// How long each load runs on a fast machine. STRESS-02 runs for longer.
const TIME: Duration = Duration::from_millis(200);
/// Of a hundred segments, so many may be sent again.
const MOST_RETRANSMITTED: f64 = 0.01;

fn judge(bench: &mut Bench) -> Result<(), Trouble> {
    let variant = bench.variant().to_owned();
    let version = if variant.starts_with("v4") { Version::V4 } else { Version::V6 };
    let method = match variant.trim_start_matches(|c| c != '_').trim_start_matches('_') {
        "writev" => FlowMethod::Writev,
        "sendfile" => FlowMethod::Sendfile,
        "zerocopy" => FlowMethod::ZeroCopy,
        _ => FlowMethod::Write,
    };
    bench.addresses(version)?;
    let mut total = Total::default();
    for (connections, sizes) in LOADS {
        let ask = FlowAsk { connections, write_bytes: sizes.to_vec(), method, ..FlowAsk::tcp(version) };
        let pair = bench.start_flow(&ask)?;
        bench.sleep(bench.patient(TIME))?;
        let (dut, peer) = bench.finish_flow(&pair, Duration::from_secs(20))?;
        total.add(&dut);
        total.add(&peer);
        for (name, report) in [("dut", &dut), ("peer", &peer)] {
            if report.finished < connections && report.broken.is_empty() {
                let words =
                    format!("{name}: {} of {connections} connections came to their end", report.finished);
                bench.fail(ReasonCode::Loss, words);
            }
        }
    }
    total.judge(bench);
    Ok(())
}

#[derive(Default)]
struct Total {
    received_bytes: u64,
    retransmits: u64,
    segments: u64,
    copied: u64,
}

impl Total {
    fn add(&mut self, report: &FlowReport) {
        self.received_bytes += report.received_bytes;
        self.retransmits += report.retransmits;
        self.segments += report.segments_sent;
        self.copied += report.copied_after_all;
    }

    fn judge(&self, bench: &mut Bench) {
        bench.measure("compared", self.received_bytes as f64, "bytes");
        let part = self.retransmits as f64 / self.segments.max(1) as f64;
        bench.measure("sent again", part * 100.0, "%");
        if part > MOST_RETRANSMITTED {
            let words = format!("{} of {} segments were sent again", self.retransmits, self.segments);
            // Both ends on one busy CPU lose by queues of their own: told, not judged, where no wire is between them.
            if bench.dut.is_veth() {
                bench.warn(words);
            } else {
                bench.fail(ReasonCode::Loss, words);
            }
        }
        if self.copied > 0 {
            bench.measure("zero-copy sends that were copied", self.copied as f64, "");
        }
    }
}
