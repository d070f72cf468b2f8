//! Attributes of the ethtool family: a tree to write, and a checked view to read.

use netlink_packet_core::{DecodeError, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, Nla, NlasIterator};

/// An attribute of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    kind: u16,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Bytes(Vec<u8>),
    Nest(Vec<Attribute>),
}

impl Attribute {
    pub(crate) fn flag(kind: u16) -> Self {
        Self { kind, value: Value::Bytes(Vec::new()) }
    }

    pub(crate) fn u8(kind: u16, value: u8) -> Self {
        Self { kind, value: Value::Bytes(vec![value]) }
    }

    pub(crate) fn u32(kind: u16, value: u32) -> Self {
        Self { kind, value: Value::Bytes(value.to_ne_bytes().to_vec()) }
    }

    pub(crate) fn text(kind: u16, text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        Self { kind, value: Value::Bytes(bytes) }
    }

    pub(crate) fn nest(kind: u16, attributes: Vec<Self>) -> Self {
        Self { kind, value: Value::Nest(attributes) }
    }
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        match &self.value {
            Value::Bytes(bytes) => bytes.len(),
            Value::Nest(attributes) => attributes.as_slice().buffer_len(),
        }
    }

    fn kind(&self) -> u16 {
        match self.value {
            Value::Bytes(_) => self.kind,
            Value::Nest(_) => self.kind | NLA_F_NESTED,
        }
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        match &self.value {
            Value::Bytes(bytes) => buffer.copy_from_slice(bytes),
            Value::Nest(attributes) => attributes.as_slice().emit(buffer),
        }
    }
}

/// The attributes of a reply or of a nest in it. Lengths are checked once, when it is made.
#[derive(Debug, Clone)]
pub(crate) struct Attributes<'a>(Vec<(u16, &'a [u8])>);

impl<'a> Attributes<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let attribute = |nla: netlink_packet_core::NlaBuffer<&'a [u8]>| {
            let (kind, end) = (nla.kind(), usize::from(nla.length()));
            (kind, &nla.into_inner()[NLA_HEADER_SIZE..end])
        };
        NlasIterator::new(bytes).map(|nla| nla.map(attribute)).collect::<Result<_, _>>().map(Self)
    }

    /// The value of the first attribute of this kind.
    pub(crate) fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        self.all(kind).next()
    }

    /// The values of all attributes of this kind, in order, whatever stands between them.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(other, _)| *other == kind).map(|(_, value)| *value)
    }

    /// All attributes in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        self.0.iter().copied()
    }

    pub(crate) fn has(&self, kind: u16) -> bool {
        self.bytes(kind).is_some()
    }

    /// An unsigned number of 1, 2, 4 or 8 bytes.
    pub(crate) fn number(&self, kind: u16) -> Result<Option<u64>, DecodeError> {
        self.bytes(kind).map(|bytes| number(kind, bytes)).transpose()
    }

    pub(crate) fn u32(&self, kind: u16) -> Result<Option<u32>, DecodeError> {
        let narrow = |value| u32::try_from(value).map_err(|_| damaged(kind, "a number over 32 bits"));
        self.number(kind)?.map(narrow).transpose()
    }

    /// A text, which ends at its first NUL if it has one.
    pub(crate) fn text(&self, kind: u16) -> Result<Option<String>, DecodeError> {
        let decode = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8(bytes[..end].to_vec()).map_err(|_| damaged(kind, "text that is not UTF-8"))
        };
        self.bytes(kind).map(decode).transpose()
    }

    pub(crate) fn nest(&self, kind: u16) -> Result<Option<Self>, DecodeError> {
        self.bytes(kind).map(Self::parse).transpose()
    }
}

fn number(kind: u16, bytes: &[u8]) -> Result<u64, DecodeError> {
    match *bytes {
        [a] => Ok(a.into()),
        [a, b] => Ok(u16::from_ne_bytes([a, b]).into()),
        [a, b, c, d] => Ok(u32::from_ne_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(damaged(kind, &format!("a number of {} bytes", bytes.len()))),
    }
}

pub(crate) fn damaged(kind: u16, what: &str) -> DecodeError {
    DecodeError::from(format!("attribute {kind}: {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn emit(attributes: &[Attribute]) -> Vec<u8> {
        let mut bytes = vec![0; attributes.buffer_len()];
        (&attributes).emit(&mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read_again() {
        let inner = vec![Attribute::text(1, "tx"), Attribute::flag(2)];
        let tree = [Attribute::u32(3, 70_000), Attribute::nest(4, inner), Attribute::u8(5, 9)];
        let bytes = emit(&tree);
        let read = Attributes::parse(&bytes).unwrap();
        assert_eq!(read.u32(3).unwrap(), Some(70_000));
        assert_eq!(read.number(5).unwrap(), Some(9));
        assert_eq!(read.number(6).unwrap(), None);
        let nest = read.nest(4).unwrap().unwrap();
        assert_eq!(nest.text(1).unwrap().as_deref(), Some("tx"));
        assert!(nest.has(2) && !nest.has(3));
    }

    #[test]
    fn repeated_attributes_are_all_found_between_others() {
        let bytes =
            emit(&[Attribute::u8(1, 1), Attribute::flag(2), Attribute::u8(1, 2), Attribute::u8(1, 3)]);
        let read = Attributes::parse(&bytes).unwrap();
        assert_eq!(read.all(1).collect::<Vec<_>>(), [[1], [2], [3]]);
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128), kind in 0u16..8) {
            if let Ok(read) = Attributes::parse(&bytes) {
                let _ = (read.u32(kind), read.text(kind), read.has(kind));
                let _ = read.nest(kind).map(|nest| nest.map(|nest| nest.number(kind)));
            }
        }
    }
}
