//! Whether a guest really boots with KVM here: on some hosts `/dev/kvm` is there and whatever uses it hangs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_sys::process::ChildTies;

use super::error::{Result, VmError};
use super::kernel;
use super::profile::WantedAcceleration;
use super::qemu::Acceleration;

const DEVICE: &str = "/dev/kvm";
/// With KVM the kernel gets to the end of its own start within two seconds.
const PROBE_LIMIT: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(20);
const WORKS: &str = "works";

/// How the instructions of a guest will be run, and why not by KVM.
///
/// # Errors
/// KVM is wanted and does not work.
pub(super) fn choose(
    wanted: WantedAcceleration,
    qemu: &Path,
    kernel_image: &Path,
) -> Result<(Acceleration, Option<String>)> {
    if wanted == WantedAcceleration::Software {
        return Ok((Acceleration::Software, Some("its profile wants software emulation".to_owned())));
    }
    match (why_not(qemu, kernel_image), wanted) {
        (None, _) => Ok((Acceleration::Kvm, None)),
        (Some(why), WantedAcceleration::Kvm) => {
            Err(VmError::Qemu(format!("the profile wants KVM, and it does not work here: {why}")))
        }
        (Some(why), _) => Ok((Acceleration::Software, Some(why))),
    }
}

/// Why KVM can't be used; `None` where it can. The answer is kept until the machine is started anew.
fn why_not(qemu: &Path, kernel_image: &Path) -> Option<String> {
    if !Path::new(DEVICE).exists() {
        return Some(format!("there is no {DEVICE}"));
    }
    let kept = answer_file();
    if let Some(answer) = kept.as_ref().and_then(|file| fs::read_to_string(file).ok()) {
        return (answer != WORKS).then_some(answer);
    }
    let answer = probe(qemu, kernel_image);
    if let Some(file) = kept {
        // Without the file the next guest asks again, which only takes time.
        let _ = file.parent().map(fs::create_dir_all);
        let _ = fs::write(file, answer.as_deref().unwrap_or(WORKS));
    }
    answer
}

fn answer_file() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(kernel::cache().with_file_name(format!("kvm-{}", boot.trim())))
}

/// Boots the kernel alone: it finds nothing to start, panics, and thereby ends QEMU.
fn probe(qemu: &Path, kernel_image: &Path) -> Option<String> {
    let mut command = Command::new(qemu);
    command.args([
        "-machine",
        "pc,accel=kvm",
        "-cpu",
        "host",
        "-m",
        "256M",
        "-display",
        "none",
        "-nodefaults",
    ]);
    command.args(["-no-user-config", "-no-reboot", "-append", "panic=-1", "-kernel"]).arg(kernel_image);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ChildTies::default().apply(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Some(error.to_string()),
    };
    let give_up = Instant::now() + PROBE_LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(format!("QEMU with KVM ended with {status}")),
            Err(error) => return Some(error.to_string()),
            Ok(None) if Instant::now() < give_up => std::thread::sleep(POLL),
            Ok(None) => break,
        }
    }
    let _ = child.kill();
    // One that hangs in the kernel is not waited for.
    std::thread::spawn(move || child.wait());
    Some(format!("a guest did not boot with {DEVICE} within {} s", PROBE_LIMIT.as_secs()))
}
