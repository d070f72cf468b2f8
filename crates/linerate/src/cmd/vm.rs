//! `linerate vm`: emulated NICs with their real drivers.

use std::io::{IsTerminal, Write};

use clap::{Args, Subcommand};
use linerate_agent::launch::vm::{self, Kernel, Profile, fetch, kernel};
use linerate_model::NodeUrl;
use linerate_model::exit::ExitCode;
use linerate_model::trial::Side;

use crate::failure::Failure;
use crate::link_text;
use crate::reach::{ReachArgs, only_link, print};

#[derive(Debug, Args)]
pub(crate) struct VmArgs {
    #[command(subcommand)]
    action: VmAction,
}

#[derive(Debug, Subcommand)]
enum VmAction {
    /// Get a kernel package through the system's package manager and unpack it in the cache; nothing is installed.
    Fetch {
        /// The package, as `linux-image-6.1.0-57-amd64`; the newest where none is named.
        package: Option<String>,
    },
    /// List the profiles, and the kernels that are here.
    List,
    /// Boot a guest and take linerate's subcommands for it, a line each: a guest has no shell.
    Shell {
        /// Name of a profile, or its file.
        profile: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Boot a guest, show its link as the driver shows it, and end it.
    Boot {
        /// Name of a profile, or its file.
        profile: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub(crate) fn run(args: VmArgs) -> Result<ExitCode, Failure> {
    match args.action {
        VmAction::Fetch { package } => get(package.as_deref()),
        VmAction::List => list(),
        VmAction::Boot { profile, reach } => boot(profile, &reach),
        VmAction::Shell { profile, reach } => shell(&profile, &reach),
    }
}

fn get(package: Option<&str>) -> Result<ExitCode, Failure> {
    if std::io::stderr().is_terminal() {
        eprintln!("Fetching a kernel into {} ...", kernel::cache().display());
    }
    let Kernel { version, image, .. } = fetch::fetch(package).map_err(Failure::node)?;
    print(&format!("kernel {version}: {}\n", image.display()))?;
    Ok(ExitCode::Good)
}

fn list() -> Result<ExitCode, Failure> {
    let mut text = String::from("Profiles:\n");
    for profile in vm::shipped().map_err(Failure::node)? {
        let Profile { name, driver, about, .. } = &profile;
        let usable = match vm::can_emulate(&profile) {
            Ok(true) => String::new(),
            Ok(false) => " (this QEMU does not have it)".to_owned(),
            Err(error) => format!(" ({error})"),
        };
        text.extend([format!("  vm:{name:<14} {driver:<12} {about}{usable}\n")]);
    }
    text += "Kernels:\n";
    let kernels = kernel::all();
    if kernels.is_empty() {
        text += "  none: run `linerate vm fetch`\n";
    }
    text.extend(kernels.iter().map(|k| format!("  {:<26} {}\n", k.version, k.image.display())));
    print(&text)?;
    Ok(ExitCode::Good)
}

fn boot(profile: String, reach: &ReachArgs) -> Result<ExitCode, Failure> {
    let begun = std::time::Instant::now();
    let mut node = reach.connect(&NodeUrl::Vm { profile, seat: Side::Dut })?;
    let took = begun.elapsed().as_secs_f64();
    let link = only_link(&mut node)?;
    let found = node.inventory(Some(&link))?;
    let machine = node.machine().map(|machine| {
        let facts = machine.facts();
        let how = match &facts.why_software {
            Some(why) => format!("software emulation, since {why}"),
            None => "KVM".to_owned(),
        };
        format!("kernel {}, QEMU {}, {how}; up within {took:.1} s\n\n", facts.kernel, facts.qemu)
    });
    let mut text = machine.unwrap_or_default();
    text.extend(found.iter().map(link_text::in_full));
    print(&text)?;
    Ok(ExitCode::Good)
}

/// Lets stdin and stdout talk to the prompt in a guest, until either ends.
fn shell(profile: &str, reach: &ReachArgs) -> Result<ExitCode, Failure> {
    let guest = vm::boot(&vm::Order::hub(profile, &reach.options()?).with_prompt()).map_err(Failure::node)?;
    let mut port = guest.take_prompt().map_err(Failure::node)?;
    let mut to_guest = port.try_clone().map_err(|e| Failure::node(format!("use the guest's port: {e}")))?;
    let forward = move || {
        // An empty line makes the prompt show.
        let copied =
            to_guest.write_all(b"\n").and_then(|()| std::io::copy(&mut std::io::stdin(), &mut to_guest));
        let _ = copied.and_then(|_| to_guest.write_all(b"exit\n"));
    };
    let started = std::thread::Builder::new().name("vm-stdin".to_owned()).spawn(forward);
    started.map_err(|e| Failure::node(format!("start a thread: {e}")))?;
    // The guest ends with its prompt, and QEMU with the guest.
    std::io::copy(&mut port, &mut std::io::stdout()).map_err(|e| {
        Failure::node(format!("{e}; {}", guest.machine().last_words(std::time::Duration::ZERO)))
    })?;
    Ok(ExitCode::Good)
}
