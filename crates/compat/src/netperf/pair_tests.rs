//! Both state machines against each other, and each against bytes that are split, merged, cut off or hostile.

use proptest::prelude::*;

use super::client::{ClientError, ClientSession, Event};
use super::reply::{Response, Results};
use super::request::{Layout, Length, Pattern, Request, Transport};
use super::server::{Action, Ended, ServerSession};
use super::wire::{MESSAGE_BYTES, Message, OLD_MESSAGE_BYTES};

const SECOND: u64 = 1_000_000_000;

fn request(layout: Layout) -> Request {
    let (pattern, transport) = match layout {
        Layout::Omni | Layout::TcpStream => (Pattern::Stream, Transport::Tcp),
        Layout::TcpMaerts => (Pattern::Maerts, Transport::Tcp),
        Layout::TcpRr => (Pattern::Rr, Transport::Tcp),
        Layout::UdpRr => (Pattern::Rr, Transport::Udp),
        Layout::TcpCrr => (Pattern::Crr, Transport::Tcp),
        Layout::TcpCc => (Pattern::Cc, Transport::Tcp),
        Layout::UdpStream => (Pattern::Stream, Transport::Udp),
    };
    Request::new(layout, pattern, transport, Length::Seconds(1))
}

/// Feeds what the server sends to the client in pieces of `cut` bytes; what the client makes of it.
fn deliver(
    server: &mut ServerSession,
    client: &mut ClientSession,
    cut: usize,
) -> (Vec<Action>, Vec<Result<Event, ClientError>>) {
    let (mut others, mut bytes) = (Vec::new(), Vec::new());
    while let Some(action) = server.poll() {
        match action {
            Action::Send(message) => bytes.extend_from_slice(message.bytes()),
            other => others.push(other),
        }
    }
    let mut events = Vec::new();
    for part in bytes.chunks(cut) {
        match client.bytes(part) {
            Ok(None) => {}
            Ok(Some(event)) => events.push(Ok(event)),
            Err(error) => events.push(Err(error)),
        }
    }
    (others, events)
}

proptest! {
    #[test]
    fn a_test_runs_through_whatever_the_pieces(cut in 1usize..1500, index in 0usize..8, phrase in any::<bool>()) {
        let layout = Layout::ALL[index];
        let passphrase = phrase.then(|| "open".to_owned());
        let (mut server, mut client) = (ServerSession::new(passphrase.clone(), 0), ClientSession::new());
        let mut stream = Vec::new();
        if let Some(phrase) = &passphrase {
            stream.extend_from_slice(Message::passphrase(phrase).bytes());
        }
        let asked = request(layout);
        stream.extend_from_slice(client.ask(&asked, 0).bytes());
        for part in stream.chunks(cut) {
            server.bytes(part, 1);
        }
        let opened = server.poll();
        prop_assert!(matches!(&opened, Some(Action::Open(got)) if got.layout == layout), "{:?}", opened);
        server.opened(Ok(&Response { port: 4000, ..Response::default() }));
        let (actions, events) = deliver(&mut server, &mut client, cut);
        prop_assert_eq!(actions, vec![Action::Run]);
        prop_assert!(matches!(&events[..], [Ok(Event::Ready(response))] if response.port == 4000));
        server.finished(Ok(&Results { transactions: 5, received_bytes: 9, ..Results::default() }));
        let (_, events) = deliver(&mut server, &mut client, cut);
        prop_assert!(matches!(&events[..], [Ok(Event::Done(_))]));
        server.closed();
        prop_assert_eq!(server.poll(), Some(Action::Close(Ended::ByClient)));
    }

    #[test]
    fn hostile_answers_only_end_the_client(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let mut client = ClientSession::new();
        client.ask(&request(Layout::Omni), 0);
        for part in bytes.chunks(100) {
            if client.bytes(part).is_err() {
                return Ok(());
            }
        }
        let _error = client.closed();
    }
}

#[test]
fn a_wrong_or_late_passphrase_closes() {
    let mut server = ServerSession::new(Some("right".into()), 0);
    server.bytes(Message::passphrase("wrong").bytes(), 1);
    assert_eq!(server.poll(), Some(Action::Close(Ended::Passphrase)));
    let mut server = ServerSession::new(Some("right".into()), 0);
    assert_eq!(server.deadline_ns(), Some(20 * SECOND));
    server.timeout(20 * SECOND);
    assert_eq!(server.poll(), Some(Action::Close(Ended::Passphrase)));
}

#[test]
fn a_client_of_netperf_2_5_is_told_apart() {
    let mut server = ServerSession::new(None, 0);
    server.bytes(&[0; OLD_MESSAGE_BYTES], SECOND);
    assert_eq!(server.poll(), None);
    server.timeout(12 * SECOND);
    assert_eq!(server.poll(), Some(Action::Close(Ended::OldClient)));
    let mut server = ServerSession::new(None, 0);
    server.bytes(&[0; 100], SECOND);
    server.timeout(12 * SECOND);
    assert_eq!(server.poll(), Some(Action::Close(Ended::Partial(100))));
}

#[test]
fn an_unknown_request_is_answered_and_the_connection_stays() {
    let mut server = ServerSession::new(None, 0);
    server.bytes(Message::new(4, -1).bytes(), 1);
    assert!(matches!(server.poll(), Some(Action::Send(m)) if m.second() == 998));
    server.bytes(Message::new(5, 0).bytes(), 1);
    assert!(matches!(server.poll(), Some(Action::Send(m)) if m.kind() == 5 && m.f32(8) == 100.0));
    server.bytes(request(Layout::Omni).encode().bytes(), 1);
    assert!(matches!(server.poll(), Some(Action::Open(_))));
}

#[test]
fn a_flood_of_requests_is_cut_off() {
    let mut server = ServerSession::new(None, 0);
    server.bytes(request(Layout::Omni).encode().bytes(), 1);
    for _ in 0..20 {
        server.bytes(&[7; MESSAGE_BYTES], 1);
    }
    assert!(matches!(server.poll(), Some(Action::Open(_))));
    assert_eq!(server.poll(), Some(Action::Close(Ended::Flood)));
}

#[test]
fn errors_name_what_failed() {
    let (mut server, mut client) = (ServerSession::new(None, 0), ClientSession::new());
    server.bytes(client.ask(&request(Layout::Omni), 0).bytes(), 1);
    assert!(matches!(server.poll(), Some(Action::Open(_))));
    server.opened(Err(98));
    let (actions, events) = deliver(&mut server, &mut client, 656);
    assert_eq!(actions, [Action::Close(Ended::TestFailed(98))]);
    let text = events[0].as_ref().unwrap_err().to_string();
    assert!(text.starts_with("remote error 98 (Address already in use"), "{text}");
    assert!(ClientSession::new().closed().to_string().contains("control connection"));
}

#[test]
fn a_silent_server_is_given_up() {
    let mut client = ClientSession::new();
    client.ask(&request(Layout::Omni), 0);
    assert!(client.timeout(119 * SECOND).is_ok());
    assert!(matches!(client.timeout(120 * SECOND), Err(ClientError::Silent { seconds: 120, .. })));
}
