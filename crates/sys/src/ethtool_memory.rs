//! What a driver keeps in memory and ethtool's ioctl shows raw: tunables, registers, EEPROM, the plugged-in module.
//!
//! Source: linux/ethtool.h (`struct ethtool_tunable`, `ethtool_regs`, `ethtool_eeprom`, `ethtool_modinfo`).

use std::io;

use crate::error::{Result, SysError};
use crate::ethtool_ioctl::{self, call, open, word_at};
use crate::guarded::GuardedBuffer;

const ETHTOOL_GREGS: u32 = 0x04;
const ETHTOOL_GEEPROM: u32 = 0x0b;
const ETHTOOL_GMODULEINFO: u32 = 0x42;
const ETHTOOL_GMODULEEEPROM: u32 = 0x43;
const ETHTOOL_GTUNABLE: u32 = 0x48;
const ETHTOOL_STUNABLE: u32 = 0x49;
const ETHTOOL_TUNABLE_U32: u32 = 3;
const TUNABLE_HEAD: usize = 16;
const REGISTERS_HEAD: usize = 12;
const EEPROM_HEAD: usize = 16;
/// struct ethtool_modinfo: command, type, length, eight reserved words.
const MODULE_INFO_LEN: usize = 4 * 11;
/// No driver's dump comes near this.
const MAX_DUMP: usize = 64 << 20;
/// Drivers may cap one read of an EEPROM; the kernel itself reads a page at a time.
const EEPROM_STEP: usize = 4096;

/// A number that a driver lets one turn (`enum tunable_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Tunable {
    /// Packets up to this many bytes are copied on receive.
    RxCopybreak = 1,
    /// Packets up to this many bytes are copied on transmit.
    TxCopybreak = 2,
}

/// Registers of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    /// The driver's own number for their layout.
    pub version: u32,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// The memory of a plugged-in module (SFP, QSFP).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleMemory {
    /// `ETH_MODULE_SFF_*`: 1 SFF-8079, 2 SFF-8472, 3 SFF-8636, 4 SFF-8436.
    pub layout: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reads a tunable of `link`, bytes.
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver has no tunables, EINVAL where it lacks this one.
pub fn tunable(link: &str, tunable: Tunable) -> Result<u32> {
    let mut buffer = GuardedBuffer::new(TUNABLE_HEAD + 4)?;
    let request = [tunable as u32, ETHTOOL_TUNABLE_U32, 4];
    call(&open()?, link, "read a tunable", ETHTOOL_GTUNABLE, &request, &mut buffer)?;
    Ok(word_at(buffer.bytes(), TUNABLE_HEAD))
}

/// Sets a tunable of `link`, bytes.
///
/// # Errors
/// As [`tunable`], and the driver's refusal of the value.
pub fn set_tunable(link: &str, tunable: Tunable, value: u32) -> Result<()> {
    let mut buffer = GuardedBuffer::new(TUNABLE_HEAD + 4)?;
    let request = [tunable as u32, ETHTOOL_TUNABLE_U32, 4, value];
    call(&open()?, link, "set a tunable", ETHTOOL_STUNABLE, &request, &mut buffer)
}

/// Reads the registers of `link`'s device (`ethtool -d`).
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver offers none.
pub fn registers(link: &str) -> Result<Registers> {
    const OPERATION: &str = "read registers";
    let length = ethtool_ioctl::dump_lengths(link)?.registers as usize;
    let mut buffer = dump_buffer(OPERATION, link, REGISTERS_HEAD, length)?;
    call(&open()?, link, OPERATION, ETHTOOL_GREGS, &[0, length as u32], &mut buffer)?;
    let bytes = buffer.bytes();
    let told = (word_at(bytes, 8) as usize).min(length);
    Ok(Registers { version: word_at(bytes, 4), bytes: bytes[REGISTERS_HEAD..REGISTERS_HEAD + told].to_vec() })
}

/// Reads the EEPROM of `link`'s device (`ethtool -e`).
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver offers none.
pub fn eeprom(link: &str) -> Result<Vec<u8>> {
    let length = ethtool_ioctl::dump_lengths(link)?.eeprom as usize;
    eeprom_bytes(link, "read EEPROM", ETHTOOL_GEEPROM, length)
}

/// Reads the memory of the plugged-in module (`ethtool -m`).
///
/// # Errors
/// ENODEV without such a link, EOPNOTSUPP where the driver offers none, and the driver's answer without a module.
pub fn module(link: &str) -> Result<ModuleMemory> {
    let mut info = GuardedBuffer::new(MODULE_INFO_LEN)?;
    call(&open()?, link, "read module information", ETHTOOL_GMODULEINFO, &[], &mut info)?;
    let (layout, length) = (word_at(info.bytes(), 4), word_at(info.bytes(), 8) as usize);
    let bytes = eeprom_bytes(link, "read module memory", ETHTOOL_GMODULEEEPROM, length)?;
    Ok(ModuleMemory { layout, bytes })
}

fn eeprom_bytes(link: &str, operation: &'static str, command: u32, length: usize) -> Result<Vec<u8>> {
    let socket = open()?;
    let mut buffer = dump_buffer(operation, link, EEPROM_HEAD, length.min(EEPROM_STEP))?;
    let mut all = Vec::new();
    // A driver without any is asked all the same: the kernel's word for it is the answer.
    loop {
        let step = (length - all.len()).min(EEPROM_STEP);
        let request = [0, all.len() as u32, step as u32];
        call(&socket, link, operation, command, &request, &mut buffer)?;
        let told = (word_at(buffer.bytes(), 12) as usize).min(step);
        all.extend_from_slice(&buffer.bytes()[EEPROM_HEAD..EEPROM_HEAD + told]);
        if told == 0 || all.len() >= length {
            return Ok(all);
        }
    }
}

fn dump_buffer(operation: &'static str, link: &str, head: usize, length: usize) -> Result<GuardedBuffer> {
    if length > MAX_DUMP {
        return Err(SysError::new(operation, link, io::ErrorKind::InvalidData.into()));
    }
    GuardedBuffer::new(head + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_has_none_of_it_is_refused_in_the_kernels_words() {
        for error in [
            tunable("lo", Tunable::RxCopybreak).unwrap_err(),
            set_tunable("lo", Tunable::TxCopybreak, 64).unwrap_err(),
            registers("lo").unwrap_err(),
            eeprom("lo").unwrap_err(),
            module("lo").unwrap_err(),
        ] {
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}");
        }
        assert_eq!(registers("lr-none").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
