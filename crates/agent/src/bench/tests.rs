use linerate_model::bench::PortOptions;
use linerate_testkit::need;

use super::*;
use crate::protocol::Refusal;

fn bench() -> Bench {
    Bench::new(NodeChanges::default(), Arc::new(AtomicBool::new(false)))
}

fn refusal(bench: &mut Bench, request: BenchRequest) -> (String, Refusal) {
    match bench.answer(request) {
        Reply::Refused { reason, kind } => (reason, kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handle_is_of_its_kind_or_refused() {
    need!(root());
    let mut bench = bench();
    let options = PortOptions { link: "lo".to_owned(), ether_type: 0x9b01, ..PortOptions::default() };
    let Reply::Bench(opened) = bench.answer(BenchRequest::OpenPort(options)) else { panic!("not opened") };
    assert_eq!(*opened, BenchReply::Opened(1));
    let finish = BenchRequest::FinishTally { tally: 1, idle_ns: 0, limit_ns: 0 };
    let wanted = ("handle 1: it is a port, not a tally".to_owned(), Refusal::Usage);
    assert_eq!(refusal(&mut bench, finish), wanted);
    let receive = BenchRequest::Receive { port: 1, most: 1, idle_ns: 0, limit_ns: 0 };
    assert!(matches!(bench.answer(receive.clone()), Reply::Bench(_)));
    assert!(matches!(bench.answer(BenchRequest::Close { handle: 1 }), Reply::Bench(_)));
    assert_eq!(refusal(&mut bench, receive).0, "handle 1: nothing of this number is open");
}

#[test]
fn waits_are_bounded_and_end_with_the_controller() {
    need!(root());
    let mut bench = bench();
    let options = PortOptions { link: "lo".to_owned(), ether_type: 0x9b02, ..PortOptions::default() };
    bench.answer(BenchRequest::OpenPort(options));
    let receive = |limit_ns| BenchRequest::Receive { port: 1, most: 1, idle_ns: u64::MAX, limit_ns };
    let (reason, kind) = refusal(&mut bench, receive(601_000_000_000));
    assert_eq!((reason.as_str(), kind), ("receive frames: to wait 601s is more than 600s", Refusal::Usage));
    bench.lost.store(true, std::sync::atomic::Ordering::Relaxed);
    let start = std::time::Instant::now();
    bench.answer(receive(500_000_000_000));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_missing_link_is_named_and_no_usage_fault() {
    let (reason, kind) = refusal(&mut bench(), BenchRequest::Snapshot { link: "lr-none".to_owned() });
    assert!(reason.starts_with("find link lr-none: No such device"), "{reason}");
    assert_eq!(kind, Refusal::Network);
}

#[test]
fn a_link_tells_what_it_is() {
    let reply = bench().answer(BenchRequest::Identity { link: "lo".to_owned() });
    assert!(matches!(reply, Reply::Bench(reply) if matches!(*reply, BenchReply::Facts(_))));
    let (reason, _) = refusal(&mut bench(), BenchRequest::Identity { link: "lr-none".to_owned() });
    assert!(reason.contains("lr-none"), "{reason}");
}
