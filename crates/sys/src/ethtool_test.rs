//! The driver's self-test (`ETHTOOL_TEST`, linux/ethtool.h `struct ethtool_test`).

use std::io;

use crate::error::{Result, SysError};
use crate::ethtool_ioctl::{MAX_ENTRIES, call, names_of, open, set_size, word_at};
use crate::guarded::GuardedBuffer;

const ETHTOOL_TEST: u32 = 0x1a;
const ETH_SS_TEST: u32 = 0;
const FLAG_OFFLINE: u32 = 1;
const FLAG_FAILED: u32 = 2;
/// Command, flags, reserved, length; then a 64-bit number for each test.
const HEAD: usize = 16;

/// What a self-test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The driver says that it passed.
    pub passed: bool,
    /// Results by name, in the driver's order; 0 is passed.
    pub results: Vec<(String, u64)>,
}

/// Runs the self-test of `link`'s driver. The offline one takes the link down for as long as it lasts, and may take half a
/// minute.
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver has no test, EPERM, or the driver's refusal.
pub fn run(link: &str, offline: bool) -> Result<SelfTest> {
    const OPERATION: &str = "run the self-test";
    let socket = open()?;
    let count = set_size(&socket, link, ETH_SS_TEST)?;
    if count > MAX_ENTRIES {
        return Err(SysError::new(OPERATION, link, io::ErrorKind::InvalidData.into()));
    }
    // Without any the kernel is asked all the same: its word for it is the answer.
    let names = if count == 0 { Vec::new() } else { names_of(&socket, link, ETH_SS_TEST, count)? };
    let mut buffer = GuardedBuffer::new(HEAD + 8 * count)?;
    let flags = if offline { FLAG_OFFLINE } else { 0 };
    call(&socket, link, OPERATION, ETHTOOL_TEST, &[flags, 0, count as u32], &mut buffer)?;
    let bytes = buffer.bytes();
    let (numbers, _) = bytes[HEAD..HEAD + 8 * count].as_chunks::<8>();
    let results = names.into_iter().zip(numbers.iter().map(|number| u64::from_ne_bytes(*number))).collect();
    Ok(SelfTest { passed: word_at(bytes, 4) & FLAG_FAILED == 0, results })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_without_one_is_refused_in_the_kernels_words() {
        assert_eq!(run("lr-none", false).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        let error = run("lo", false).unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPERM)), "{error}");
    }
}
