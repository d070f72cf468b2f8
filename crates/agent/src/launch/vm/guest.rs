//! Booting a guest: kernel, initramfs and QEMU put together.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use linerate_model::trial::Side;
use linerate_sys::memfd::memfd_with;

use super::archive::Archive;
use super::error::{Result, VmError};
use super::kernel::Kernel;
use super::machine::{Machine, MachineFacts, SocketFolder, Start, Started, path_of_open};
use super::modules::{Module, ModuleTree};
use super::profile::Profile;
use super::qemu::{self, Wire};
use super::{LaunchOptions, acceleration, program};
use crate::guest::{self, GuestPlan, Load, PLAN, PROMPT_PORT, PlannedEnd, PlannedModule, mac_of, port_of};

/// What every guest needs to talk to us.
const CHANNEL_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
/// What the partner in the same guest needs.
const PARTNER_MODULE: &str = "virtio_net";

/// What the kernel may ask for when a test makes a link, a queueing discipline or a filter: at hand where the kernel has it,
/// and loaded when it asks.
const AT_HAND: [&str; 30] = [
    "8021q",
    "macvlan",
    "ipvlan",
    "veth",
    "dummy",
    "ifb",
    "bonding",
    "bridge",
    "vxlan",
    "tun",
    "geneve",
    "ip_gre",
    "sch_netem",
    "sch_fq",
    "sch_fq_codel",
    "sch_tbf",
    "sch_prio",
    "sch_htb",
    "sch_ingress",
    "sch_mqprio",
    "sch_etf",
    "sch_taprio",
    "cls_matchall",
    "cls_flower",
    "cls_bpf",
    "cls_u32",
    "act_mirred",
    "act_gact",
    "tcp_bbr",
    "rtc_cmos",
];

/// What guest is wanted.
#[derive(Debug, Clone)]
pub struct Order {
    /// Name or file of its profile.
    pub(super) profile: String,
    /// This program.
    pub(super) program: PathBuf,
    /// Kernel version or folder, before what the profile says.
    pub(super) kernel: Option<String>,
    /// Which end of the wire its NIC is.
    pub(super) side: Side,
    pub(super) wire: Wire,
    /// The namespace that QEMU runs in, where the wire leads there.
    pub(super) netns: Option<String>,
    /// With a prompt.
    pub(super) prompt: bool,
}

impl Order {
    /// A guest that has both ends of the wire.
    pub fn hub(profile: &str, options: &LaunchOptions) -> Self {
        Self {
            profile: profile.to_owned(),
            program: options.program.clone(),
            kernel: options.kernel.clone(),
            side: Side::Dut,
            wire: Wire::Hub,
            netns: None,
            prompt: false,
        }
    }

    /// The same with a prompt: see [`Guest::take_prompt`].
    #[must_use]
    pub fn with_prompt(mut self) -> Self {
        self.prompt = true;
        self
    }
}

/// A guest that runs.
#[derive(Debug)]
pub struct Guest {
    profile: Profile,
    machine: Machine,
    /// Host's ends of the agents' ports that nobody has taken.
    ports: Mutex<BTreeMap<&'static str, UnixStream>>,
    /// All ports: one whose node is gone must not look closed to its agent as long as the other node lives.
    _open: Vec<UnixStream>,
    started: Instant,
}

impl Guest {
    /// Its profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The handle by which its QEMU acts on it.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// When its QEMU was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The port of the prompt, once.
    ///
    /// # Errors
    /// It was taken, or the guest has none.
    pub fn take_prompt(&self) -> Result<UnixStream> {
        self.take(PROMPT_PORT)
    }

    pub(super) fn take_port(&self, side: Side) -> Result<UnixStream> {
        self.take(port_of(side))
    }

    fn take(&self, name: &'static str) -> Result<UnixStream> {
        self.ports().remove(name).ok_or_else(|| VmError::Guest(format!("the guest has no free port {name}")))
    }

    fn has_free_port(&self, side: Side) -> bool {
        self.ports().contains_key(port_of(side)) && self.machine.ended(std::time::Duration::ZERO).is_none()
    }

    fn ports(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, UnixStream>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guests that were started with the same options, so that two nodes can be in one. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Guests(Arc<Mutex<Vec<Running>>>);

/// The profile's name, and the guest as long as it runs.
type Running = (String, Weak<Guest>);

impl Guests {
    /// A guest of this profile in which this end has no node yet; boots one where there is none.
    pub(super) fn with_free_port(
        &self,
        profile: &str,
        side: Side,
        boot: impl FnOnce() -> Result<Arc<Guest>>,
    ) -> Result<Arc<Guest>> {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.retain(|(_, guest)| guest.strong_count() > 0);
        let running =
            guests.iter().filter(|(name, _)| name == profile).filter_map(|(_, guest)| guest.upgrade());
        if let Some(guest) = running.into_iter().find(|guest| guest.has_free_port(side)) {
            return Ok(guest);
        }
        let guest = boot()?;
        guests.push((profile.to_owned(), Arc::downgrade(&guest)));
        Ok(guest)
    }
}

/// Starts a guest; does not wait until it is up.
///
/// # Errors
/// No such profile, no QEMU, no kernel, a module that is missing, or QEMU's own words.
pub fn boot(order: &Order) -> Result<Arc<Guest>> {
    let profile = Profile::find(&order.profile)?;
    let qemu = qemu::program()?;
    check_device(&qemu, &profile)?;
    let kernel = Kernel::choose(order.kernel.as_deref().or(profile.kernel.as_deref()))?;
    let (acceleration, why_software) = acceleration::choose(profile.acceleration, &qemu, &kernel.image)?;
    let sockets = SocketFolder::create()?;
    let initramfs = initramfs(order, &profile, &kernel)?;
    let memory = memfd_with("linerate-initramfs", &initramfs);
    let file = File::from(memory.map_err(|error| VmError::Guest(error.to_string()))?);
    let description = qemu::Machine {
        profile: &profile,
        side: order.side,
        wire: &order.wire,
        acceleration,
        kernel_image: &kernel.image,
        initramfs: &path_of_open(&file),
        sockets: sockets.path(),
        prompt: order.prompt,
    };
    let mut names: Vec<&'static str> = description.sides().into_iter().map(port_of).collect();
    if order.prompt {
        names.push(PROMPT_PORT);
    }
    let facts = MachineFacts {
        profile: profile.name.clone(),
        qemu: qemu::version(&qemu)?,
        acceleration,
        why_software,
        kernel: kernel.version.clone(),
    };
    let started = Instant::now();
    let Started { machine, ports } = Machine::start(Start {
        program: &qemu,
        arguments: description.arguments(),
        netns: order.netns.clone(),
        facts,
        sockets: &sockets,
        ports: names.iter().map(|name| (*name).to_owned()).collect(),
    })?;
    let open: std::io::Result<Vec<UnixStream>> = ports.iter().map(UnixStream::try_clone).collect();
    let open = open.map_err(|cause| VmError::file("use", "a port of the guest", cause))?;
    let ports = Mutex::new(names.into_iter().zip(ports).collect());
    Ok(Arc::new(Guest { profile, machine, ports, _open: open, started }))
}

fn check_device(qemu: &Path, profile: &Profile) -> Result<()> {
    if qemu::has_device(qemu, &profile.nic)? {
        return Ok(());
    }
    let version = qemu::version(qemu)?;
    Err(VmError::Qemu(format!("profile {}: QEMU {version} has no device {}", profile.name, profile.nic)))
}

/// Program, modules and plan of a guest.
fn initramfs(order: &Order, profile: &Profile, kernel: &Kernel) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/lib", "/etc"] {
        archive.folder(folder);
    }
    archive.device("/dev/console", 5, 1);
    program::add(&order.program, &mut archive)?;
    let modules = add_modules(order, profile, kernel, &mut archive)?;
    let end = |side, apart| PlannedEnd { side, mac: mac_of(side).to_owned(), apart };
    let ends = match order.wire {
        Wire::Hub => vec![end(Side::Dut, false), end(Side::Peer, true)],
        Wire::Tap(_) | Wire::Listen(_) | Wire::Connect(_) => vec![end(order.side, false)],
    };
    let host_name =
        format!("vm-{}", Path::new(&profile.name).file_stem().unwrap_or_default().to_string_lossy());
    let plan = GuestPlan { host_name, modules, writes: profile.writes.clone(), ends };
    // Invariant: texts and numbers alone are always JSON.
    let text = serde_json::to_vec(&plan).map_err(|error| VmError::Guest(error.to_string()))?;
    archive.file(PLAN, &text);
    Ok(archive.finish())
}

fn add_modules(
    order: &Order,
    profile: &Profile,
    kernel: &Kernel,
    archive: &mut Archive,
) -> Result<Vec<PlannedModule>> {
    let tree = ModuleTree::read(&kernel.modules, &kernel.version)?;
    let mut wanted: Vec<String> = CHANNEL_MODULES.map(str::to_owned).to_vec();
    if order.wire == Wire::Hub {
        wanted.push(PARTNER_MODULE.to_owned());
    }
    wanted.extend(profile.modules.iter().cloned());
    let optional = profile.optional_modules.iter().filter(|name| tree.has(name)).cloned();
    let needed = tree.in_order(&wanted)?.len();
    wanted.extend(optional);
    let loaded = tree.in_order(&wanted)?.len();
    wanted.extend(AT_HAND.iter().filter(|name| tree.has(name)).map(|name| (*name).to_owned()));
    let folder = format!("/lib/modules/{}", kernel.version);
    let mut planned = Vec::new();
    let mut dependencies = String::new();
    for (number, module) in tree.in_order(&wanted)?.into_iter().enumerate() {
        let Module { name, content, needs, aliases } = module;
        let file = format!("{folder}/{name}.ko");
        archive.file(&file, &content);
        let needs: Vec<String> = needs.iter().map(|name| format!("{name}.ko")).collect();
        dependencies.extend([format!("{name}.ko: {}\n", needs.join(" "))]);
        let parameters = profile.parameters.get(&name).cloned().unwrap_or_default();
        let load = match number {
            number if number < needed => Load::Needed,
            number if number < loaded => Load::Wanted,
            _ => Load::WhenAsked,
        };
        // Of these the kernel only asks for what no device has.
        let aliases = if load == Load::WhenAsked { aliases } else { Vec::new() };
        planned.push(PlannedModule { name, file, parameters, load, aliases });
    }
    archive.file(&format!("{folder}/modules.dep"), dependencies.as_bytes());
    archive.link(guest::MODPROBE, guest::PROGRAM);
    Ok(planned)
}
