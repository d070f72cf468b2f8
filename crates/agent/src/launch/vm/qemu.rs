//! QEMU's command line for a guest. Data in, words out; nothing is started here but questions to QEMU about itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_model::trial::Side;

use super::error::{Result, VmError};
use super::profile::Profile;
use crate::guest::{self, mac_of, port_of};

/// Name of the program that emulates an x86-64 machine.
const PROGRAM: &str = "qemu-system-x86_64";
/// What QEMU calls the NIC under test, and the partner in the same guest.
pub(super) const NIC: &str = "nic";
pub(super) const PARTNER: &str = "partner";
/// What QEMU calls the host's ends of the wire.
pub(super) const NIC_WIRE: &str = "wire";
const PARTNER_WIRE: &str = "partner-wire";

/// What a guest's NIC is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    /// A hub in QEMU, with a virtio-net of the same guest at its other end.
    Hub,
    /// A tap of this name in the namespace that QEMU runs in.
    Tap(String),
    /// Another guest: this one waits for it at this socket.
    Listen(PathBuf),
    /// Another guest, which waits at this socket.
    Connect(PathBuf),
}

/// How the instructions of a guest are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceleration {
    /// On the CPU itself.
    Kvm,
    /// Translated by QEMU: some ten times slower, so that absolute rates mean little.
    Software,
}

impl Acceleration {
    /// QEMU's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Software => "tcg",
        }
    }
}

/// All that a command line depends on.
pub(super) struct Machine<'a> {
    pub(super) profile: &'a Profile,
    /// Which end of the wire the NIC under test is.
    pub(super) side: Side,
    pub(super) wire: &'a Wire,
    pub(super) acceleration: Acceleration,
    pub(super) kernel_image: &'a Path,
    pub(super) initramfs: &'a Path,
    /// Folder of the sockets that QEMU connects to: see [`socket_in`].
    pub(super) sockets: &'a Path,
    pub(super) prompt: bool,
}

/// The socket in `folder` that serves `what`: `console`, `monitor`, or a port's name.
pub(super) fn socket_in(folder: &Path, what: &str) -> PathBuf {
    folder.join(what)
}

impl Machine<'_> {
    /// The ends of the wire that are in the guest.
    pub(super) fn sides(&self) -> Vec<Side> {
        match self.wire {
            Wire::Hub => vec![Side::Dut, Side::Peer],
            Wire::Tap(_) | Wire::Listen(_) | Wire::Connect(_) => vec![self.side],
        }
    }

    /// The words behind the program's name.
    pub(super) fn arguments(&self) -> Vec<String> {
        let profile = self.profile;
        let mut words: Vec<String> = Vec::new();
        let mut option = |name: &str, value: String| words.extend([format!("-{name}"), value]);
        option("machine", format!("{},accel={}", profile.machine, self.acceleration.name()));
        option("cpu", if self.acceleration == Acceleration::Kvm { "host" } else { "max" }.to_owned());
        option("smp", profile.cpus.to_string());
        option("m", format!("{}M", profile.memory_mib));
        // Sleep is left out by default in some versions.
        let chipset = if profile.machine.contains("q35") { "ICH9-LPC" } else { "PIIX4_PM" };
        option("global", format!("{chipset}.disable_s3=0"));
        option("display", "none".to_owned());
        option("kernel", self.kernel_image.display().to_string());
        option("initrd", self.initramfs.display().to_string());
        option("append", kernel_arguments(&self.profile.kernel_arguments));
        self.channels(&mut option);
        self.network(&mut option);
        words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        words
    }

    fn channels(&self, option: &mut impl FnMut(&str, String)) {
        let socket = |id: &str, what: &str, option: &mut dyn FnMut(&str, String)| {
            let path = socket_in(self.sockets, what).display().to_string();
            option("chardev", format!("socket,id={id},path={path}"));
        };
        socket("console", "console", option);
        option("serial", "chardev:console".to_owned());
        socket("monitor", "monitor", option);
        option("mon", "chardev=monitor,mode=control".to_owned());
        option("device", "virtio-serial-pci".to_owned());
        let mut ports: Vec<&str> = self.sides().into_iter().map(port_of).collect();
        if self.prompt {
            ports.push(guest::PROMPT_PORT);
        }
        for (number, name) in ports.into_iter().enumerate() {
            let id = format!("port{number}");
            socket(&id, name, option);
            option("device", format!("virtserialport,chardev={id},name={name}"));
        }
    }

    fn network(&self, option: &mut impl FnMut(&str, String)) {
        match self.wire {
            Wire::Hub => {
                option("netdev", format!("hubport,id={NIC_WIRE},hubid=0"));
                option("netdev", format!("hubport,id={PARTNER_WIRE},hubid=0"));
            }
            Wire::Tap(name) => {
                let queues = match self.tap_queues() {
                    1 => String::new(),
                    queues => format!(",queues={queues}"),
                };
                let tap = format!("tap,id={NIC_WIRE},ifname={name},script=no,downscript=no{queues}");
                option("netdev", tap);
            }
            Wire::Listen(path) | Wire::Connect(path) => {
                let server = if matches!(self.wire, Wire::Listen(_)) { "on" } else { "off" };
                let address = format!("addr.type=unix,addr.path={}", path.display());
                option("netdev", format!("stream,id={NIC_WIRE},server={server},{address}"));
            }
        }
        for device in &self.profile.devices {
            option("device", device.clone());
        }
        let mut nic = format!("{},id={NIC},netdev={NIC_WIRE},mac={}", self.profile.nic, mac_of(self.side));
        // The card's own boot program is not needed, and not always installed.
        let has_rom = !self.profile.nic.starts_with("usb-");
        if has_rom && !self.profile.properties.contains_key("romfile") {
            nic.push_str(",romfile=");
        }
        if self.tap_queues() > 1 {
            nic.extend([",mq=on".to_owned(), format!(",vectors={}", 2 * self.tap_queues() + 2)]);
        }
        nic.extend(self.profile.properties.iter().map(|(key, value)| format!(",{key}={value}")));
        option("device", nic);
        if *self.wire == Wire::Hub {
            let partner = format!("virtio-net-pci,id={PARTNER},netdev={PARTNER_WIRE},romfile=");
            option("device", format!("{partner},mac={}", mac_of(Side::Peer)));
        }
    }

    /// A hub has one queue.
    fn tap_queues(&self) -> u32 {
        if matches!(self.wire, Wire::Tap(_)) { self.profile.queues } else { 1 }
    }
}

/// `panic=-1` with QEMU's `-no-reboot`: a guest that panics ends at once. The kernel's self-tests of ciphers, and waiting for
/// a keyboard that is not there, would only take time.
fn kernel_arguments(more: &[String]) -> String {
    let words = [
        "console=ttyS0",
        "loglevel=5",
        "panic=-1",
        "random.trust_cpu=on",
        "cryptomgr.notests",
        "i8042.noaux",
        "i8042.nokbd",
        "audit=0",
        "net.ifnames=0",
    ];
    let program = [format!("rdinit={}", guest::PROGRAM)];
    // The last of several wins: a profile can replace any of ours.
    let words: Vec<&str> = words.into_iter().chain(program.iter().chain(more).map(String::as_str)).collect();
    format!("{} -- {}", words.join(" "), guest::COMMAND)
}

/// The QEMU on this machine: `LINERATE_QEMU`, or the one in `PATH`.
///
/// # Errors
/// There is none; says what to install.
pub(super) fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LINERATE_QEMU").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file());
    found.ok_or_else(|| {
        VmError::Qemu(format!(
            "no {PROGRAM} here: install QEMU (Debian: qemu-system-x86), or set LINERATE_QEMU"
        ))
    })
}

/// Whether this QEMU can emulate a device. It is asked for this one alone: the list of all fails where one optional part of
/// QEMU does not fit.
///
/// # Errors
/// It can't be run.
pub(super) fn has_device(program: &Path, device: &str) -> Result<bool> {
    let asked = question(program, &["-device", &format!("{device},help")]).output();
    let output = asked.map_err(|cause| VmError::file("run", program.display(), cause))?;
    // It ends with 0 in any case; a device that is there has its options listed.
    Ok(!output.stdout.is_empty())
}

/// Its version, as it says it.
///
/// # Errors
/// It can't be run.
pub(super) fn version(program: &Path) -> Result<String> {
    let output = question(program, &["--version"]).output();
    let output = output.map_err(|cause| VmError::file("run", program.display(), cause))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    Ok(first.trim_start_matches("QEMU emulator version ").to_owned())
}

fn question(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(profile: &str, side: Side, wire: &Wire) -> String {
        let profile = Profile::find(profile).unwrap();
        let machine = Machine {
            profile: &profile,
            side,
            wire,
            acceleration: Acceleration::Software,
            kernel_image: Path::new("/k"),
            initramfs: Path::new("/i"),
            sockets: Path::new("/s"),
            prompt: false,
        };
        machine.arguments().join(" ")
    }

    #[test]
    fn a_hub_has_both_ends_in_the_guest() {
        let line = arguments("e1000", Side::Dut, &Wire::Hub);
        for part in [
            "-machine pc,accel=tcg",
            "-device e1000,id=nic,netdev=wire,mac=02:6c:69:6e:65:01,romfile=",
            "-device virtio-net-pci,id=partner,netdev=partner-wire,romfile=,mac=02:6c:69:6e:65:02",
            "-chardev socket,id=port0,path=/s/linerate.dut -device virtserialport,chardev=port0,name=linerate.dut",
            "name=linerate.peer",
            "-no-reboot",
            "rdinit=/linerate -- guest",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("linerate.prompt"));
    }

    #[test]
    fn a_tap_and_another_guest_have_one_end() {
        let tap = arguments("virtio-net", Side::Peer, &Wire::Tap("lr-tap".to_owned()));
        assert!(
            tap.contains("-netdev tap,id=wire,ifname=lr-tap,script=no,downscript=no -device virtio-net-pci"),
            "{tap}"
        );
        assert!(tap.contains("mac=02:6c:69:6e:65:02") && !tap.contains("linerate.dut"), "{tap}");
        let one = arguments("igb", Side::Dut, &Wire::Listen("/s/w".into()));
        assert!(one.contains("-netdev stream,id=wire,server=on,addr.type=unix,addr.path=/s/w"), "{one}");
        assert!(one.contains("-machine q35,"), "{one}");
        let other = arguments("e1000", Side::Peer, &Wire::Connect("/s/w".into()));
        assert!(other.contains("server=off"), "{other}");
    }
}
