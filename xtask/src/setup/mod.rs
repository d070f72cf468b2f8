//! `cargo xtask setup`: install what tests and benchmarks use.
//!
//! As root on Debian it installs; elsewhere it says what is missing and changes nothing.

mod apt;
mod needs;
mod services;
mod sources;

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use linerate_agent::launch::vm::{fetch, kernel};
use linerate_testkit::skip::find_tool;

use self::needs::{CARGO_TOOLS, CargoTool, DEBIAN_PACKAGES, DebianPackage};
use crate::step;

/// Installs all that is missing; fails, with nothing changed, where that can't be done.
pub(crate) fn run() -> Result<()> {
    let packages = missing_packages();
    if let Some(obstacle) = obstacle()
        && !packages.is_empty()
    {
        tell_missing(&packages, obstacle);
        bail!("{} of {} packages are missing", packages.len(), DEBIAN_PACKAGES.len());
    }
    install_packages(&packages)?;
    fetch_kernel()?;
    install_cargo_tools()
}

/// Installs what can be installed here: where packages can't, their tests report themselves as skipped, but the checks
/// need cargo's tools in any case.
pub(crate) fn run_for_tests() -> Result<()> {
    let packages = missing_packages();
    match obstacle() {
        Some(obstacle) if !packages.is_empty() => tell_missing(&packages, obstacle),
        _ => {
            install_packages(&packages)?;
            fetch_kernel()?;
        }
    }
    install_cargo_tools()
}

/// Gets a kernel for guests, as `linerate vm fetch` does, where none is here.
fn fetch_kernel() -> Result<()> {
    if find_tool("apt-get").is_none() || !kernel::all().is_empty() {
        return Ok(());
    }
    println!("fetch a kernel for guests");
    let kernel = fetch::fetch(None).context("fetch a kernel for guests")?;
    println!("  {} in {}", kernel.version, kernel::cache().display());
    Ok(())
}

/// Why no package can be installed here.
fn obstacle() -> Option<&'static str> {
    if !Path::new("/etc/debian_version").exists() || find_tool("apt-get").is_none() {
        return Some("this is no Debian system");
    }
    if !nix::unistd::geteuid().is_root() {
        return Some("this user is not root");
    }
    None
}

fn missing_packages() -> Vec<&'static DebianPackage> {
    DEBIAN_PACKAGES.iter().filter(|package| find_tool(package.program).is_none()).collect()
}

fn tell_missing(packages: &[&DebianPackage], obstacle: &str) {
    println!("missing, and not installed since {obstacle}:");
    for package in packages {
        println!("  {:<16} {} ({})", package.name, package.purpose, package.program);
    }
}

fn install_packages(packages: &[&DebianPackage]) -> Result<()> {
    services::repair()?;
    if packages.is_empty() {
        return Ok(());
    }
    let quiet = services::Quiet::begin()?;
    apt::install(packages)?;
    services::keep_from_booting(packages);
    quiet.end()?;
    let still_missing: Vec<_> =
        packages.iter().filter(|package| find_tool(package.program).is_none()).collect();
    if let Some(package) = still_missing.first() {
        bail!("package {} was installed and has no program {}", package.name, package.program);
    }
    Ok(())
}

fn install_cargo_tools() -> Result<()> {
    CARGO_TOOLS.iter().filter(|tool| !tool.is_there()).try_for_each(CargoTool::install)
}

impl CargoTool {
    fn is_there(&self) -> bool {
        // As cargo itself finds its subcommands: on the path, or in the folder where it installs.
        let answer = step::cargo(&[self.subcommand, "--version"]).output();
        answer.is_ok_and(|answer| {
            answer.status.success()
                && (!self.exact || String::from_utf8_lossy(&answer.stdout).contains(self.version))
        })
    }

    fn install(&self) -> Result<()> {
        let mut install: Command =
            step::cargo(&["install", self.name, "--version", self.version, "--locked", "--quiet"]);
        // Built apart from the project, so that a target folder named by the caller does not grow.
        install.env_remove("CARGO_TARGET_DIR");
        step::run(&format!("install {} {} ({})", self.name, self.version, self.purpose), &mut install)
    }
}

/// The value of a key in `/etc/os-release` (os-release(5)).
fn os_release(key: &str) -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}
