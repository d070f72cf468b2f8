//! Transcripts written from the layout tables: what a master of each layout sends, byte by byte, and what must come back.

use super::*;
use crate::uperf::wire::{GoodbyeKind, decode_p2_ack, encode_ports, encode_workorder};
use crate::uperf::workorder::{Flowop, Kind, Transaction};

fn far_group() -> Group {
    let once = |kind| Transaction {
        iterations: 1,
        flowops: vec![Flowop {
            kind,
            protocol: if kind.opens() { Protocol::Tcp } else { Protocol::None },
            size: if kind == Kind::Read { 8192 } else { 0 },
            remote_host: if kind.opens() { "192.0.2.7".into() } else { String::new() },
            ..Flowop::default()
        }],
        ..Transaction::default()
    };
    Group {
        strands: 2,
        transactions: vec![once(Kind::Accept), once(Kind::Read), once(Kind::Disconnect)],
        ..Group::default()
    }
}

fn header(layout: Layout, order: Order, phase: Phase, infos: u32) -> Vec<u8> {
    let version = layout.version().to_owned();
    let protocols = if phase == Phase::One { vec![1] } else { Vec::new() };
    Header { order, phase, infos, protocols, version }.encode(layout)
}

/// Feeds in pieces of the given size; all actions, with sent bytes joined.
fn feed(machine: &mut SlaveMachine, bytes: &[u8], piece: usize) -> Vec<SlaveAction> {
    bytes.chunks(piece).flat_map(|part| machine.receive(part)).collect()
}

#[test]
fn a_whole_run_in_every_layout_order_and_cut() {
    for layout in Layout::ALL {
        for order in [Order::Little, Order::Big] {
            for piece in [1, 7, 300, 100_000] {
                whole_run(layout, order, piece);
            }
        }
    }
}

fn whole_run(layout: Layout, order: Order, piece: usize) {
    let mut machine = SlaveMachine::new(10);
    let first = header(layout, order, Phase::One, 0);
    let answers = feed(&mut machine, &first, piece);
    assert_eq!(answers, [SlaveAction::Send(Ack::yes().encode())], "{layout:?} {order:?}");
    // P1 may come again.
    assert_eq!(feed(&mut machine, &first, piece), answers);

    let ports = [0, 34071, 0, 0, 0, 0, 0, 0];
    let mut second = header(layout, order, Phase::Two, 2);
    second.extend(encode_workorder(&far_group(), layout, order));
    second.extend(encode_ports(&ports, order));
    second.extend(encode_ports(&ports, order));
    let actions = feed(&mut machine, &second, piece);
    let [SlaveAction::Prepare(work)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(work.group, far_group());
    assert_eq!(work.ports, [ports; 2]);
    assert_eq!(machine.layout(), Some(layout));

    let actions = machine.prepared(Ok(vec![ports; 2]));
    let [SlaveAction::Send(ack)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(ack.len(), 196 + 2 * 288);
    assert_eq!(decode_p2_ack(ack, order), Ok((Ack::yes(), 2)));

    let end = feed(&mut machine, &[0; 192], piece);
    assert_eq!(end, [SlaveAction::Send(vec![0; 192]), SlaveAction::Begin]);
    let mut commands = Vec::new();
    for command in
        [Command::Next(0), Command::Next(1), Command::Next(2), Command::Next(3), Command::SendStats]
    {
        commands.extend(command.encode(order));
    }
    let actions = feed(&mut machine, &commands, piece);
    let releases = [0, 1, 2].map(SlaveAction::Release);
    assert_eq!(actions[..3], releases, "a fourth transaction is another group's");
    assert_eq!(actions[3..], [SlaveAction::Finish]);

    let goodbye = Goodbye { kind: GoodbyeKind::Info, bytes: 8192, operations: 8, ..Goodbye::default() };
    let actions = machine.finished(&goodbye);
    let [SlaveAction::Send(bytes), SlaveAction::Close] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(Goodbye::decode(bytes, order), Ok(goodbye));
}

#[test]
fn a_wrong_version_is_told_ours_and_never_gets_further() {
    let mut machine = SlaveMachine::new(10);
    let version = "0.2.9".to_owned();
    let bad = Header { order: Order::Little, phase: Phase::One, infos: 0, protocols: vec![1], version };
    let actions = machine.receive(&bad.encode(Layout::F));
    let text = "Version 0.3.1 is incompatible with master data version 0.2.9";
    assert_eq!(actions, [SlaveAction::Send(Ack::no(text).encode())]);
    // A probe's P2 is answered, not entered.
    let actions = machine.receive(&header(Layout::F, Order::Little, Phase::Two, 0));
    let [SlaveAction::Send(ack)] = &actions[..] else { panic!("{actions:?}") };
    assert!(!Ack::decode(ack).unwrap().ok);
}

#[test]
fn protocols_that_cannot_be_opened_are_refused() {
    for (number, text) in [
        (5, "Unsupported protocol:SSL"),
        (2, "Unsupported protocol:uDAPL"),
        (4, "Unsupported protocol:Unknown"),
    ] {
        let version = "0.3.1".to_owned();
        let first =
            Header { order: Order::Little, phase: Phase::One, infos: 0, protocols: vec![1, number], version };
        let actions = SlaveMachine::new(10).receive(&first.encode(Layout::F));
        assert_eq!(actions, [SlaveAction::Send(Ack::no(text).encode())]);
    }
}

#[test]
fn what_is_no_uperf_is_closed() {
    let actions = SlaveMachine::new(10).receive(&[b'G'; 96]);
    assert_eq!(actions, [SlaveAction::Send(Ack::no("Wrong magic").encode()), SlaveAction::Close]);
}

#[test]
fn a_workorder_that_wants_our_files_is_refused() {
    let send = Flowop { kind: Kind::Sendfile, folder: "/etc".into(), ..Flowop::default() };
    let transaction = Transaction { iterations: 1, flowops: vec![send], ..Transaction::default() };
    let group = Group { transactions: vec![transaction], ..far_group() };
    let order = Order::Little;
    let mut machine = SlaveMachine::new(10);
    let mut bytes = header(Layout::F, order, Phase::Two, 0);
    bytes.extend(encode_workorder(&group, Layout::F, order));
    let actions = machine.receive(&bytes);
    let [SlaveAction::Send(ack), SlaveAction::Close] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(decode_p2_ack(ack, order).unwrap().0.message, "a slave sends no files");
}

#[test]
fn hostile_workorders_are_refused() {
    let order = Order::Little;
    let cases = [
        Group { strands: 11, ..far_group() },
        Group { transactions: vec![Transaction::default(); 1001], ..far_group() },
    ];
    for group in cases {
        let mut machine = SlaveMachine::new(10);
        let mut bytes = header(Layout::F, order, Phase::Two, 0);
        bytes.extend(encode_workorder(&group, Layout::F, order));
        let actions = machine.receive(&bytes);
        let [SlaveAction::Send(ack), SlaveAction::Close] = &actions[..] else { panic!("{actions:?}") };
        assert!(decode_p2_ack(ack, order).unwrap().0.message.contains("is more than"));
    }
    let mut machine = SlaveMachine::new(10);
    let mut bytes = header(Layout::F, order, Phase::Two, 0);
    let at = bytes.len() + 24 + 168 + 928;
    bytes.extend(encode_workorder(&far_group(), Layout::F, order));
    bytes[at] = 77;
    let actions = machine.receive(&bytes);
    let [SlaveAction::Send(ack), SlaveAction::Close] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(decode_p2_ack(ack, order).unwrap().0.message, "Unknown flowop 77");
}

#[test]
fn a_bad_command_or_the_end_ends_the_strands() {
    let run = |last: &[u8]| {
        let mut machine = SlaveMachine::new(10);
        let mut bytes = header(Layout::F, Order::Little, Phase::Two, 0);
        bytes.extend(encode_workorder(&far_group(), Layout::F, Order::Little));
        let _prepare = machine.receive(&bytes);
        let _ack = machine.prepared(Ok(Vec::new()));
        let _begin = machine.receive(&[0; 192]);
        if last.is_empty() { machine.closed() } else { machine.receive(last) }
    };
    assert_eq!(run(&[1; 72]), [SlaveAction::Kill(Some("Wrong command magic".into()))]);
    assert_eq!(run(&Command::Abort.encode(Order::Little)), [SlaveAction::Kill(None)]);
    assert_eq!(run(&[]), [SlaveAction::Kill(None)]);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(
        parts in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..600), 0..6),
        start in 0usize..3,
    ) {
        let mut machine = SlaveMachine::new(10);
        let mut bytes = header(Layout::F, Order::Little, Phase::Two, 1);
        bytes.extend(encode_workorder(&far_group(), Layout::F, Order::Little));
        let cut = [0, 352, 2000][start];
        let mut pending = machine.receive(&bytes[..cut]);
        for part in parts {
            pending.extend(machine.receive(&part));
            if pending.iter().any(|a| matches!(a, SlaveAction::Prepare(_))) {
                pending = machine.prepared(Ok(Vec::new()));
            }
        }
        let _ = machine.closed();
    }
}
