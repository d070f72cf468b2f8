//! The payload: the printable ASCII characters in order, again and again, from the start of every buffer.

const FIRST: u8 = b' ';
const LAST: u8 = b'~';

/// Fills a buffer.
pub(crate) fn fill(buffer: &mut [u8]) {
    for (byte, value) in buffer.iter_mut().zip((FIRST..=LAST).cycle()) {
        *byte = value;
    }
}

/// A buffer whose start is `offset` past a multiple of `align` bytes; `align` 0 leaves it where the allocator put it.
#[derive(Debug)]
pub(crate) struct Aligned {
    storage: Vec<u8>,
    start: usize,
}

impl Aligned {
    pub(crate) fn zeroed(length: usize, align: usize, offset: usize) -> Self {
        let storage = vec![0; length + align];
        let address = storage.as_ptr() as usize;
        let start = if align == 0 { 0 } else { (align - address % align + offset) % align };
        let mut storage = storage;
        storage.truncate(start + length);
        Self { storage, start }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..]
    }

    /// Where the first byte lies, for `-v`.
    pub(crate) fn address(&self) -> usize {
        self.storage.as_ptr() as usize + self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_has_95_characters_and_begins_with_a_blank() {
        let mut buffer = [0; 200];
        fill(&mut buffer);
        assert_eq!(&buffer[..4], b" !\"#");
        assert_eq!(buffer[94], b'~');
        assert_eq!(buffer[95..190], buffer[..95]);
    }

    #[test]
    fn a_buffer_lies_where_it_was_asked_to() {
        for (align, offset) in [(16384, 0), (16384, 5), (64, 64), (1, 0), (0, 3)] {
            let mut buffer = Aligned::zeroed(1000, align, offset);
            assert_eq!(buffer.bytes().len(), 1000);
            if align > 0 {
                assert_eq!(buffer.address() % align, offset % align, "{align}/{offset}");
            }
        }
    }
}
