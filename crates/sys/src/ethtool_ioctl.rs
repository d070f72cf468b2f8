//! The part of ethtool that only the ioctl gives whole: driver information and driver statistics.
//!
//! Statistics by name over netlink are cut at 64 KiB by the attribute's 16-bit length; the ioctl has no such limit.
//! Source: linux/ethtool.h, linux/sockios.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::{Result, SysError};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const ETH_GSTRING_LEN: usize = 32;
/// struct ethtool_drvinfo: a command, five texts, 12 reserved bytes, five counts.
const DRVINFO_LEN: usize = 4 + 5 * 32 + 12 + 5 * 4;
/// The kernel writes as many entries as the driver has by then, which may be more than it said before.
const SPARE_ENTRIES: usize = 16 * 1024;
const MAX_ENTRIES: usize = 1 << 20;

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
    let mut buffer = words(DRVINFO_LEN);
    call(&open()?, link, "read driver information", ETHTOOL_GDRVINFO, &[], &mut buffer)?;
    let bytes = bytes_of(&buffer);
    let text = |index: usize| text(&bytes[4 + index * 32..4 + (index + 1) * 32]);
    Ok(DriverInfo { driver: text(0), version: text(1), firmware: text(2), bus: text(3) })
}

/// The driver's own statistics of `link` with their names, in the driver's order (`ethtool -S`).
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver has none, EAGAIN when their number changed in between.
pub fn statistics(link: &str) -> Result<Vec<(String, u64)>> {
    let socket = open()?;
    let count = set_size(&socket, link)?;
    if count > MAX_ENTRIES {
        let cause = io::Error::from(io::ErrorKind::InvalidData);
        return Err(SysError::new("count driver statistics", link, cause));
    }
    let room = count + SPARE_ENTRIES;
    let mut names = words(12 + room * ETH_GSTRING_LEN);
    let request = [ETH_SS_STATS, count as u32];
    call(&socket, link, "read names of driver statistics", ETHTOOL_GSTRINGS, &request, &mut names)?;
    let mut values = words(8 + room * 8);
    call(&socket, link, "read driver statistics", ETHTOOL_GSTATS, &[count as u32], &mut values)?;
    let (names, values) = (bytes_of(&names), bytes_of(&values));
    let counted = [word_at(names, 8), word_at(values, 4)];
    if counted != [count as u32; 2] {
        return Err(SysError::new(
            "read driver statistics",
            link,
            io::Error::from_raw_os_error(libc::EAGAIN),
        ));
    }
    let names = names[12..].chunks_exact(ETH_GSTRING_LEN).map(text);
    let values =
        values[8..].chunks_exact(8).filter_map(|value| Some(u64::from_ne_bytes(value.try_into().ok()?)));
    Ok(names.zip(values).take(count).collect())
}

/// struct ethtool_sset_info: command, reserved, 64-bit mask of sets, one count for each set that is there.
fn set_size(socket: &OwnedFd, link: &str) -> Result<usize> {
    let mut buffer = words(4 + 4 + 8 + 4);
    let mask = 1u64 << ETH_SS_STATS;
    let halves = [0, 1].map(|half| word_at(&mask.to_ne_bytes(), half * 4));
    call(
        socket,
        link,
        "count driver statistics",
        ETHTOOL_GSSET_INFO,
        &[0, halves[0], halves[1]],
        &mut buffer,
    )?;
    let bytes = bytes_of(&buffer);
    // The mask comes back without the sets that the driver does not have.
    let there = bytes[8..16] != [0; 8];
    Ok(if there { word_at(bytes, 16) as usize } else { 0 })
}

fn open() -> Result<OwnedFd> {
    // SAFETY: socket takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(SysError::last("open a socket", "ethtool ioctl"));
    }
    // SAFETY: the kernel has just returned this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One SIOCETHTOOL: `command` and `request` go into the first words of `buffer`, the answer comes back there.
fn call(
    socket: &OwnedFd,
    link: &str,
    operation: &'static str,
    command: u32,
    request: &[u32],
    buffer: &mut [u64],
) -> Result<()> {
    if link.is_empty() || link.len() >= libc::IFNAMSIZ || link.contains('\0') {
        return Err(SysError::new(operation, link, io::Error::from_raw_os_error(libc::ENODEV)));
    }
    let mut head = std::iter::once(&command).chain(request).copied();
    for word in buffer.iter_mut() {
        let [low, high] = [head.next().unwrap_or(0), head.next().unwrap_or(0)].map(u32::to_ne_bytes);
        *word = u64::from_ne_bytes([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]);
    }
    // SAFETY: an all-zero ifreq is valid: it holds only integers and a pointer that is set below.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in ifreq.ifr_name.iter_mut().zip(link.bytes()) {
        *to = from as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: ifreq and buffer live through the call. The kernel reads the command's fixed head and writes at most its
    // structure: for the counted ones the caller gave room for far more entries than the driver has just announced.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut ifreq) } < 0 {
        return Err(SysError::last(operation, link));
    }
    Ok(())
}

/// A zeroed buffer of at least `bytes` bytes, aligned for the 64-bit fields in it.
fn words(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(8)]
}

fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: every u64 is eight initialised bytes, and a byte needs no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

fn word_at(bytes: &[u8], offset: usize) -> u32 {
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
