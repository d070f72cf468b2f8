use super::*;
use crate::uperf::workorder::{Flowop, Group, Kind, Protocol, Sctp, Transaction, flag};

fn at(bytes: &[u8], offset: usize, expected: &[u8]) {
    assert_eq!(&bytes[offset..offset + expected.len()], expected, "at {offset:#x}");
}

/// The group of the captured run: connect, 3 s of write count=10 size=8k, disconnect, as the slave gets it.
pub(crate) fn captured_group() -> Group {
    let accept = Flowop {
        kind: Kind::Accept,
        protocol: Protocol::Tcp,
        flags: flag::TCP_NODELAY,
        window: 51200,
        remote_host: "127.0.0.1".into(),
        ..Flowop::default()
    };
    let read = Flowop { kind: Kind::Read, size: 8192, count: 10, ..Flowop::default() };
    let disconnect = Flowop { kind: Kind::Disconnect, ..Flowop::default() };
    let once = |flowop| Transaction { iterations: 1, flowops: vec![flowop], ..Transaction::default() };
    Group {
        strands: 1,
        transactions: vec![
            once(accept),
            Transaction { duration_ns: 3_000_000_000, ..once(read) },
            once(disconnect),
        ],
        ..Group::default()
    }
}

#[test]
fn headers_are_those_of_the_capture() {
    let header = Header {
        order: Order::Little,
        phase: Phase::One,
        infos: 0,
        protocols: vec![1],
        version: "0.3.1".into(),
    };
    let bytes = header.encode(Layout::F);
    assert_eq!(bytes.len(), 352);
    at(&bytes, 0, b"0xbadcafedeadbeef\0");
    at(&bytes, 0x20, &[0xdc, 0xba, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    at(&bytes, 0x30, &[0, 0, 0, 0, 1, 0, 0, 0]);
    at(&bytes, 0x50, b"0.3.1\0");
    assert_eq!(Header::decode(&bytes), Ok(header.clone()));
    let long = Header { version: "0.3".into(), order: Order::Big, ..header };
    let bytes = long.encode(Layout::A);
    assert_eq!(bytes.len(), 464);
    at(&bytes, 0x20, &[0, 0, 0xba, 0xdc, 0, 0, 0, 1]);
    assert!(Header::decode(&bytes).unwrap().is_long());
    assert_eq!(Header::decode(&[0; 96]), Err(WireError::Magic));
}

#[test]
fn the_workorder_of_the_capture_is_3360_bytes() {
    let bytes = encode_workorder(&captured_group(), Layout::F, Order::Little);
    assert_eq!(bytes.len(), 3360);
    at(&bytes, 0, &[0xdc, 0xba, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    at(&bytes, 0x18, &[1, 0, 0, 0, 0, 0, 0, 0]);
    at(&bytes, 0x30, &[1, 0, 0, 0, 0, 0, 0, 0]);
    at(&bytes, 0xd0, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    at(&bytes, 0xe8, &[0, 0xc8, 0, 0, 0, 0, 0, 0]);
    for offset in [0xf0, 0xf8, 0x100] {
        at(&bytes, offset, &[1, 0, 0, 0, 0, 0, 0, 0]);
    }
    at(&bytes, 0x210, b"127.0.0.1\0");
    at(&bytes, 0x460, &[5, 0, 0, 0, 0, 0, 0, 0]);
    at(&bytes, 0x470, &[1, 0, 0, 0, 1, 0, 0, 0]);
    at(&bytes, 0x488, &[1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x5e, 0xd0, 0xb2, 0, 0, 0, 0]);
    at(&bytes, 0x518, &[0, 0x20, 0, 0]);
    at(&bytes, 0x548, &[10, 0, 0, 0, 0, 0, 0, 0, 1]);
    at(&bytes, 0x8b8, &[1, 0, 0, 0]);
    at(&bytes, 0x8c8, &[1, 0, 0, 0, 2, 0, 0, 0]);
    at(&bytes, 0x9a0, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    at(&bytes, 0xd10, &[4, 0, 0, 0]);
}

/// (layout, size, count, timeout, encapsulation, cc, remote host, type, connection), as the specification has them.
const TABLE: [(Layout, [usize; 8]); 6] = [
    (Layout::A, [928, 56, 64, 32, 128, 320, 912, 916]),
    (Layout::B, [928, 56, 64, 32, 128, 320, 912, 916]),
    (Layout::C, [928, 48, 56, 64, 124, 316, 912, 916]),
    (Layout::D, [928, 48, 56, 64, 128, 320, 912, 916]),
    (Layout::E, [936, 48, 64, 72, 136, 328, 920, 924]),
    (Layout::F, [944, 48, 72, 80, 144, 336, 928, 932]),
];

fn full_flowop() -> Flowop {
    Flowop {
        kind: Kind::Accept,
        size: 0x0102_0304,
        random: (5, 6),
        rsize: 7,
        protocol: Protocol::Sctp,
        port: 9,
        flags: 0x1fe,
        files: 10,
        encapsulation_port: 9899,
        duration_ns: 11_000,
        window: 12,
        count: 13,
        repeat: 14,
        batch: 15,
        timeout_ns: 16_000,
        bblog: 17,
        sctp: Sctp {
            words: [21, 22, 23, 24, 25, 26, 27, 28, 29],
            streams: [31, 32, 33],
            pr_value: 34,
            pr_policy: "ttl".into(),
        },
        congestion: "cubic".into(),
        stack: "fastack".into(),
        folder: "/data".into(),
        remote_host: "198.18.0.2".into(),
        local_host: "198.18.0.1".into(),
        engine: "pkcs11".into(),
        cipher: "c".into(),
        method: "m".into(),
        connection: 3,
    }
}

#[test]
fn every_layout_has_its_offsets() {
    for (layout, [total, count, timeout, encapsulation, cc, host, kind, connection]) in TABLE {
        let group = Group {
            transactions: vec![Transaction { flowops: vec![full_flowop()], ..Transaction::default() }],
            ..Group::default()
        };
        let all = encode_workorder(&group, layout, Order::Little);
        let bytes = &all[GROUP_BYTES + TRANSACTION_BYTES..];
        assert_eq!(bytes.len(), total, "{layout:?}");
        at(bytes, count, &[13, 0, 0, 0, 0, 0, 0, 0]);
        at(bytes, timeout, &16_000u64.to_le_bytes());
        at(bytes, encapsulation, &9899u32.to_le_bytes());
        at(bytes, cc, b"cubic\0");
        at(bytes, cc + 32, b"fastack\0");
        at(bytes, cc + 64, b"/data\0");
        at(bytes, host, b"198.18.0.2\0");
        at(bytes, host + 256, b"198.18.0.1\0");
        at(bytes, kind, &[5, 0, 0, 0]);
        at(bytes, connection, &[3, 0, 0, 0]);
        at(bytes, cc - 8, b"ttl\0");
        at(bytes, cc - 12, &[34, 0, 0, 0]);
        at(bytes, cc - 20, &[31, 0, 32, 0, 33, 0, 0, 0]);
    }
}

#[test]
fn every_layout_reads_what_it_wrote_in_both_orders() {
    for layout in Layout::ALL {
        for order in [Order::Little, Order::Big] {
            let sent = full_flowop();
            let group = Group {
                transactions: vec![Transaction { flowops: vec![sent.clone()], ..Transaction::default() }],
                ..Group::default()
            };
            let bytes = encode_workorder(&group, layout, order);
            let read = decode_flowop(&bytes[GROUP_BYTES + TRANSACTION_BYTES..], layout, order).unwrap();
            let offsets = layout.offsets();
            let expected = Flowop {
                repeat: offsets.repeat.map_or(1, |_| sent.repeat),
                batch: offsets.batch.map_or(1, |_| sent.batch),
                bblog: offsets.bblog.map_or(0, |_| sent.bblog),
                ..sent
            };
            assert_eq!(read, expected, "{layout:?} {order:?}");
        }
    }
}

#[test]
fn layouts_are_told_apart_by_a_first_accept() {
    let accept = captured_group().transactions.remove(0).flowops.remove(0);
    for (flowop, layouts) in [
        (accept.clone(), [Layout::B, Layout::C, Layout::D, Layout::E, Layout::F]),
        (
            Flowop { window: 0, count: 5000, timeout_ns: 0, ..accept },
            [Layout::B, Layout::C, Layout::D, Layout::E, Layout::F],
        ),
    ] {
        for layout in layouts {
            for order in [Order::Little, Order::Big] {
                let group = Group {
                    transactions: vec![Transaction {
                        flowops: vec![flowop.clone()],
                        ..Transaction::default()
                    }],
                    ..Group::default()
                };
                let bytes = encode_workorder(&group, layout, order);
                assert_eq!(detect(&bytes[GROUP_BYTES + TRANSACTION_BYTES..], order), Ok(layout));
            }
        }
    }
}

#[test]
fn acknowledgements_commands_and_goodbyes_are_those_of_the_capture() {
    let bytes = encode_p2_ack(&Ack::yes(), &[[0, 34071, 0, 0, 0, 0, 0, 0]], Order::Little);
    assert_eq!(bytes.len(), 196 + 288);
    at(&bytes, 0, b"OK\0");
    at(&bytes, 0xc0, &[1, 0, 0, 0]);
    at(&bytes, 196 + 0x100, &[0, 0, 0, 0, 0x17, 0x85, 0, 0]);
    assert_eq!(decode_p2_ack(&bytes, Order::Little), Ok((Ack::yes(), 1)));
    assert_eq!(decode_ports(&bytes[196..], Order::Little).unwrap()[1], 34071);

    let bytes = Command::Next(2).encode(Order::Little);
    assert_eq!(bytes.len(), 72);
    at(&bytes, 0, b"uperf_command\0");
    at(&bytes, 0x40, &[0, 0, 0, 0, 2, 0, 0, 0]);
    at(&Command::SendStats.encode(Order::Little), 0x40, &[2, 0, 0, 0, 0, 0, 0, 0]);
    for command in [Command::Next(7), Command::Abort, Command::SendStats] {
        assert_eq!(Command::decode(&command.encode(Order::Big), Order::Big), Ok(command));
    }
    assert_eq!(Command::decode(&[0; 72], Order::Little), Err(WireError::CommandMagic));

    let mut bytes = vec![0; 616];
    bytes[..36].copy_from_slice(b"So Long, and Thanks for All the Fish");
    bytes[0x40..0x50].copy_from_slice(&[0xaa, 0, 0, 0, 0, 0, 0, 0, 0x2d, 0x1b, 0x6d, 0x3c, 1, 0, 0, 0]);
    bytes[0x58..0x60].copy_from_slice(&[0, 0x40, 0xd9, 0x3f, 1, 0, 0, 0]);
    bytes[0x60..0x68].copy_from_slice(&[0xcd, 0xfe, 9, 0, 0, 0, 0, 0]);
    bytes[0x68..0x6f].copy_from_slice(b"Warning");
    let goodbye = Goodbye::decode(&bytes, Order::Little).unwrap();
    assert_eq!(goodbye.kind, GoodbyeKind::Error);
    assert_eq!(
        (goodbye.elapsed_ns, goodbye.bytes, goodbye.operations),
        (5_308_750_637, 5_366_169_600, 655_053)
    );
    assert_eq!(goodbye.encode(Order::Little), bytes);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..1200)) {
        fuzz_decode(&bytes);
    }
}
