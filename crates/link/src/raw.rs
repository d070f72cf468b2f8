//! Netlink messages as the kernel sends them, for what must be put back exactly as it was.

use std::net::IpAddr;

pub(crate) use linerate_sys::netlink_raw::RawMessage as Raw;

/// Appends an attribute, padded as netlink wants it.
pub(crate) fn push_attribute(payload: &mut Vec<u8>, kind: u16, value: &[u8]) {
    const HEADER: usize = 4;
    let length = u16::try_from(value.len() + HEADER).unwrap_or(u16::MAX);
    payload.extend(length.to_ne_bytes());
    payload.extend(kind.to_ne_bytes());
    payload.extend(&value[..usize::from(length) - HEADER]);
    payload.resize(payload.len().next_multiple_of(4), 0);
}

/// The 32-bit word at an offset, `None` beyond the end.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

/// Family and bytes of an address, as messages of rtnetlink have them.
pub(crate) fn ip_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (nix::libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (nix::libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// The address behind [`ip_bytes`]; `None` for another number of bytes.
pub(crate) fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes behind [`hex`]; `None` for anything else.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_hex_goes_both_ways() {
        let mut payload = Vec::new();
        push_attribute(&mut payload, 3, b"fq\0");
        assert_eq!(payload.len(), 8);
        assert_eq!(unhex(&hex(&payload)), Some(payload));
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
        assert_eq!(word(&[1, 2, 3], 0), None);
    }
}
