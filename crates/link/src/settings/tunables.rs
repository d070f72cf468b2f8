//! Tunables of the driver: the size up to which packets are copied.

use linerate_sys::ethtool_memory::{self as memory, Tunable};

use super::part::Values;
use crate::error::{LinkError, Result};
use crate::netns;

/// Keys with their tunables.
pub(crate) const ALL: [(&str, Tunable); 2] =
    [("rx-copybreak", Tunable::RxCopybreak), ("tx-copybreak", Tunable::TxCopybreak)];

/// The key of a tunable.
pub(crate) fn key(tunable: Tunable) -> &'static str {
    match tunable {
        Tunable::RxCopybreak => ALL[0].0,
        Tunable::TxCopybreak => ALL[1].0,
    }
}

/// Reads a tunable, bytes.
pub(crate) fn read(link: &str, tunable: Tunable) -> Result<u32> {
    memory::tunable(link, tunable).map_err(|error| named("read", link, key(tunable), error))
}

/// Sets a tunable to a checked value.
pub(crate) fn write(link: &str, tunable: Tunable, value: &str) -> Result<()> {
    let what = format!("{}={value}", key(tunable));
    let number = value.parse().map_err(|_| LinkError::Invalid {
        what: what.clone(),
        why: "a number of bytes is needed".to_owned(),
    })?;
    memory::set_tunable(link, tunable, number).map_err(|error| named("set", link, &what, error))
}

fn named(operation: &'static str, link: &str, what: &str, error: linerate_sys::SysError) -> LinkError {
    LinkError::file(operation, format!("{what} on {link}{}", netns::place()), error.source)
}

/// Those that the driver has.
pub(crate) fn values(link: &str) -> Result<Values> {
    let mut values = Values::new();
    for (name, tunable) in ALL {
        match read(link, tunable) {
            Ok(bytes) => drop(values.insert(name.to_owned(), bytes.to_string())),
            // The driver has the other one only.
            Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values)
}

/// Sets what differs.
pub(crate) fn put_back(link: &str, before: &Values, now: &Values) -> Result<()> {
    for (name, tunable) in ALL {
        if let Some(value) = before.get(name).filter(|value| now.get(name) != Some(*value)) {
            write(link, tunable, value)?;
        }
    }
    Ok(())
}
