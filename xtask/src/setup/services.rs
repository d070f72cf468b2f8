//! No package's service may start: not while it is installed, nor at the next boot.
//!
//! Debian's maintainer scripts ask `/usr/sbin/policy-rc.d` before they start a service; 101 means that they must not
//! (invoke-rc.d(8)). A policy that is there already is set aside and put back.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::needs::DebianPackage;

const POLICY: &str = "/usr/sbin/policy-rc.d";
const SET_ASIDE: &str = "/usr/sbin/policy-rc.d.linerate-saved";
const OUR_POLICY: &str =
    "#!/bin/sh\n# Written by `cargo xtask setup` of linerate for the time of an install.\nexit 101\n";

/// While it lives, no service starts.
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn begin() -> Result<Self> {
        if Path::new(POLICY).exists() {
            fs::rename(POLICY, SET_ASIDE).with_context(|| format!("set {POLICY} aside"))?;
        }
        let quiet = Self(());
        fs::write(POLICY, OUR_POLICY).with_context(|| format!("write {POLICY}"))?;
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("make {POLICY} a program"))?;
        Ok(quiet)
    }

    pub(crate) fn end(self) -> Result<()> {
        put_back()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Err(error) = put_back() {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Puts back what a set-up that was killed has left.
pub(crate) fn repair() -> Result<()> {
    match fs::read_to_string(POLICY) {
        Ok(text) if text == OUR_POLICY => put_back(),
        _ if Path::new(SET_ASIDE).exists() => put_back(),
        _ => Ok(()),
    }
}

fn put_back() -> Result<()> {
    match fs::read_to_string(POLICY) {
        Ok(text) if text == OUR_POLICY => {
            fs::remove_file(POLICY).with_context(|| format!("remove {POLICY}"))?;
        }
        Ok(_) => {}
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(cause).with_context(|| format!("read {POLICY}")),
    }
    if Path::new(SET_ASIDE).exists() {
        fs::rename(SET_ASIDE, POLICY).with_context(|| format!("put {POLICY} back"))?;
    }
    Ok(())
}

/// A package installed for tests must not open a port at the next boot either.
pub(crate) fn keep_from_booting(packages: &[&DebianPackage]) {
    for service in packages.iter().flat_map(|package| package.services) {
        // Without a script of that name there is nothing to start.
        if Path::new("/etc/init.d").join(service).exists() {
            let disabled =
                Command::new("update-rc.d").args([service, "disable"]).stdin(Stdio::null()).output();
            if !disabled.is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "warning: {service} may start at the next boot: update-rc.d {service} disable failed"
                );
            }
        }
    }
}
