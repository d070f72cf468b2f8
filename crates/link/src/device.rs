//! The device behind a link: what it is, and acts upon it that only root may do. Nothing here is journalled: a device that was
//! unbound or removed takes its link and all settings along.
//!
//! Sources: Documentation/ABI/testing/sysfs-bus-pci, sysfs-power; Documentation/power/basic-pm-debugging.rst.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::bench::act::DeviceAct;
use linerate_sys::{ethtool_memory, ethtool_test};
use sha2::{Digest, Sha256};

use crate::error::{LinkError, Result};
use crate::{ethtool, links, module, sysfs};

pub use linerate_sys::ethtool_test::SelfTest;

const CLOCK_ALARM: &str = "/sys/class/rtc/rtc0/wakealarm";
const POWER: &str = "/sys/power";
/// Nobody sleeps longer for a test.
const LONGEST_SLEEP_SECONDS: u32 = 3600;

/// Carries out an act; only a self-test has something to tell.
///
/// # Errors
/// [`LinkError::Invalid`] for a name that is none, else the kernel's refusal.
pub fn act(act: &DeviceAct) -> Result<Option<SelfTest>> {
    match act {
        DeviceAct::Unbind { device } => {
            let driver = folder_of(device)?.join("driver");
            write(&driver.join("unbind"), device)?;
        }
        DeviceAct::Bind { device, driver } => {
            let bus = bus_of(device)?;
            write(&bus.join("drivers").join(plain(driver)?).join("bind"), device)?;
        }
        DeviceAct::Unload { module } => module::unload(module)?,
        DeviceAct::Load { module, parameters } => module::load(module, parameters)?,
        DeviceAct::Reset { device, method } => {
            let folder = folder_of(device)?;
            if let Some(method) = method {
                write(&folder.join("reset_method"), method)?;
            }
            write(&folder.join("reset"), "1")?;
        }
        DeviceAct::Remove { device } => write(&folder_of(device)?.join("remove"), "1")?,
        DeviceAct::Rescan => write(Path::new("/sys/bus/pci/rescan"), "1")?,
        DeviceAct::Suspend { seconds, test } => suspend(*seconds, test.as_deref())?,
        DeviceAct::SelfTest { link, offline } => return Ok(Some(ethtool_test::run(link, *offline)?)),
    }
    Ok(None)
}

/// What is known of the device and driver behind a link, by name: `driver`, `firmware`, `bus-address`, `bus`, `module`,
/// `srcversion`, `parameter NAME`, `vendor`, `device`, `subsystem-vendor`, `subsystem-device`, `revision`, `eeprom-sha256` ...
/// What a link does not have is left out; a virtual one has little more than its driver.
///
/// # Errors
/// [`LinkError::NoSuchLink`].
pub fn identity(link: &str) -> Result<BTreeMap<String, String>> {
    let info = links::named(link)?;
    let mut known = BTreeMap::new();
    let mut tell = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            known.insert(name.to_owned(), value);
        }
    };
    tell("kind", info.kind);
    if let Ok(driver) = ethtool::driver_info(link) {
        tell("driver", Some(driver.driver));
        tell("version", Some(driver.version));
        tell("firmware", Some(driver.firmware));
        tell("bus-address", Some(driver.bus));
    }
    let device = fs::canonicalize(sysfs::class_folder(link).join("device")).ok();
    if let Some(device) = &device {
        tell("bus", target(&device.join("subsystem")));
        tell("path", Some(device.display().to_string()));
        for (name, file) in [
            ("vendor", "vendor"),
            ("device", "device"),
            ("class", "class"),
            ("subsystem-vendor", "subsystem_vendor"),
            ("subsystem-device", "subsystem_device"),
            ("revision", "revision"),
            ("reset-methods", "reset_method"),
        ] {
            tell(name, text(&device.join(file)));
        }
        let module = target(&device.join("driver/module"));
        if let Some(module) = &module {
            let folder = Path::new("/sys/module").join(module);
            tell("srcversion", text(&folder.join("srcversion")));
            tell("module-version", text(&folder.join("version")));
            for entry in fs::read_dir(folder.join("parameters")).into_iter().flatten().flatten() {
                let name = format!("parameter {}", entry.file_name().to_string_lossy());
                tell(&name, text(&entry.path()));
            }
        }
        tell("module", module);
    }
    if let Ok(bytes) = ethtool_memory::eeprom(link) {
        let digest = Sha256::digest(&bytes);
        tell("eeprom-sha256", Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    Ok(known)
}

/// To memory and back by the machine's clock, or only as far as a level of `pm_test`.
fn suspend(seconds: u32, test: Option<&str>) -> Result<()> {
    let state = Path::new(POWER).join("state");
    let known = text(&state).unwrap_or_default();
    if !known.split_whitespace().any(|word| word == "mem") {
        let why = format!("the kernel can't suspend to memory; it has {known:?}");
        return Err(LinkError::Invalid { what: "suspend".to_owned(), why });
    }
    if let Some(level) = test {
        let levels = Path::new(POWER).join("pm_test");
        write(&levels, level)?;
        let suspended = write(&state, "mem");
        let back = write(&levels, "none");
        return suspended.and(back);
    }
    if !(1..=LONGEST_SLEEP_SECONDS).contains(&seconds) {
        let why = format!("1 to {LONGEST_SLEEP_SECONDS} s are possible: nobody would wake the machine");
        return Err(LinkError::Invalid { what: format!("suspend for {seconds} s"), why });
    }
    let alarm = Path::new(CLOCK_ALARM);
    // One that is set would refuse another.
    write(alarm, "0")?;
    write(alarm, &format!("+{seconds}"))?;
    write(&state, "mem")
}

/// The folder of a device by its address on any bus.
fn folder_of(device: &str) -> Result<PathBuf> {
    Ok(bus_of(device)?.join("devices").join(device))
}

fn bus_of(device: &str) -> Result<PathBuf> {
    let device = plain(device)?;
    let buses = fs::read_dir("/sys/bus").into_iter().flatten().flatten().map(|bus| bus.path());
    let mut having = buses.filter(|bus| bus.join("devices").join(device).exists());
    having.next().ok_or_else(|| LinkError::Invalid {
        what: format!("device {device}"),
        why: "no bus in /sys/bus has it".to_owned(),
    })
}

/// A name that can't lead out of its folder.
fn plain(name: &str) -> Result<&str> {
    let good = !name.is_empty() && !name.contains(['/', '\0', '\n']) && name != "." && name != "..";
    let why = || "it is no name of a device or driver".to_owned();
    if good { Ok(name) } else { Err(LinkError::Invalid { what: format!("{name:?}"), why: why() }) }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |cause| LinkError::file("write", format!("{text} to {}", path.display()), cause);
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn target(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_is_refused() {
        for device in ["", "..", "a/b", "lr-no-such-device"] {
            let error = act(&DeviceAct::Unbind { device: device.to_owned() }).unwrap_err();
            assert!(matches!(error, LinkError::Invalid { .. }), "{device}: {error}");
        }
        let error = act(&DeviceAct::SelfTest { link: "lr-none".to_owned(), offline: false }).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::ENODEV), "{error}");
        assert!(act(&DeviceAct::Suspend { seconds: 0, test: None }).is_err());
    }

    #[test]
    fn each_link_of_the_machine_has_an_identity() {
        for link in links::all().unwrap() {
            let known = identity(&link.name).unwrap();
            println!("{}: {known:?}", link.name);
            assert!(known.values().all(|value| !value.is_empty()));
        }
        assert!(matches!(identity("lr-none").unwrap_err(), LinkError::NoSuchLink { .. }));
    }
}
