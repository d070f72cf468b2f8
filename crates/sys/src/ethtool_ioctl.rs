//! The part of ethtool that only the ioctl gives whole: driver information and driver statistics.
//!
//! Statistics by name over netlink are cut at 64 KiB by the attribute's 16-bit length; the ioctl has no such limit.
//! Source: linux/ethtool.h, linux/sockios.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::{Result, SysError};
use crate::guarded::GuardedBuffer;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const ETH_GSTRING_LEN: usize = 32;
/// struct ethtool_drvinfo: a command, five texts, 12 reserved bytes, five counts.
const DRVINFO_LEN: usize = 4 + 5 * 32 + 12 + 5 * 4;
/// The largest drivers have some ten thousand.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;

/// What a driver says of itself (`ethtool -i`). A text is empty where it says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Name of the driver.
    pub driver: String,
    /// Its version; most drivers of the kernel's tree give the kernel's.
    pub version: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Address on its bus (`0000:00:03.0`).
    pub bus: String,
}

/// Asks the driver of `link`, in the calling thread's network namespace, what it is.
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where there is no driver to ask (loopback).
pub fn driver_info(link: &str) -> Result<DriverInfo> {
    let mut buffer = GuardedBuffer::new(DRVINFO_LEN)?;
    call(&open()?, link, "read driver information", ETHTOOL_GDRVINFO, &[], &mut buffer)?;
    let bytes = buffer.bytes();
    let text = |index: usize| text(&bytes[4 + index * 32..4 + (index + 1) * 32]);
    Ok(DriverInfo { driver: text(0), version: text(1), firmware: text(2), bus: text(3) })
}

/// How much a driver would dump, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DumpLengths {
    pub(crate) eeprom: u32,
    pub(crate) registers: u32,
}

/// How long the dumps of `link`'s driver are; 0 is none.
pub(crate) fn dump_lengths(link: &str) -> Result<DumpLengths> {
    let mut buffer = GuardedBuffer::new(DRVINFO_LEN)?;
    call(&open()?, link, "read driver information", ETHTOOL_GDRVINFO, &[], &mut buffer)?;
    let bytes = buffer.bytes();
    // The last two counts.
    Ok(DumpLengths { eeprom: word_at(bytes, DRVINFO_LEN - 8), registers: word_at(bytes, DRVINFO_LEN - 4) })
}

/// The driver's own statistics of `link` with their names, in the driver's order (`ethtool -S`).
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver has none, EAGAIN when their number changed in between.
pub fn statistics(link: &str) -> Result<Vec<(String, u64)>> {
    let mut statistics = DriverStatistics::open(link)?;
    let values = statistics.read()?;
    Ok(statistics.names.into_iter().zip(values).collect())
}

/// A driver's statistics, their names known, ready to be read again and again.
#[derive(Debug)]
pub struct DriverStatistics {
    link: String,
    socket: OwnedFd,
    names: Vec<String>,
    /// The kernel writes as many entries as the driver has by then, which may be more than it said before.
    buffer: GuardedBuffer,
}

impl DriverStatistics {
    /// Learns the names of the statistics of `link`, in the calling thread's network namespace.
    ///
    /// # Errors
    /// ENODEV without such a link, EOPNOTSUPP where the driver has none, EAGAIN when their number changed in between.
    pub fn open(link: &str) -> Result<Self> {
        let socket = open()?;
        let count = set_size(&socket, link, ETH_SS_STATS)?;
        if count > MAX_ENTRIES {
            let cause = io::Error::from(io::ErrorKind::InvalidData);
            return Err(SysError::new("count driver statistics", link, cause));
        }
        let names = names_of(&socket, link, ETH_SS_STATS, count)?;
        Ok(Self { link: link.to_owned(), socket, names, buffer: GuardedBuffer::new(8 + count * 8)? })
    }

    /// Names of the statistics, in the driver's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Their values, in the order of the names.
    ///
    /// # Errors
    /// ENODEV once the link is gone, EAGAIN when their number has changed.
    pub fn read(&mut self) -> Result<Vec<u64>> {
        let (operation, count) = ("read driver statistics", self.names.len());
        call(&self.socket, &self.link, operation, ETHTOOL_GSTATS, &[count as u32], &mut self.buffer)
            .map_err(longer_is_changed)?;
        let values = self.buffer.bytes();
        check_count(operation, &self.link, word_at(values, 4), count)?;
        let values = values[8..].chunks_exact(8).take(count);
        Ok(values.filter_map(|value| Some(u64::from_ne_bytes(value.try_into().ok()?))).collect())
    }
}

/// A reply that does not fit is one of more statistics than were announced.
/// The `count` names of a set of strings.
pub(crate) fn names_of(socket: &OwnedFd, link: &str, set: u32, count: usize) -> Result<Vec<String>> {
    let operation = "read names of the driver";
    let mut names = GuardedBuffer::new(12 + count * ETH_GSTRING_LEN)?;
    call(socket, link, operation, ETHTOOL_GSTRINGS, &[set, count as u32], &mut names)
        .map_err(longer_is_changed)?;
    let names = names.bytes();
    check_count(operation, link, word_at(names, 8), count)?;
    Ok(names[12..].chunks_exact(ETH_GSTRING_LEN).take(count).map(text).collect())
}

fn longer_is_changed(error: SysError) -> SysError {
    match error.raw_os_error() {
        Some(libc::EFAULT) => {
            SysError::new(error.operation, error.object, io::Error::from_raw_os_error(libc::EAGAIN))
        }
        _ => error,
    }
}

fn check_count(operation: &'static str, link: &str, told: u32, expected: usize) -> Result<()> {
    if told as usize == expected {
        return Ok(());
    }
    Err(SysError::new(operation, link, io::Error::from_raw_os_error(libc::EAGAIN)))
}

/// struct ethtool_sset_info: command, reserved, 64-bit mask of sets, one count for each set that is there.
pub(crate) fn set_size(socket: &OwnedFd, link: &str, set: u32) -> Result<usize> {
    let mut buffer = GuardedBuffer::new(4 + 4 + 8 + 4)?;
    let mask = 1u64 << set;
    let halves = [0, 1].map(|half| word_at(&mask.to_ne_bytes(), half * 4));
    call(
        socket,
        link,
        "count names of the driver",
        ETHTOOL_GSSET_INFO,
        &[0, halves[0], halves[1]],
        &mut buffer,
    )?;
    let bytes = buffer.bytes();
    // The mask comes back without the sets that the driver does not have.
    let there = bytes[8..16] != [0; 8];
    Ok(if there { word_at(bytes, 16) as usize } else { 0 })
}

pub(crate) fn open() -> Result<OwnedFd> {
    // SAFETY: socket takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(SysError::last("open a socket", "ethtool ioctl"));
    }
    // SAFETY: the kernel has just returned this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One SIOCETHTOOL: `command` and `request` go into the first words of `buffer`, the answer comes back there.
pub(crate) fn call(
    socket: &OwnedFd,
    link: &str,
    operation: &'static str,
    command: u32,
    request: &[u32],
    buffer: &mut GuardedBuffer,
) -> Result<()> {
    let mut ifreq = named_request(link, operation)?;
    let head = std::iter::once(&command).chain(request);
    for (place, word) in buffer.bytes_mut().chunks_exact_mut(4).zip(head) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    ifreq.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: ifreq and buffer live through the call. The kernel reads the command's fixed head and writes its structure
    // from the buffer's start on; one longer than the buffer meets the page behind it, where the kernel gives up.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut ifreq) } < 0 {
        return Err(SysError::last(operation, link));
    }
    Ok(())
}

/// A request about `link`, its union all zero.
pub(crate) fn named_request(link: &str, operation: &'static str) -> Result<libc::ifreq> {
    if link.is_empty() || link.len() >= libc::IFNAMSIZ || link.contains('\0') {
        return Err(SysError::new(operation, link, io::Error::from_raw_os_error(libc::ENODEV)));
    }
    // SAFETY: an all-zero ifreq is valid: it holds only integers and pointers that nobody follows as they are.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in ifreq.ifr_name.iter_mut().zip(link.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(ifreq)
}

pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u32 {
    bytes[offset..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word))
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_link_and_one_without_a_driver_are_refused() {
        for name in ["lr-none", "", "a-name-that-is-too-long"] {
            assert_eq!(driver_info(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name:?}");
            assert_eq!(statistics(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
        let error = driver_info("lo").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}");
    }
}
