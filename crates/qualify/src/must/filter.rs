//! Which bucket of a multicast hash table an address falls in.

use linerate_model::bench::frame::MacAddress;

/// CRC-32 of IEEE Std 802.3 over an address, as it stands in the shift register: most significant bit first, not inverted.
pub fn address_crc(mac: MacAddress) -> u32 {
    let mut crc = u32::MAX;
    for byte in mac {
        for bit in 0..8 {
            let feedback = (crc >> 31) ^ u32::from((byte >> bit) & 1);
            crc = (crc << 1) ^ if feedback == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    crc
}

/// The six highest bits of the CRC: one of 64 buckets (8139, pcnet, ne2000 and many others).
pub fn bucket_high(mac: MacAddress) -> u8 {
    (address_crc(mac) >> 26) as u8
}

/// The nine lowest bits of the little-endian CRC: one of 512 buckets (tulip's hash mode).
pub fn bucket_low(mac: MacAddress) -> u16 {
    (address_crc(mac).reverse_bits() & 0x1ff) as u16
}

/// Bits 47 to 36 of the address: one of 4096 buckets (Intel 8254x and later, `MO` 0).
pub fn bucket_slice(mac: MacAddress) -> u16 {
    (u16::from(mac[4]) >> 4) | (u16::from(mac[5]) << 4)
}

/// The hardware address of an IPv4 group (RFC 1112 section 6.4).
pub fn group_v4(group: std::net::Ipv4Addr) -> MacAddress {
    let [_, b, c, d] = group.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

/// The hardware address of an IPv6 group (RFC 2464 section 7).
pub fn group_v6(group: std::net::Ipv6Addr) -> MacAddress {
    let octets = group.octets();
    [0x33, 0x33, octets[12], octets[13], octets[14], octets[15]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_one_of_ethernet() {
        // Reflected and inverted, it is the CRC-32 that everything else prints.
        let reflected = |bytes: [u8; 6]| !address_crc(bytes).reverse_bits();
        assert_eq!(reflected(*b"123456"), 0x0972_d361);
    }

    #[test]
    fn buckets_are_within_their_tables_and_spread() {
        let mut seen = std::collections::BTreeSet::new();
        for last in 0..=255 {
            let mac = [0x01, 0, 0x5e, 0, 1, last];
            assert!(bucket_high(mac) < 64 && bucket_low(mac) < 512 && bucket_slice(mac) < 4096);
            seen.insert(bucket_high(mac));
        }
        assert_eq!(seen.len(), 64);
    }
}
