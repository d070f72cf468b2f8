//! Sets of named bits as the ethtool family sends them (Documentation/networking/ethtool-netlink.rst, "Bit sets").

use std::collections::BTreeMap;

use netlink_packet_core::DecodeError;

use super::attribute::{Attribute, Attributes};

const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITSET_VALUE: u16 = 4;
const BITS_BIT: u16 = 1;
const BIT_INDEX: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// The bits that a bit set lists, by name, with their values.
///
/// With a mask, a bit that is listed without the VALUE flag is off; without one, a bit that is listed is on.
pub(crate) fn decode(set: &Attributes<'_>) -> Result<BTreeMap<String, bool>, DecodeError> {
    if set.has(BITSET_VALUE) {
        return Err(DecodeError::from("a compact bit set, which was not asked for"));
    }
    let listed_is_on = set.has(BITSET_NOMASK);
    let mut bits = BTreeMap::new();
    let Some(list) = set.nest(BITSET_BITS)? else { return Ok(bits) };
    for bit in list.all(BITS_BIT) {
        let bit = Attributes::parse(bit)?;
        let name = match (bit.text(BIT_NAME)?, bit.u32(BIT_INDEX)?) {
            (Some(name), _) => name,
            (None, Some(index)) => format!("bit-{index}"),
            (None, None) => return Err(DecodeError::from("a bit without name and index")),
        };
        bits.insert(name, listed_is_on || bit.has(BIT_VALUE));
    }
    Ok(bits)
}

/// A bit set that changes the bits of `wanted` and no other.
pub(crate) fn encode(kind: u16, wanted: &BTreeMap<String, bool>) -> Attribute {
    let bit = |(name, on): (&String, &bool)| {
        let mut attributes = vec![Attribute::text(BIT_NAME, name)];
        attributes.extend(on.then(|| Attribute::flag(BIT_VALUE)));
        Attribute::nest(BITS_BIT, attributes)
    };
    Attribute::nest(kind, vec![Attribute::nest(BITSET_BITS, wanted.iter().map(bit).collect())])
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;
    use proptest::prelude::*;

    use super::*;

    fn round_trip(attribute: Attribute) -> BTreeMap<String, bool> {
        let attributes = [attribute];
        let mut bytes = vec![0; attributes.as_slice().buffer_len()];
        attributes.as_slice().emit(&mut bytes);
        decode(&Attributes::parse(&bytes).unwrap().nest(9).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn a_listed_bit_without_value_is_off_under_a_mask_and_on_without_one() {
        let wanted = BTreeMap::from([("gro".to_owned(), true), ("tso".to_owned(), false)]);
        assert_eq!(round_trip(encode(9, &wanted)), wanted);

        let bit =
            Attribute::nest(BITS_BIT, vec![Attribute::u32(BIT_INDEX, 3), Attribute::text(BIT_NAME, "tso")]);
        let set = vec![Attribute::flag(BITSET_NOMASK), Attribute::nest(BITSET_BITS, vec![bit])];
        assert_eq!(round_trip(Attribute::nest(9, set)), BTreeMap::from([("tso".to_owned(), true)]));
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            if let Ok(set) = Attributes::parse(&bytes) {
                let _ = decode(&set);
            }
        }
    }
}
