//! Live lines and their heads.

use linerate_model::reading::IntervalReading;
use linerate_model::trial::Side;
use linerate_model::workload::WorkloadKind;
use linerate_report::{IntervalPairs, live_header, live_line};

use crate::samples::{record, sample};

#[test]
fn lines_stand_below_their_heads() {
    let mut text = String::new();
    for kind in WorkloadKind::ALL {
        for shared in [false, true] {
            let mut s = sample(kind);
            s.shared = shared;
            s.trial.streams = 2;
            let r = record(0, &s);
            let head = live_header(&r.trial, shared);
            text += [kind.name(), "\n", &head, "\n"].concat().as_str();
            for (dut, peer) in r.dut.reading.intervals.iter().zip(&r.peer.reading.intervals).take(2) {
                let line = live_line(&r.trial, shared, dut, peer);
                assert_eq!(line.chars().count(), head.chars().count());
                assert!(line.chars().count() <= 80);
                text += &line;
                text += "\n";
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn goodput_is_what_the_receiver_got() {
    let mut s = sample(WorkloadKind::UdpStream);
    s.loss = 0.5;
    let r = record(0, &s);
    let line = live_line(&r.trial, false, &r.dut.reading.intervals[0], &r.peer.reading.intervals[0]);
    assert!(line.contains("2.968 Gbit/s"), "{line}");
}

#[test]
fn pairs_come_in_order_from_either_side() {
    let at = |start_ns| IntervalReading { start_ns, duration_ns: 1, busy_ns: 0, streams: Vec::new() };
    let mut pairs = IntervalPairs::default();
    assert_eq!(pairs.push(Side::Dut, at(0)), None);
    assert_eq!(pairs.push(Side::Dut, at(10)), None);
    assert_eq!(pairs.push(Side::Peer, at(1)), Some((at(0), at(1))));
    assert_eq!(pairs.push(Side::Peer, at(11)), Some((at(10), at(11))));
    assert_eq!(pairs.push(Side::Peer, at(21)), None);
    assert_eq!(pairs.push(Side::Dut, at(20)), Some((at(20), at(21))));
}
