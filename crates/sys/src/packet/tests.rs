use std::time::{Duration, Instant};

use linerate_testkit::need;

use super::*;
use crate::poll::{PollSet, Readiness};

/// EtherType of a test's own, so that tests that run at the same time do not hear each other.
fn port(ether_type: u16, offload: bool, frame_bytes: u32) -> (PacketSocket, Ring) {
    let socket = PacketSocket::open("lo").unwrap();
    if offload {
        socket.set_offload().unwrap();
    }
    socket.set_ignore_outgoing().unwrap();
    let ring = socket.ring(RingSize::new(frame_bytes, 64, 1 << 24).unwrap()).unwrap();
    socket.bind(ether_type).unwrap();
    (socket, ring)
}

fn frame(ether_type: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend((14..length).map(|at| at as u8));
    bytes
}

fn next<T>(socket: &PacketSocket, ring: &mut Ring, mut take: impl FnMut(Captured<'_>) -> T) -> T {
    let end = Instant::now() + Duration::from_secs(5);
    let mut poll = PollSet::new();
    poll.add(socket.as_fd(), Readiness::READ);
    while Instant::now() < end {
        if let Some(taken) = ring.next(&mut take) {
            return taken;
        }
        poll.wait(Some(100_000_000)).unwrap();
    }
    panic!("no frame within 5 s");
}

#[test]
fn frames_come_back_whole_and_in_order() {
    need!(root());
    let (socket, mut ring) = port(0x88b5, false, 2048);
    let sent: Vec<_> = (14..1500).step_by(7).map(|length| frame(0x88b5, length)).collect();
    let mut sender = FrameSender::new(&socket, false);
    // A few at a time: the ring is small, and goes round several times.
    for batch in sent.chunks(20) {
        assert_eq!(sender.send(&socket, &[], batch).unwrap(), batch.len());
        for frame in batch {
            next(&socket, &mut ring, |got| {
                assert_eq!(got.bytes, frame);
                assert_eq!((got.length as usize, got.packet_type), (frame.len(), 0));
                assert!(got.tag.is_none() && got.time_ns > 1_600_000_000_000_000_000);
            });
        }
    }
    assert!(ring.next(|_| ()).is_none());
    assert_eq!(socket.take_drops().unwrap(), 0);
}

#[test]
fn a_refused_frame_ends_the_batch_and_tells_why_next() {
    need!(root());
    let (socket, _ring) = port(0x88b6, false, 2048);
    let frames = [frame(0x88b6, 60), frame(0x88b6, 70_000), frame(0x88b6, 60)];
    let mut sender = FrameSender::new(&socket, false);
    assert_eq!(sender.send(&socket, &[], &frames).unwrap(), 1);
    let error = sender.send(&socket, &[], &frames[1..]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(sender.send(&socket, &[], &frames[2..]).unwrap(), 1);
}

#[test]
fn the_offload_header_goes_both_ways() {
    need!(root());
    // Local experimental 2 carries no IP, so only the header's absence of work is seen; segmentation is tested on veth.
    let (socket, mut ring) = port(0x88b7, true, 2048);
    let mut sender = FrameSender::new(&socket, true);
    let bytes = frame(0x88b7, 200);
    // NEEDS_CSUM, start 34 (the kernel refuses one before byte 20), offset 16.
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0];
    assert_eq!(sender.send(&socket, &[header], &[&bytes]).unwrap(), 1);
    next(&socket, &mut ring, |got| {
        assert_eq!(got.bytes, bytes);
        assert_eq!((got.offload[0], &got.offload[6..]), (1, [34, 0, 16, 0].as_slice()));
        assert!(got.checksum_not_ready && !got.checksum_valid);
    });
}

#[test]
fn what_does_not_fit_is_cut_and_what_finds_no_room_is_counted() {
    need!(root());
    let (socket, mut ring) = port(0x88b8, false, 256);
    let mut sender = FrameSender::new(&socket, false);
    let long = frame(0x88b8, 1000);
    assert_eq!(sender.send(&socket, &[], &[&long]).unwrap(), 1);
    next(&socket, &mut ring, |got| {
        assert!(got.bytes.len() >= 256 && got.bytes.len() < 1000 && got.length == 1000);
    });
    let flood = vec![frame(0x88b8, 60); 100];
    let mut sent = 0;
    while sent < 2000 {
        sent += sender.send(&socket, &[], &flood).unwrap();
    }
    let mut kept = 0;
    while ring.next(|_| ()).is_some() {
        kept += 1;
    }
    assert_eq!(kept + socket.take_drops().unwrap() as usize, sent);
    assert_eq!(socket.take_drops().unwrap(), 0);
}

#[test]
fn a_missing_link_is_named() {
    need!(root());
    let error = PacketSocket::open("lr-none").unwrap_err();
    assert_eq!(error.to_string(), "find link on lr-none: No such device (os error 19)");
}

#[test]
fn memberships_are_taken_or_refused_by_the_kernel() {
    need!(root());
    let socket = PacketSocket::open("lo").unwrap();
    for membership in [
        Membership::Promiscuous,
        Membership::AllMulticast,
        Membership::Group([1, 0, 0x5e, 0, 0, 1]),
        Membership::Unicast([2, 0, 0, 0, 0, 1]),
    ] {
        socket.join(membership).unwrap();
    }
    socket.set_own_fcs().unwrap();
    socket.set_bypass_qdisc().unwrap();
    socket.set_send_timeout(1500).unwrap();
}
