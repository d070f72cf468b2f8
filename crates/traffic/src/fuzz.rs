//! For fuzzers: what strangers may send to data ports, over any bytes.

use crate::preamble;
use crate::side::Token;
use crate::udp_handshake;
use crate::udp_stream;

/// The token that the decoders take, so that a corpus can have right ones.
const TOKEN: [u8; 16] = [7; 16];

/// Feeds any bytes to the decoders of TCP's preamble, UDP's handshake and the datagrams of udp-stream: none may panic.
pub fn fuzz_decode(bytes: &[u8]) {
    let token = Token::from_bytes(TOKEN);
    if let Some(preamble) = bytes.first_chunk::<{ preamble::LEN }>()
        && let Some(claim) = preamble::decode(preamble, &token)
    {
        assert_eq!(preamble::encode(claim, &token), *preamble, "a claim has one form");
    }
    for stream in [0, 1] {
        let _ = udp_handshake::decode_request(bytes, stream, &token);
        let _ = udp_handshake::decode_answer(bytes, stream);
    }
    udp_stream::fuzz_decode(bytes);
}
