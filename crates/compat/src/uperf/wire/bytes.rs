//! Fields at offsets, in either byte order.

use crate::uperf::wire::WireError;

/// The word by which a master tells its byte order.
pub(crate) const ENDIAN: u32 = 0x0000_BADC;

/// A byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Least byte first.
    Little,
    /// Most byte first.
    Big,
}

impl Order {
    /// This machine's.
    pub fn native() -> Self {
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little }
    }

    /// From the bytes of the endian word.
    pub(crate) fn from_word(bytes: [u8; 4]) -> Result<Self, WireError> {
        match (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)) {
            (ENDIAN, _) => Ok(Self::Little),
            (_, ENDIAN) => Ok(Self::Big),
            (other, _) => Err(WireError::Endian(other)),
        }
    }
}

/// Reads fields of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Fields<'a> {
    /// Over a message of `length` bytes.
    pub(crate) fn new(bytes: &'a [u8], length: usize, order: Order) -> Result<Self, WireError> {
        let bytes = bytes.get(..length).ok_or(WireError::Short(length))?;
        Ok(Self { bytes, order })
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        if let Some(bytes) = self.bytes.get(at..at + N) {
            field.copy_from_slice(bytes);
        }
        field
    }

    pub(crate) fn raw(&self, at: usize) -> [u8; 4] {
        self.array(at)
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        match self.order {
            Order::Little => u16::from_le_bytes(self.array(at)),
            Order::Big => u16::from_be_bytes(self.array(at)),
        }
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        match self.order {
            Order::Little => u32::from_le_bytes(self.array(at)),
            Order::Big => u32::from_be_bytes(self.array(at)),
        }
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        match self.order {
            Order::Little => u64::from_le_bytes(self.array(at)),
            Order::Big => u64::from_be_bytes(self.array(at)),
        }
    }

    /// Text up to the first NUL; what is not UTF-8 is replaced.
    pub(crate) fn text(&self, at: usize, length: usize) -> String {
        let field = self.bytes.get(at..at + length).unwrap_or_default();
        let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    }
}

/// Writes fields of a message that is all zero otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    order: Order,
}

impl Builder {
    pub(crate) fn new(length: usize, order: Order) -> Self {
        Self { bytes: vec![0; length], order }
    }

    fn put(&mut self, at: usize, field: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    }

    pub(crate) fn u16(&mut self, at: usize, value: u16) {
        match self.order {
            Order::Little => self.put(at, &value.to_le_bytes()),
            Order::Big => self.put(at, &value.to_be_bytes()),
        }
    }

    pub(crate) fn u32(&mut self, at: usize, value: u32) {
        match self.order {
            Order::Little => self.put(at, &value.to_le_bytes()),
            Order::Big => self.put(at, &value.to_be_bytes()),
        }
    }

    pub(crate) fn u64(&mut self, at: usize, value: u64) {
        match self.order {
            Order::Little => self.put(at, &value.to_le_bytes()),
            Order::Big => self.put(at, &value.to_be_bytes()),
        }
    }

    /// As much of the text as leaves a NUL behind it.
    pub(crate) fn text(&mut self, at: usize, length: usize, text: &str) {
        let bytes = text.as_bytes();
        self.put(at, &bytes[..bytes.len().min(length - 1)]);
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.bytes
    }
}
