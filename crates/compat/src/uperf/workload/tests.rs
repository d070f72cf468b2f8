use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_model::Trial;
use linerate_model::trial::{Amount, Family, Pinning};
use linerate_model::workload::ProfileRun;
use linerate_traffic::{Phase, Token};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn side(profile: &str, token: Token) -> TrialSide {
    let profile = crate::uperf::profile::read(profile, &|_| Some("peer".into())).unwrap();
    let trial = Trial {
        family: Family::V4,
        peers: 1,
        streams: profile.strands(),
        amount: Amount::Whole,
        warmup_ns: 0,
        interval_ns: None,
        verify_seed: None,
        pin: Pinning::default(),
        repeat: 0,
        settings: Vec::new(),
        workload: Workload::Profile(ProfileRun { profile }),
    };
    TrialSide { trial, token, local: SocketAddr::new(HERE, 0) }
}

const PING: &str = r#"<profile name="ping">
  <group nthreads="2">
    <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=tcp tcp_nodelay"/></transaction>
    <transaction iterations="100"><flowop type="write" options="size=90"/><flowop type="read" options="size=64"/></transaction>
    <transaction iterations="1"><flowop type="disconnect"/></transaction>
  </group>
  <group nthreads="1">
    <transaction iterations="1"><flowop type="accept" options="remotehost=$h protocol=tcp"/></transaction>
    <transaction duration="200ms"><flowop type="write" options="size=8k"/></transaction>
  </group>
</profile>"#;

#[test]
fn both_sides_count_the_same_and_setting_up_is_not_in_the_window() {
    let side = side(PING, Token::random().unwrap());
    let mut peer = open(&side, Side::Peer, None).unwrap();
    let mut dut = open(&side, Side::Dut, Some((SocketAddr::new(HERE, 0), &peer.ports()))).unwrap();
    peer.wait_ready(Duration::from_secs(5)).unwrap();
    assert!(dut.snapshot().streams.iter().all(|s| *s == StreamCount::default()));
    let start_ns = clock::monotonic_ns() + 100_000_000;
    peer.start(start_ns);
    dut.start(start_ns);
    dut.enter_phase(Phase::Window);
    let done_ns = dut.wait_done(Duration::from_secs(10)).unwrap().unwrap();
    assert!((150_000_000..2_000_000_000).contains(&(done_ns - start_ns)), "{}", done_ns - start_ns);
    assert_eq!((dut.failures(), peer.failures()), (Vec::new(), Vec::new()));
    dut.stop();
    peer.stop();
    let (near, far) = (dut.finish(None), peer.finish(None));
    for index in 0..2 {
        let (near, far) = (&near.streams[index], &far.streams[index]);
        assert_eq!(
            (near.total.sent.bytes, near.total.received.bytes, near.total.transactions),
            (9000, 6400, 100)
        );
        assert_eq!((far.total.received.bytes, far.total.sent.bytes), (9000, 6400));
        assert_eq!(near.latency.as_ref().unwrap().total(), 100);
    }
    let (sent, received) = (near.streams[2].total.sent.bytes, far.streams[2].total.received.bytes);
    assert!(sent > 100_000 && received <= sent && sent - received <= 8192, "{sent} {received}");
    assert_eq!((near.threads.len(), far.threads.len(), far.strays), (3, 3, 0));
    assert!(near.threads.iter().all(|t| t.cpu_ns > 0));
}

#[test]
fn strangers_get_no_answer_and_disturb_nothing() {
    let side = side(PING, Token::random().unwrap());
    let peer = open(&side, Side::Peer, None).unwrap();
    for proof in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 16]] {
        let mut stranger = TcpStream::connect((HERE, peer.ports()[0])).unwrap();
        stranger.write_all(proof).unwrap();
        let mut answer = Vec::new();
        // A close with bytes unread is a reset.
        let _reset = stranger.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    assert_eq!(peer.finish(None).strays, 2);
}

#[test]
fn a_wrong_token_is_told_at_the_dut() {
    let (near, far) = (side(PING, Token::random().unwrap()), side(PING, Token::random().unwrap()));
    let peer = open(&far, Side::Peer, None).unwrap();
    let error = open(&near, Side::Dut, Some((SocketAddr::new(HERE, 0), &peer.ports()))).unwrap_err();
    assert!(error.to_string().contains("handshaking"), "{error}");
}

#[test]
fn what_cannot_be_run_is_refused_before_any_traffic() {
    let idle = r#"<profile name="x"><group nthreads="1"><transaction iterations="1"><flowop type="nop"/></transaction></group></profile>"#;
    let sctp = PING.replace("protocol=tcp tcp_nodelay", "protocol=sctp");
    for (profile, why) in [(idle, "no transaction moves payload"), (&sctp, "not supported")] {
        let error = open(&side(profile, Token::random().unwrap()), Side::Peer, None).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}
