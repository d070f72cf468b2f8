//! Membership of link-layer groups as a program would ask for it (netdevice(7), `SIOCADDMULTI`, `SIOCDELMULTI`).
//!
//! Unlike a packet socket's, such a membership stays until it is taken back.

use std::fs;
use std::os::fd::AsRawFd;

use crate::error::{Result, SysError};
use crate::ethtool_ioctl::{named_request, open};

const SIOCADDMULTI: libc::c_ulong = 0x8931;
const SIOCDELMULTI: libc::c_ulong = 0x8932;
const MEMBERS: &str = "/proc/thread-self/net/dev_mcast";

/// Joins the group `mac` on `link`, in the calling thread's network namespace. Memberships are counted: each needs its own
/// [`leave`].
///
/// # Errors
/// ENODEV, EINVAL for an address that is no group, EPERM.
pub fn join(link: &str, mac: [u8; 6]) -> Result<()> {
    change(link, mac, SIOCADDMULTI, "join a link-layer group")
}

/// Leaves the group `mac` on `link`.
///
/// # Errors
/// As [`join`], and ENOENT where nobody joined.
pub fn leave(link: &str, mac: [u8; 6]) -> Result<()> {
    change(link, mac, SIOCDELMULTI, "leave a link-layer group")
}

/// Whether `link` is in the group `mac` by [`join`]: the kernel's protocols join groups of their own, which do not count.
///
/// # Errors
/// The list can't be read.
pub fn is_member(link: &str, mac: [u8; 6]) -> Result<bool> {
    let text = fs::read_to_string(MEMBERS).map_err(|error| SysError::new("read", MEMBERS, error))?;
    Ok(lists(&text, link, mac))
}

/// Lines are index, name, users, users by hand, address.
fn lists(text: &str, link: &str, mac: [u8; 6]) -> bool {
    let address: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    text.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        matches!(words.as_slice(), [_, name, _, by_hand, group]
            if *name == link && *group == address && *by_hand != "0")
    })
}

fn change(link: &str, mac: [u8; 6], request: libc::c_ulong, operation: &'static str) -> Result<()> {
    let socket = open()?;
    let mut ifreq = named_request(link, operation)?;
    let mut address = libc::sockaddr { sa_family: libc::AF_UNSPEC as _, sa_data: [0; 14] };
    for (to, from) in address.sa_data.iter_mut().zip(mac) {
        *to = from as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_hwaddr = address;
    // SAFETY: the request reads an ifreq with a hardware address, which outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut ifreq) } < 0 {
        return Err(SysError::last(operation, link));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memberships_by_hand_count() {
        let text = "2    eth0            1     0     333300000001\n3 lr-x 2 1 01005e000001\n";
        assert!(lists(text, "lr-x", [1, 0, 0x5e, 0, 0, 1]));
        assert!(!lists(text, "eth0", [0x33, 0x33, 0, 0, 0, 1]));
        assert!(!lists("", "eth0", [0; 6]) && !lists("a b\n\n", "b", [0; 6]));
    }

    #[test]
    fn a_missing_link_is_refused() {
        assert_eq!(join("lr-none", [1, 0, 0x5e, 1, 1, 1]).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
