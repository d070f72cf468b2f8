//! Tables of plausible records, looked at in 80 and 120 columns.

use linerate_model::Record;
use linerate_model::hazard::HazardKind;
use linerate_model::limit::Limiter;
use linerate_model::record::Outcome;
use linerate_model::trial::{Family, Side};
use linerate_model::units::RateUnit;
use linerate_model::workload::{SendMethod, Workload, WorkloadKind};
use linerate_report::{TableOptions, table};

use crate::samples::{Sample, hazard, record, sample, with_rate, with_size};

fn records(samples: &[Sample]) -> Vec<Record> {
    samples.iter().zip(0..).map(|(s, n)| record(n, s)).collect()
}

/// Holds the table at 80 and at 120 columns, after checking that it fits.
fn check(name: &str, samples: &[Sample]) {
    let records = records(samples);
    for width in [80, 120] {
        let text = table(&records, &TableOptions { width, ..TableOptions::default() });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{name}: over {width} columns: {line}");
            assert_eq!(line, line.trim_end(), "{name}: spaces at the end");
        }
        insta::assert_snapshot!(format!("{name}_{width}"), text);
    }
}

fn of(kind: WorkloadKind, change: impl Fn(&mut Sample)) -> Sample {
    let mut s = sample(kind);
    change(&mut s);
    s
}

/// What `linerate` alone runs: every workload over both families on one kernel.
fn quick_suite() -> Vec<Sample> {
    let mut samples = Vec::new();
    for family in [Family::V4, Family::V6] {
        for kind in WorkloadKind::ALL {
            samples.push(of(kind, |s| {
                s.shared = true;
                s.trial.family = family;
                s.retransmits = 12;
                s.loss = if kind == WorkloadKind::UdpStream { 0.0312 } else { 0.0 };
                s.hazards = vec![
                    hazard(
                        HazardKind::SharedKernel,
                        None,
                        "both nodes have the same boot id",
                        "none needed to compare trials of this machine; for the cost of each end use two machines",
                    ),
                    hazard(HazardKind::VirtualLink, None, "lr-dut and lr-peer are veth links", ""),
                ];
            }));
        }
    }
    samples
}

#[test]
fn the_quick_suite() {
    check("quick_suite", &quick_suite());
}

#[test]
fn two_machines() {
    let mut samples: Vec<Sample> = WorkloadKind::ALL.into_iter().map(sample).collect();
    samples[1].trial.streams = 16;
    samples[3].retransmits = 3;
    samples[3].trial.streams = 128;
    check("two_machines", &samples);
}

#[test]
fn a_size_sweep() {
    let sizes = (7..=16).map(|n| 1_u64 << n);
    let samples: Vec<Sample> = sizes
        .map(|size| {
            of(WorkloadKind::TcpStream, |s| {
                *s = with_size(s.clone(), size);
                s.pace = 2.9e9 * size as f64 / (size as f64 + 9000.0);
                s.limiter = if size < 8192 { Limiter::SenderCpu } else { Limiter::ReceiveWindow };
            })
        })
        .collect();
    check("size_sweep", &samples);
}

#[test]
fn repeats_have_a_median_and_a_spread() {
    let repeats = |kind: WorkloadKind| {
        (0..3).map(move |n| {
            of(kind, |s| {
                s.trial.repeat = n;
                s.pace *= 1.0 + f64::from(n) * 0.013;
            })
        })
    };
    // Interleaved, as blocks of an experiment are.
    let streams = repeats(WorkloadKind::TcpStream);
    let mixed = streams.zip(repeats(WorkloadKind::TcpReverse)).flat_map(|(a, b)| [a, b]);
    let samples: Vec<Sample> = mixed.chain(repeats(WorkloadKind::TcpRr)).collect();
    check("repeats", &samples);
}

#[test]
fn factors_that_vary_have_columns() {
    let mut samples = Vec::new();
    for send in [SendMethod::Write, SendMethod::Sendfile] {
        for buffer in [None, Some(65_536)] {
            samples.push(of(WorkloadKind::TcpStream, |s| {
                let Workload::TcpStream(w) = &mut s.trial.workload else { unreachable!() };
                w.send = send;
                w.socket.congestion = Some("bbr".to_owned());
                w.socket.buffer_bytes = buffer.map(linerate_model::units::ByteCount);
                s.limiter = if buffer.is_some() { Limiter::SendBuffer } else { Limiter::CongestionWindow };
            }));
        }
    }
    check("factors", &samples);
}

#[test]
fn what_went_wrong_stands_out() {
    let verified = |change: &dyn Fn(&mut Sample)| {
        of(WorkloadKind::TcpStream, |s| {
            s.trial.verify_seed = Some(7);
            change(s);
        })
    };
    let samples = [
        verified(&|_| {}),
        verified(&|s| {
            s.trial.family = Family::V6;
            s.bad_bytes = 3;
            s.hazards = vec![hazard(
                HazardKind::DamagedPayload,
                Some(Side::Peer),
                "3 bytes of stream 0 differ from what was sent, the first at offset 131072",
                "check the checksum offloads of both links and the memory of both machines",
            )];
        }),
        verified(&|s| {
            s.outcome = Outcome::Interrupted;
            s.seconds = 2.1043;
            s.limiter = Limiter::Unclear;
            s.hazards = vec![hazard(
                HazardKind::Interrupted,
                None,
                "stopped by SIGINT after 2.104 s",
                "run it again",
            )];
        }),
        of(WorkloadKind::UdpStream, |s| {
            s.loss = 0.25;
            s.trial.streams = 4;
            s.trial.amount = linerate_model::trial::Amount::Bytes(1 << 33);
            s.hazards = vec![
                hazard(
                    HazardKind::StealTime,
                    Some(Side::Dut),
                    "4.2 % of CPU time was stolen",
                    "use a machine of your own",
                ),
                hazard(
                    HazardKind::ReceiverSocketDrops,
                    Some(Side::Peer),
                    "25 % dropped",
                    "raise --socket-buffer, or ask for a lower --rate",
                ),
            ];
        }),
    ];
    check("wrong", &samples);
}

#[test]
fn a_load_with_a_rate() {
    let samples = [10_000, 100_000].map(|rate| {
        let mut s = with_rate(sample(WorkloadKind::TcpRr), rate, RateUnit::RequestsPerSecond);
        s = with_size(s, 16_384);
        s.pace = (rate as f64).min(61_000.0);
        s.median_us = if rate > 61_000 { 48_000.0 } else { 17.0 };
        s.limiter = if rate > 61_000 { Limiter::SenderCpu } else { Limiter::Pace };
        s.trial.streams = 8;
        s.trial.family = if rate > 61_000 { Family::V6 } else { Family::V4 };
        s
    });
    check("rate", &samples);
}

#[test]
fn udp_in_its_tightest_form() {
    let mut samples = Vec::new();
    for family in [Family::V4, Family::V6] {
        for rate in [100_000_000, 3_000_000_000] {
            let mut s = with_rate(sample(WorkloadKind::UdpStream), rate, RateUnit::BitsPerSecond);
            s.trial.family = family;
            s.trial.repeat = 1;
            s.loss = 0.02;
            s.limiter = Limiter::CongestionWindow;
            s.shared = true;
            s.trial.streams = 1024;
            samples.push(with_size(s, 65_507));
        }
    }
    check("udp_tight", &samples);
}

#[test]
fn evidence_on_request() {
    let records = records(&[sample(WorkloadKind::TcpStream), sample(WorkloadKind::TcpRr)]);
    let text = table(&records, &TableOptions { evidence: true, ..TableOptions::default() });
    insta::assert_snapshot!(text);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let records = records(&quick_suite());
    let plain = table(&records, &TableOptions::default());
    let coloured = table(&records, &TableOptions { color: true, ..TableOptions::default() });
    assert_ne!(plain, coloured);
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        bare += before;
        rest = after.split_once('m').unwrap().1;
    }
    bare += rest;
    assert_eq!(plain, bare);
}

#[test]
fn no_records_no_table() {
    assert_eq!(table(&[], &TableOptions::default()), "");
}

#[test]
fn a_narrow_terminal_breaks_no_number() {
    let records = records(&quick_suite());
    let text = table(&records, &TableOptions { width: 20, ..TableOptions::default() });
    assert!(text.contains("23.44") && text.contains("61.2k"));
}
