//! What a qualification asks of nodes, between two namespaces over veth: frames, offloads, tags, probes by the
//! hundred thousand, counters, the kernel's log, and that nothing is left.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::path::PathBuf;
use std::time::Duration;

use linerate_agent::launch::{self, LaunchOptions};
use linerate_agent::node::Node;
use linerate_model::bench::frame::{
    Addressed, ChecksumWord, Offload, PartialChecksum, Segmentation, SegmentationKind, Tag,
};
use linerate_model::bench::{
    BenchReply, BenchRequest, FrameIn, FrameOut, GenerateSpec, Handle, LinkAct, PortOptions, SendReport,
    TallySpec,
};
use linerate_testkit::{LeakCheck, Wire, need};

const SECOND_NS: u64 = 1_000_000_000;
const ETHER_TYPE: u16 = 0x88b5;

/// Two agents at the ends of a wire.
struct Ends {
    left: Node,
    right: Node,
    left_mac: [u8; 6],
    right_mac: [u8; 6],
    // Goes last: the agents stand in its namespaces.
    _wire: Wire,
}

impl Ends {
    fn new() -> Self {
        let wire = Wire::new();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_linerate"));
        let options = LaunchOptions { program, ..LaunchOptions::default() };
        let mut left = launch::connect(&wire.left.node().parse().unwrap(), &options).unwrap();
        let mut right = launch::connect(&wire.right.node().parse().unwrap(), &options).unwrap();
        let left_mac = mac(&mut left, Wire::LEFT_LINK);
        let right_mac = mac(&mut right, Wire::RIGHT_LINK);
        Self { left, right, left_mac, right_mac, _wire: wire }
    }

    /// A frame from left to right.
    fn frame(&self, length: usize) -> Vec<u8> {
        let mut bytes = [self.right_mac, self.left_mac].concat();
        bytes.extend(ETHER_TYPE.to_be_bytes());
        bytes.extend((bytes.len()..length).map(|at| (at * 7) as u8));
        bytes
    }
}

fn mac(node: &mut Node, link: &str) -> [u8; 6] {
    let path = format!("/sys/class/net/{link}/address");
    let BenchReply::Text(text) = ask(node, BenchRequest::ReadFile { path }) else { panic!("no text") };
    let bytes: Vec<u8> = text.trim().split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

fn ask(node: &mut Node, request: BenchRequest) -> BenchReply {
    node.bench(&request).unwrap()
}

fn open(node: &mut Node, options: PortOptions) -> Handle {
    match ask(node, BenchRequest::OpenPort(options)) {
        BenchReply::Opened(handle) => handle,
        other => panic!("{other:?}"),
    }
}

fn port(link: &str) -> PortOptions {
    PortOptions { link: link.to_owned(), ether_type: ETHER_TYPE, ..PortOptions::default() }
}

fn send(node: &mut Node, port: Handle, frames: Vec<FrameOut>) -> SendReport {
    match ask(node, BenchRequest::Send { port, frames, gap_ns: 0 }) {
        BenchReply::Sent(report) => report,
        other => panic!("{other:?}"),
    }
}

fn receive(node: &mut Node, port: Handle, most: u32) -> Vec<FrameIn> {
    let request = BenchRequest::Receive { port, most, idle_ns: SECOND_NS / 2, limit_ns: 20 * SECOND_NS };
    match ask(node, request) {
        BenchReply::Frames { frames, dropped } => {
            assert_eq!(dropped, 0);
            frames
        }
        other => panic!("{other:?}"),
    }
}

fn plain(bytes: Vec<u8>) -> FrameOut {
    FrameOut { bytes: bytes.into(), offload: None }
}

#[test]
fn frames_of_every_length_arrive_exact() {
    need!(netns());
    let mut ends = Ends::new();
    let from = open(&mut ends.left, PortOptions { send_only: true, ..port(Wire::LEFT_LINK) });
    let to = open(&mut ends.right, port(Wire::RIGHT_LINK));
    let sent: Vec<Vec<u8>> = (14..=1514).map(|length| ends.frame(length)).collect();
    let report = send(&mut ends.left, from, sent.iter().cloned().map(plain).collect());
    assert_eq!((report.sent, report.refused), (1501, vec![]));
    let got = receive(&mut ends.right, to, 2000);
    assert_eq!(got.len(), sent.len());
    for (got, sent) in got.iter().zip(&sent) {
        assert_eq!(&*got.bytes, sent.as_slice());
        assert_eq!((got.length_bytes as usize, got.addressed), (sent.len(), Addressed::Host));
    }
    let long = ends.frame(1515);
    let report = send(&mut ends.left, from, vec![plain(long)]);
    assert_eq!((report.sent, report.refused[0].errno), (0, nix::libc::EMSGSIZE));
}

#[test]
fn a_tag_is_told_beside_the_frame() {
    need!(netns());
    let mut ends = Ends::new();
    let from = open(&mut ends.left, PortOptions { send_only: true, ..port(Wire::LEFT_LINK) });
    let to = open(&mut ends.right, port(Wire::RIGHT_LINK));
    let bare = ends.frame(100);
    for protocol in [0x8100u16, 0x88a8] {
        let mut tagged = bare.clone();
        tagged.splice(12..12, [protocol.to_be_bytes(), 0xa123u16.to_be_bytes()].concat());
        assert_eq!(send(&mut ends.left, from, vec![plain(tagged)]).sent, 1);
        let got = receive(&mut ends.right, to, 1);
        assert_eq!(&*got[0].bytes, bare.as_slice());
        assert_eq!(got[0].tag, Some(Tag { protocol, control: 0xa123 }));
    }
}

/// A TCP segment over IPv4 with its checksum left to the NIC.
fn tcp_frame(ends: &Ends, payload_bytes: usize) -> FrameOut {
    let total = u16::try_from(40 + payload_bytes).unwrap();
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    let sum = fold(&ip);
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    let mut tcp = [4000u16.to_be_bytes(), 4001u16.to_be_bytes()].concat();
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    let length = u16::try_from(20 + payload_bytes).unwrap();
    let pseudo = [&ip[12..20], &[0, 6], &length.to_be_bytes()].concat();
    tcp[16..18].copy_from_slice(&fold(&pseudo).to_be_bytes());
    let mut bytes = [ends.right_mac, ends.left_mac].concat();
    bytes.extend([8, 0]);
    bytes.extend(ip);
    bytes.extend(tcp);
    bytes.extend((0..payload_bytes).map(|at| (at % 251) as u8));
    let offload = Offload {
        checksum: Some(PartialChecksum { start: 34, offset: 16 }),
        segmentation: Some(Segmentation { kind: SegmentationKind::Tcp4, size_bytes: 1448, ecn: false }),
        header_bytes: 54,
        checksum_valid: false,
    };
    FrameOut { bytes: bytes.into(), offload: Some(offload) }
}

fn fold(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn a_large_segment_crosses_whole_or_is_cut_as_the_setting_says() {
    need!(netns());
    const PAYLOAD: usize = 20_000;
    let mut ends = Ends::new();
    let offloading = |link: &str| PortOptions {
        ether_type: 0x0800,
        offload: true,
        largest_bytes: 1 << 16,
        slots: 64,
        ..port(link)
    };
    let from = open(&mut ends.left, offloading(Wire::LEFT_LINK));
    let to = open(&mut ends.right, offloading(Wire::RIGHT_LINK));
    let frame = tcp_frame(&ends, PAYLOAD);
    assert_eq!(send(&mut ends.left, from, vec![frame.clone()]).sent, 1);
    let got = receive(&mut ends.right, to, 50);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].bytes, frame.bytes);
    assert_eq!(got[0].checksum, ChecksumWord::NotReady);
    let offload = got[0].offload.unwrap();
    assert_eq!(offload.checksum, frame.offload.unwrap().checksum);
    assert_eq!(offload.segmentation, frame.offload.unwrap().segmentation);

    let (link, key, value) = (Wire::LEFT_LINK.to_owned(), "tx-tcp-segmentation", "off".to_owned());
    let set = BenchRequest::Set { link, key: key.to_owned(), value };
    assert_eq!(ask(&mut ends.left, set), BenchReply::Done);
    assert_eq!(send(&mut ends.left, from, vec![frame.clone()]).sent, 1);
    let got = receive(&mut ends.right, to, 50);
    assert_eq!(got.len(), PAYLOAD.div_ceil(1448));
    assert!(got.iter().all(|frame| frame.offload.is_none_or(|offload| offload.segmentation.is_none())));
    let joined: Vec<u8> = got.iter().flat_map(|frame| frame.bytes[54..].to_vec()).collect();
    assert_eq!(joined, frame.bytes[54..]);

    assert!(ends.left.restore().unwrap().not_back.is_empty());
    assert_eq!(send(&mut ends.left, from, vec![frame]).sent, 1);
    assert_eq!(receive(&mut ends.right, to, 50).len(), 1);
}

#[test]
fn a_hundred_thousand_probes_are_counted_one_by_one() {
    need!(netns());
    const COUNT: u64 = 100_000;
    let mut ends = Ends::new();
    let tally = TallySpec {
        port: PortOptions { slots: 60_000, ..port(Wire::RIGHT_LINK) },
        run: 5,
        streams: vec![1],
        header_bytes: 0,
        latency: false,
    };
    let BenchReply::Opened(tally) = ask(&mut ends.right, BenchRequest::Tally(tally)) else { panic!() };
    let generator = GenerateSpec {
        port: port(Wire::LEFT_LINK),
        to: ends.right_mac,
        from: ends.left_mac,
        header: Vec::new().into(),
        run: 5,
        stream: 1,
        lengths_bytes: vec![60, 128, 1514],
        count: Some(COUNT),
        // Slow enough for a debug build on a busy machine to keep up with.
        frames_per_second: 20_000,
        duration_ns: 0,
        timed: false,
    };
    let BenchReply::Opened(generator) = ask(&mut ends.left, BenchRequest::Generate(generator)) else {
        panic!()
    };
    let finish = BenchRequest::FinishGenerate { generator, wait_ns: 60 * SECOND_NS };
    let BenchReply::Generated(sent) = ask(&mut ends.left, finish) else { panic!() };
    assert_eq!((sent.sent, &sent.refused), (COUNT, &None));
    let finish = BenchRequest::FinishTally { tally, idle_ns: SECOND_NS, limit_ns: 60 * SECOND_NS };
    let BenchReply::Tallied(got) = ask(&mut ends.right, finish) else { panic!() };
    assert_eq!(got.whole + got.dropped_here, COUNT, "{got:?}");
    assert_eq!((got.damaged, got.truncated, got.duplicates, got.reordered), (0, 0, 0, 0));
    if got.dropped_here == 0 {
        assert_eq!((got.whole_bytes, got.missing_count), (sent.sent_bytes, 0));
        assert_eq!(got.highest, [(1, COUNT - 1)]);
    }
}

#[test]
fn counters_have_the_groups_of_veth_and_the_log_is_read_on() {
    need!(netns(), root());
    let mut ends = Ends::new();
    let snapshot =
        |node: &mut Node| match ask(node, BenchRequest::Snapshot { link: Wire::RIGHT_LINK.to_owned() }) {
            BenchReply::Snapshot(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        };
    let before = snapshot(&mut ends.right);
    let from = open(&mut ends.left, PortOptions { send_only: true, ..port(Wire::LEFT_LINK) });
    let frames = (0..50).map(|_| plain(ends.frame(100))).collect();
    assert_eq!(send(&mut ends.left, from, frames).sent, 50);
    let after = snapshot(&mut ends.right);
    assert!(after.link["rx_packets"] >= before.link["rx_packets"] + 50);
    assert!(after.proc_net_dev["rx_packets"] >= before.proc_net_dev["rx_packets"] + 50);
    assert!(!after.driver.is_empty() && after.taken_ns > before.taken_ns);
    assert!(after.protocols.contains_key("Ip.InReceives") && after.softnet.contains_key("processed"));
    assert_eq!(after.unavailable, Vec::<String>::new());
    assert!(after.carrier_changes.is_some());

    let log = |node: &mut Node, from| match ask(node, BenchRequest::Log { from }) {
        BenchReply::Log { lines, next, lost } => (lines, next, lost),
        other => panic!("{other:?}"),
    };
    let (lines, next, _) = log(&mut ends.left, u64::MAX);
    assert!(lines.is_empty());
    let text = format!("linerate e2e_bench {}", std::process::id());
    std::fs::write("/dev/kmsg", format!("<4>{text}\n")).unwrap();
    let (lines, later, lost) = log(&mut ends.left, next);
    let line = lines.iter().find(|line| line.text == text).unwrap();
    assert_eq!((line.level, lost), (4, 0));
    assert!(later > next);
}

#[test]
fn all_ends_with_the_session() {
    need!(netns());
    let leaks = LeakCheck::start();
    {
        let mut ends = Ends::new();
        let generator = GenerateSpec {
            port: port(Wire::LEFT_LINK),
            to: ends.right_mac,
            from: ends.left_mac,
            header: Vec::new().into(),
            run: 1,
            stream: 1,
            lengths_bytes: vec![60],
            count: None,
            frames_per_second: 100,
            duration_ns: 0,
            timed: false,
        };
        ask(&mut ends.left, BenchRequest::Generate(generator));
        let link = Wire::LEFT_LINK.to_owned();
        ask(&mut ends.left, BenchRequest::Link(LinkAct::SetMac { link, mac: [2, 0, 0, 0, 0, 9] }));
        assert_eq!(mac(&mut ends.left, Wire::LEFT_LINK), [2, 0, 0, 0, 0, 9]);
        assert_eq!(ask(&mut ends.left, BenchRequest::Reset), BenchReply::Done);
        assert_eq!(mac(&mut ends.left, Wire::LEFT_LINK), ends.left_mac);
        let closed = ends.left.bench(&BenchRequest::Close { handle: 1 }).unwrap_err();
        assert!(closed.is_usage(), "{closed}");
        let promiscuous = PortOptions { promiscuous: true, ..port(Wire::RIGHT_LINK) };
        open(&mut ends.right, promiscuous);
    }
    std::thread::sleep(Duration::from_millis(200));
    leaks.assert_none();
}
