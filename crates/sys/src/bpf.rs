//! BPF maps, XDP programs and their links (bpf(2), `linux/bpf.h`). Needs `CAP_BPF` and `CAP_NET_ADMIN` in the initial
//! user namespace.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::error::{Result, SysError};

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_DEVMAP: u32 = 14;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` (`linux/if_link.h`).
const SKB_MODE: u32 = 1 << 1;
const DRV_MODE: u32 = 1 << 2;
/// What the verifier says of a program that it refuses.
const LOG_BYTES: usize = 64 << 10;

/// One instruction (`struct bpf_insn`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Instruction {
    /// Operation.
    pub code: u8,
    /// Destination register in the low four bits, source in the high four.
    pub registers: u8,
    /// Offset of a jump or a memory access.
    pub offset: i16,
    /// Immediate value.
    pub immediate: i32,
}

/// A map.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    value_bytes: usize,
}

impl Map {
    /// An array of `entries` values of `value_bytes` each, all zero.
    ///
    /// # Errors
    /// EPERM without the capabilities.
    pub fn array(entries: u32, value_bytes: u32) -> Result<Self> {
        Self::create("create a BPF array", BPF_MAP_TYPE_ARRAY, entries, value_bytes)
    }

    /// A map of links to redirect to; its values are interface indexes.
    ///
    /// # Errors
    /// EPERM without the capabilities.
    pub fn devices(entries: u32) -> Result<Self> {
        Self::create("create a BPF device map", BPF_MAP_TYPE_DEVMAP, entries, 4)
    }

    /// A map of `AF_XDP` sockets to redirect to, by receive queue.
    ///
    /// # Errors
    /// EPERM without the capabilities.
    pub fn sockets(entries: u32) -> Result<Self> {
        Self::create("create a BPF socket map", BPF_MAP_TYPE_XSKMAP, entries, 4)
    }

    fn create(operation: &'static str, kind: u32, entries: u32, value_bytes: u32) -> Result<Self> {
        #[repr(C)]
        struct Create {
            kind: u32,
            key_bytes: u32,
            value_bytes: u32,
            entries: u32,
            flags: u32,
        }
        let mut attributes = Create { kind, key_bytes: 4, value_bytes, entries, flags: 0 };
        // SAFETY: `Create` is the beginning of `union bpf_attr` for BPF_MAP_CREATE and holds no pointers.
        let fd = unsafe { call(BPF_MAP_CREATE, &mut attributes) }
            .map_err(|cause| SysError::new(operation, "", cause))?;
        Ok(Self { fd, value_bytes: value_bytes as usize })
    }

    /// Sets a value; its length must be the map's.
    ///
    /// # Errors
    /// E2BIG beyond the last entry; EINVAL where the kernel does not like the value; a wrong length.
    pub fn set(&self, key: u32, value: &[u8]) -> Result<()> {
        let operation = "set an entry of a BPF map";
        if value.len() != self.value_bytes {
            return Err(SysError::new(operation, "", io::ErrorKind::InvalidInput.into()));
        }
        let mut attributes = self.entry(&key, value.as_ptr());
        // SAFETY: key and value are readable, as long as the map wants them, and outlive the call.
        unsafe { plain_call(BPF_MAP_UPDATE_ELEM, &mut attributes) }
            .map_err(|cause| SysError::new(operation, key.to_string(), cause))
    }

    /// A value.
    ///
    /// # Errors
    /// ENOENT beyond the last entry.
    pub fn value(&self, key: u32) -> Result<Vec<u8>> {
        let mut value = vec![0_u8; self.value_bytes];
        let mut attributes = self.entry(&key, value.as_mut_ptr());
        // SAFETY: the key is readable, and the value writable for as many bytes as the map's values have.
        unsafe { plain_call(BPF_MAP_LOOKUP_ELEM, &mut attributes) }
            .map_err(|cause| SysError::new("read an entry of a BPF map", key.to_string(), cause))?;
        Ok(value)
    }

    fn entry(&self, key: &u32, value: *const u8) -> Entry {
        Entry {
            map: self.raw_fd() as u32,
            unused: 0,
            key: std::ptr::from_ref(key) as u64,
            value: value as u64,
            flags: 0,
        }
    }

    /// Its descriptor, for the instruction that names it.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// `union bpf_attr` for the calls on a map's entries.
#[repr(C)]
struct Entry {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A loaded XDP program.
#[derive(Debug)]
pub struct XdpProgram(OwnedFd);

impl XdpProgram {
    /// Loads a program; the verifier must agree with it.
    ///
    /// # Errors
    /// EPERM without the capabilities; what the verifier refuses, with its last words.
    pub fn load(name: &str, instructions: &[Instruction], frags: bool) -> Result<Self> {
        #[repr(C)]
        struct Load {
            kind: u32,
            instruction_count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
        }
        let mut log = vec![0_u8; LOG_BYTES];
        let mut attributes = Load {
            kind: BPF_PROG_TYPE_XDP,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            log_level: 1,
            log_bytes: LOG_BYTES as u32,
            log: log.as_mut_ptr() as u64,
            kernel_version: 0,
            flags: if frags { BPF_F_XDP_HAS_FRAGS } else { 0 },
        };
        // SAFETY: `Load` is the beginning of `union bpf_attr` for BPF_PROG_LOAD; instructions and licence are readable,
        // the log is writable for as many bytes as are told, and all outlive the call.
        let loaded = unsafe { call(BPF_PROG_LOAD, &mut attributes) };
        let fd = loaded.map_err(|cause| {
            let words = last_words(&log);
            let cause = if words.is_empty() { cause } else { io::Error::new(cause.kind(), words) };
            SysError::new("load an XDP program", name, cause)
        })?;
        Ok(Self(fd))
    }

    /// Attaches it to a link in the calling thread's network namespace, until the attachment is dropped.
    ///
    /// # Errors
    /// EBUSY where there is one already, EOPNOTSUPP or EINVAL where the driver can't in `native` mode, ENODEV.
    pub fn attach(&self, link: &str, native: bool) -> Result<XdpAttachment> {
        #[repr(C)]
        struct Create {
            program: u32,
            target: u32,
            kind: u32,
            flags: u32,
        }
        let operation = if native { "attach XDP in the driver" } else { "attach generic XDP" };
        let refused = |cause: io::Error| SysError::new(operation, link, cause);
        let target = nix::net::if_::if_nametoindex(link).map_err(|errno| refused(errno.into()))?;
        let flags = if native { DRV_MODE } else { SKB_MODE };
        let program = self.0.as_raw_fd() as u32;
        let mut attributes = Create { program, target, kind: BPF_XDP, flags };
        // SAFETY: `Create` is the beginning of `union bpf_attr` for BPF_LINK_CREATE and holds no pointers.
        unsafe { call(BPF_LINK_CREATE, &mut attributes) }.map(XdpAttachment).map_err(refused)
    }
}

/// A program attached to a link; the kernel takes it off when this is dropped, or the process ends.
#[derive(Debug)]
pub struct XdpAttachment(#[expect(dead_code, reason = "held for its Drop, which detaches")] OwnedFd);

/// A call that gives a descriptor.
///
/// # Safety
/// `attributes` must be laid out as the beginning of `union bpf_attr` for the command, and its pointers be valid.
unsafe fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises; the kernel reads no more than the size that it is told.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A call that gives nothing.
///
/// # Safety
/// As [`call`].
unsafe fn plain_call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<()> {
    // SAFETY: as the caller promises.
    unsafe { bpf(command, attributes) }.map(drop)
}

/// # Safety
/// As [`call`].
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: as the caller promises; the size is that of the attributes.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as RawFd) }
}

/// The last lines of the verifier's log, which say what it did not like.
fn last_words(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let mut lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.starts_with("processed")).take(3).collect();
    lines.reverse();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r0 = 2 (XDP_PASS); exit`.
    const PASS: [Instruction; 2] = [
        Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 },
        Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 },
    ];

    #[test]
    fn what_is_set_reads_back_and_a_wrong_length_is_refused() {
        linerate_testkit::need!(root());
        let map = Map::array(2, 8).unwrap();
        map.set(1, &7_u64.to_ne_bytes()).unwrap();
        assert_eq!(map.value(1).unwrap(), 7_u64.to_ne_bytes());
        assert_eq!(map.value(0).unwrap(), [0; 8]);
        assert!(map.set(0, &[0; 4]).is_err());
        assert_eq!(map.value(2).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn the_verifier_is_heard() {
        linerate_testkit::need!(root());
        XdpProgram::load("pass", &PASS, false).unwrap();
        let error = XdpProgram::load("endless", &PASS[1..], false).unwrap_err().to_string();
        assert!(error.contains("R0"), "{error}");
    }
}
