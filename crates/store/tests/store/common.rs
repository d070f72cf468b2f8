//! What the tests of the history share: records as a run would make them, and files that go away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_model::environment::{Environment, Feature, LinkInfo};
use linerate_model::latency::LatencyHistogram;
use linerate_model::limit::{Limit, Limiter};
use linerate_model::reading::{
    Flow, IntervalReading, IntervalStream, Knowledge, Reading, StreamReading, Window,
};
use linerate_model::record::{ClockSync, NodeRecord, Outcome, RECORD_SCHEMA};
use linerate_model::summary::summarize;
use linerate_model::trial::{Amount, Family, Pinning};
use linerate_model::units::ByteCount;
use linerate_model::workload::{TcpOptions, TcpRr};
use linerate_model::{NodeUrl, Record, Trial, Workload};
use linerate_store::RunInfo;

/// A folder of its own, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(label: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lr-store-{}-{number}-{label}", std::process::id()));
        std::fs::create_dir(&path).expect("make a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An id that ends in `number`.
pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}{:024x}", 0xabc)
}

pub(crate) fn info(number: u32) -> RunInfo {
    RunInfo {
        id: id(number),
        started_at: format!("2026-11-{:02}T12:00:00Z", number % 28 + 1),
        command: vec![
            "linerate".to_owned(),
            "run".to_owned(),
            "--set".to_owned(),
            "dut.tso=on,off".to_owned(),
        ],
        linerate_version: "0.1.0".to_owned(),
        plan_json: Some(r#"{"trials":[]}"#.to_owned()),
        seed: u64::MAX - 1,
    }
}

/// A request/response trial with its latencies, a reading a second and a link, like one of a minute.
pub(crate) fn record(run: u32, sequence: u32) -> Record {
    let trial = Trial {
        workload: Workload::TcpRr(TcpRr {
            request: ByteCount(64),
            response: ByteCount(1024),
            in_flight: None,
            rate: None,
            socket: TcpOptions::default(),
        }),
        family: Family::V4,
        peers: 1,
        streams: 1,
        amount: Amount::DurationNs(60_000_000_000),
        warmup_ns: 1_000_000_000,
        interval_ns: Some(1_000_000_000),
        verify_seed: None,
        settings: Vec::new(),
        pin: Pinning::default(),
        repeat: sequence,
    };
    let (dut, peer) = (reading(sequence, true), reading(sequence, false));
    Record {
        schema: RECORD_SCHEMA.to_owned(),
        run: id(run),
        sequence,
        seed: None,
        block: None,
        combination: None,
        started_at: format!("2026-11-{:02}T12:{:02}:{:02}Z", run % 28 + 1, sequence / 60 % 60, sequence % 60),
        summary: summarize(&trial, &dut, &peer, true),
        trial,
        outcome: Outcome::Complete,
        dut: NodeRecord { node: NodeUrl::Local, environment: environment("eth0"), reading: dut, guest: None },
        peer: NodeRecord {
            node: NodeUrl::Netns("blue".to_owned()),
            environment: environment("eth1"),
            reading: peer,
            guest: None,
        },
        peers: Vec::new(),
        clock: ClockSync { peer_minus_dut_ns: -1234, uncertainty_ns: 5678 },
        shared_kernel: true,
        limit: Limit { limiter: Limiter::RoundTrip, evidence: "one request in flight".to_owned() },
        hazards: Vec::new(),
        stand_in: None,
    }
}

fn reading(seed: u32, asks: bool) -> Reading {
    let seed = u64::from(seed);
    let flow = Flow { bytes: 123_456_789 + seed, messages: 1_234_567 + seed };
    // Three digits from 10 us to 1 ms: some 2 000 buckets, each with a count of its own.
    let counts = (0..2000).map(|n| (10_000 + n * 497, 1 + (n * 7919 + seed) % 9973)).collect();
    let latency = LatencyHistogram { counts, overflow: 0, min_ns: 9_876, max_ns: 1_003_503 };
    let interval = |n: u64| IntervalReading {
        start_ns: n * 1_000_000_000,
        duration_ns: 1_000_000_123,
        busy_ns: 456_789_012 + n * 12_345,
        streams: vec![IntervalStream {
            index: 0,
            sent: Flow { bytes: 2_057_613 + n * 97, messages: 20_576 + n },
            received: Flow { bytes: 2_057_613 + n * 89, messages: 20_576 + n },
            transactions: 20_576 + n,
            retransmits: 0,
            rtt_us: 37,
        }],
    };
    Reading {
        knowledge: Knowledge::Measured,
        window: Window { start_ns: 77, duration_ns: 60_000_001_234, start_late_ns: 50, end_late_ns: 60 },
        streams: vec![StreamReading {
            sent: flow,
            received: flow,
            transactions: if asks { flow.messages } else { 0 },
            latency: asks.then_some(latency),
            ..StreamReading::default()
        }],
        threads: Vec::new(),
        intervals: (0..60).map(interval).collect(),
        meter: linerate_model::counters::MeterReading::default(),
        strays: 0,
    }
}

fn environment(link: &str) -> Environment {
    let feature =
        |n: u32| (format!("tx-feature-number-{n}"), Feature { on: n.is_multiple_of(2), changeable: true });
    Environment {
        host: "bench".to_owned(),
        kernel: "6.18.1".to_owned(),
        link: Some(LinkInfo {
            name: link.to_owned(),
            driver: Some("veth".to_owned()),
            features: (0..60).map(feature).collect(),
            ..LinkInfo::default()
        }),
        ..Environment::default()
    }
}

/// xorshift64 (Marsaglia, 2003), its seed told.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        let seed =
            SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_nanos() as u64 | 1;
        println!("seed {seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
