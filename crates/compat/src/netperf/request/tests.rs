use super::*;

/// The request of a default client for TCP_STREAM of 1 s, as seen on the wire.
fn captured() -> Message {
    let words: [u32; 40] = [
        0x61, !0, !0, !0, 8, 0, 2, !0, !0, !0, 8, 0, 0, !0, 0x20, 0, 1, 0, 0, !0, !0, !0, 0, 4, 1, 6, 4, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, !0, !0,
    ];
    let mut message = Message::new(0, 0);
    for (index, word) in words.into_iter().enumerate() {
        message.put_u32(4 * index, word);
    }
    message
}

#[test]
fn a_captured_request_is_read_and_made_again() {
    let request = Request::decode(&captured()).unwrap();
    assert_eq!((request.pattern, request.transport), (Pattern::Stream, Transport::Tcp));
    assert_eq!((request.length, request.send_width, request.bind_cpu), (Length::Seconds(1), 2, -1));
    assert!(request.routing && !request.measure_cpu);
    assert_eq!(request.encode(), captured());
}

#[test]
fn every_layout_goes_there_and_back() {
    let tests = [
        (Layout::Omni, Pattern::Crr, Transport::Tcp),
        (Layout::Omni, Pattern::Rr, Transport::Udp),
        (Layout::TcpStream, Pattern::Stream, Transport::Tcp),
        (Layout::TcpMaerts, Pattern::Maerts, Transport::Tcp),
        (Layout::TcpRr, Pattern::Rr, Transport::Tcp),
        (Layout::UdpRr, Pattern::Rr, Transport::Udp),
        (Layout::TcpCrr, Pattern::Crr, Transport::Tcp),
        (Layout::TcpCc, Pattern::Cc, Transport::Tcp),
        (Layout::UdpStream, Pattern::Stream, Transport::Udp),
    ];
    for (layout, pattern, transport) in tests {
        let mut request = Request::new(layout, pattern, transport, Length::Seconds(9));
        request.receive_buffer = 5000;
        request.measure_cpu = true;
        request.port = 4242;
        request.family = if layout == Layout::Omni { 6 } else { 4 };
        if layout == Layout::Omni {
            request.server_address = Some("fe80::1:2".parse().unwrap());
            request.congestion = "cubic".into();
        }
        if layout == Layout::TcpStream {
            request.receive_size = 0;
        }
        if layout == Layout::TcpMaerts {
            request.send_size = 777;
        }
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
}

#[test]
fn what_is_not_offered_is_told() {
    assert_eq!(Request::decode(&Message::new(77, -1)), Err(RequestError::UnknownType(77)));
    let mut sctp = captured();
    sctp.put_u32(100, 132);
    assert!(matches!(Request::decode(&sctp), Err(RequestError::Unsupported { protocol: 132, .. })));
}
