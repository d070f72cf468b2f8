use std::sync::atomic::AtomicBool;

use linerate_model::bench::{FrameOut, GenerateSpec, PortOptions, TallySpec};
use linerate_testkit::need;

use super::*;

static GO_ON: AtomicBool = AtomicBool::new(false);

fn options(link: &str, ether_type: u16) -> PortOptions {
    PortOptions { link: link.to_owned(), ether_type, ..PortOptions::default() }
}

fn generate(ether_type: u16, count: u64) -> GenerateSpec {
    GenerateSpec {
        port: options("lo", ether_type),
        to: [0; 6],
        from: [0; 6],
        header: ether_type.to_be_bytes().to_vec().into(),
        run: 77,
        stream: 4,
        lengths_bytes: vec![60, 64, 1000],
        count: Some(count),
        frames_per_second: 0,
        duration_ns: 0,
        timed: false,
    }
}

fn tally(ether_type: u16, latency: bool) -> TallyRun {
    let port = PortOptions { slots: 32_768, ..options("lo", ether_type) };
    TallyRun::start(TallySpec { port, run: 77, streams: vec![], header_bytes: 0, latency }).unwrap()
}

#[test]
fn all_that_is_generated_is_tallied() {
    need!(root());
    let tally = tally(0x9a01, false);
    let generator = Generator::start(generate(0x9a01, 20_000)).unwrap();
    let sent = generator.finish(20_000_000_000, &GO_ON).unwrap();
    assert_eq!((sent.sent, &sent.refused), (20_000, &None));
    let tally = tally.finish(200_000_000, 10_000_000_000, &GO_ON).unwrap();
    assert_eq!(tally.whole + tally.dropped_here, 20_000, "{tally:?}");
    assert_eq!((tally.damaged, tally.duplicates, tally.reordered, tally.truncated), (0, 0, 0, 0));
    if tally.dropped_here == 0 {
        assert_eq!((tally.whole_bytes, tally.missing_count), (sent.sent_bytes, 0));
        assert_eq!(tally.highest, [(4, 19_999)]);
    }
}

#[test]
fn a_paced_generator_keeps_its_rate_and_tells_latency() {
    need!(root());
    let tally = tally(0x9a02, true);
    let spec = GenerateSpec {
        frames_per_second: 2000,
        duration_ns: 300_000_000,
        count: None,
        timed: true,
        ..generate(0x9a02, 0)
    };
    let sent = Generator::start(spec).unwrap().finish(10_000_000_000, &GO_ON).unwrap();
    // Never faster than asked for; a busy machine may be slower.
    assert!(sent.sent <= 602 && sent.sent >= 100, "{sent:?}");
    let tally = tally.finish(100_000_000, 5_000_000_000, &GO_ON).unwrap();
    assert_eq!((tally.whole, tally.missing_count), (sent.sent, 0));
    let [smallest, median, _, largest] = tally.latency_ns.unwrap();
    assert!(smallest <= median && median <= largest && largest < 5_000_000_000);
}

#[test]
fn a_generator_without_end_is_stopped() {
    need!(root());
    let spec = GenerateSpec { count: None, frames_per_second: 100, ..generate(0x9a03, 0) };
    let sent = Generator::start(spec).unwrap().finish(50_000_000, &GO_ON).unwrap();
    assert!(sent.sent >= 1);
    let mut spec = generate(0x9a03, 1);
    spec.lengths_bytes = vec![13];
    assert!(Generator::start(spec).is_err());
}

#[test]
fn refusals_are_told_by_frame() {
    need!(root());
    let mut port = Port::open(&options("lo", 0x9a04)).unwrap();
    let frame = |length: usize| {
        let mut bytes = vec![0; length];
        bytes[12..14].copy_from_slice(&0x9a04u16.to_be_bytes());
        FrameOut { bytes: bytes.into(), offload: None }
    };
    let frames = [frame(60), frame(70_000), frame(61), frame(62)];
    let report = port.send(&frames, 0, &GO_ON).unwrap();
    assert_eq!(report.sent, 3);
    assert_eq!(report.refused.iter().map(|r| (r.index, r.errno)).collect::<Vec<_>>(), [(1, 90)]);
    let got = port.receive(3, 1_000_000_000, 5_000_000_000, &GO_ON).unwrap();
    assert_eq!(got.frames.iter().map(|f| f.bytes.len()).collect::<Vec<_>>(), [60, 61, 62]);
    assert_eq!(
        (port.receive(1, 1_000_000, 5_000_000_000, &GO_ON).unwrap().frames.len(), got.dropped),
        (0, 0)
    );
    let mut with_work = frame(60);
    with_work.offload = Some(linerate_model::bench::frame::Offload::default());
    assert!(port.send(&[with_work], 0, &GO_ON).is_err());
}

#[test]
fn outgoing_frames_of_one_kind_can_be_seen() {
    need!(root());
    let mut port = Port::open(&PortOptions { see_outgoing: true, ..options("lo", 0x9a05) }).unwrap();
    // A socket does not see what it sent itself.
    let mut other = Port::open(&PortOptions { send_only: true, ..options("lo", 0x9a05) }).unwrap();
    let mut bytes = vec![0; 60];
    bytes[12..14].copy_from_slice(&0x9a05u16.to_be_bytes());
    other.send(&[FrameOut { bytes: bytes.into(), offload: None }], 0, &GO_ON).unwrap();
    assert!(other.receive(1, 0, 0, &GO_ON).is_err());
    let got = port.receive(2, 1_000_000_000, 5_000_000_000, &GO_ON).unwrap().frames;
    use linerate_model::bench::frame::Addressed;
    assert_eq!(got.iter().map(|f| f.addressed).collect::<Vec<_>>(), [Addressed::Outgoing, Addressed::Host]);
}
