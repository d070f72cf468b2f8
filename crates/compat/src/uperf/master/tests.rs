//! Transcripts: what a slave of each layout answers, cut in any way, and what the master makes of it.

use super::*;
use crate::uperf::wire::{GROUP_BYTES, TRANSACTION_BYTES, encode_p2_ack};
use crate::uperf::workorder::{Flowop, Kind, Protocol, Transaction};

fn group() -> Group {
    let flowop = Flowop {
        kind: Kind::Accept,
        protocol: Protocol::Tcp,
        remote_host: "192.0.2.7".into(),
        ..Flowop::default()
    };
    let transaction = Transaction { iterations: 1, flowops: vec![flowop], ..Transaction::default() };
    Group { strands: 1, transactions: vec![transaction], ..Group::default() }
}

/// Feeds in pieces of the given size.
fn feed(machine: &mut MasterMachine, bytes: &[u8], piece: usize) -> Vec<MasterEvent> {
    bytes.chunks(piece).flat_map(|part| machine.receive(part)).collect()
}

#[test]
fn a_whole_run_in_every_layout_and_cut() {
    for layout in Layout::ALL {
        for piece in [1, 100, 10_000] {
            whole_run(layout, piece);
        }
    }
}

fn whole_run(layout: Layout, piece: usize) {
    let order = Order::Little;
    let mut machine = MasterMachine::new(layout, order, 1);
    let first = machine.first(&group());
    assert_eq!(first.len(), layout.header_bytes());
    assert_eq!(first[36..40], [1, 0, 0, 0]);
    assert_eq!(first[52..56], [1, 0, 0, 0], "TCP will be used");
    assert_eq!(feed(&mut machine, &Ack::yes().encode(), piece), [MasterEvent::Accepted]);

    let second = machine.second(&group(), &[]);
    let expected = layout.header_bytes() + GROUP_BYTES + TRANSACTION_BYTES + layout.flowop_bytes();
    assert_eq!(second.len(), expected);
    assert_eq!(second[36..48], [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(second[52..56], [0; 4], "P2 names no protocol");

    // A real slave leaves garbage behind OK.
    let ports = [0, 34071, 0, 0, 0, 0, 0, 0];
    let mut ack = encode_p2_ack(&Ack::yes(), &[ports], order);
    ack[64..192].fill(0x5a);
    assert_eq!(feed(&mut machine, &ack, piece), [MasterEvent::Prepared(vec![ports])]);
    assert_eq!(machine.end(), [0; 192]);
    assert_eq!(feed(&mut machine, &[0; 192], piece), [MasterEvent::Ready]);
    assert_eq!(machine.command(Command::Next(0)).len(), 72);
    assert_eq!(machine.command(Command::SendStats)[64..68], [2, 0, 0, 0]);
    let goodbye =
        Goodbye { elapsed_ns: 5, bytes: 6, operations: 7, text: "Success".into(), ..Goodbye::default() };
    let events = feed(&mut machine, &goodbye.encode(order), piece);
    assert_eq!(events, [MasterEvent::Goodbye(Box::new(goodbye))]);
}

#[test]
fn refusals_are_told() {
    let mut machine = MasterMachine::new(Layout::F, Order::Little, 1);
    let events = machine.receive(&Ack::no("Unsupported protocol:SSL").encode());
    assert_eq!(events, [MasterEvent::Refused("Unsupported protocol:SSL".into())]);

    let mut machine = MasterMachine::new(Layout::F, Order::Little, 1);
    let _second = machine.second(&group(), &[]);
    let events = machine.receive(&encode_p2_ack(&Ack::no("no port"), &[], Order::Little));
    assert_eq!(events, [MasterEvent::Refused("no port".into())]);
}

#[test]
fn more_ports_than_strands_cannot_be() {
    let mut machine = MasterMachine::new(Layout::F, Order::Little, 1);
    let _second = machine.second(&group(), &[]);
    let mut ack = encode_p2_ack(&Ack::yes(), &[], Order::Little);
    ack[192..196].fill(0xff);
    assert!(matches!(machine.receive(&ack)[..], [MasterEvent::Malformed(_)]));
}

#[test]
fn a_slave_that_speaks_while_it_runs_has_aborted_and_its_goodbye_is_heard() {
    let mut machine = MasterMachine::new(Layout::F, Order::Little, 1);
    let _end = machine.end();
    let _ready = machine.receive(&[0; 192]);
    let goodbye = Goodbye { text: " write: Broken pipe \n".into(), ..Goodbye::default() };
    let events = machine.receive(&goodbye.encode(Order::Little));
    assert_eq!(events, [MasterEvent::Aborted, MasterEvent::Goodbye(Box::new(goodbye))]);
}

proptest::proptest! {
    #[test]
    fn any_answers_are_survived(
        parts in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..700), 0..6),
        stage in 0usize..4,
    ) {
        let mut machine = MasterMachine::new(Layout::F, Order::Little, 1);
        match stage {
            0 => {}
            1 => drop(machine.second(&group(), &[])),
            2 => drop(machine.end()),
            _ => drop(machine.command(Command::SendStats)),
        }
        for part in parts {
            let _ = machine.receive(&part);
        }
    }
}
