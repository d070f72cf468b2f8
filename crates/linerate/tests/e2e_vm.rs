//! `vm:` nodes: guests in QEMU with emulated NICs. Each boot takes 5 to 10 s by software, so there are few.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use linerate_model::hazard::HazardKind;
use linerate_testkit::{
    ChildGuard, Netns, Program, Skip, eventually, need, records, run_within, wait_until_gone,
};
use nix::sys::signal::Signal;

/// A boot on a machine that others use too.
const LIMIT: Duration = Duration::from_secs(120);
const QEMU: &str = "qemu-system-x86_64";

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

/// Needs a kernel that guests can boot.
fn kernel() -> Result<(), Skip> {
    let list = linerate().run(&["vm", "list"]).expect_code(0).stdout;
    if list.contains("none: run") { Err(Skip::new("needs a kernel (linerate vm fetch)")) } else { Ok(()) }
}

/// Process ids of the QEMUs that a process has started.
fn qemus_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parents = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        stat.contains("(qemu-system") && parents == Some(parent)
    };
    pids.filter(is_ours).collect()
}

struct ProfileFile(PathBuf);

impl ProfileFile {
    fn new(label: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lr-{label}-{}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn node(&self) -> String {
        format!("vm:{}", self.0.display())
    }
}

impl Drop for ProfileFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_real_driver_carries_traffic_and_takes_settings() {
    need!(tool(QEMU));
    need!(with kernel());
    let settings = ["--set", "dut.mtu=1400,1500", "--set", "dut.tso=off"];
    let arguments = [
        &["run", "vm:e1000", "-w", "tcp-stream", "-t", "1", "--seed", "1", "--json", "--quiet"],
        &settings[..],
    ];
    let finished = run_within(linerate().command(&arguments.concat()), LIMIT).expect_code(0);
    let records = records(&finished.stdout);
    assert_eq!(records.len(), 2);
    for record in &records {
        let link = record.dut.environment.link.as_ref().unwrap();
        assert_eq!(link.driver.as_deref(), Some("e1000"));
        let mtu: u32 = record.trial.settings[0].value.parse().unwrap();
        assert_eq!(link.mtu, mtu);
        assert!(!link.features["tx-tcp-segmentation"].on);
        assert!(record.shared_kernel);
        assert_eq!(record.peer.node.to_string(), "vm:e1000/peer");
        assert_eq!(record.peer.environment.link.as_ref().unwrap().driver.as_deref(), Some("virtio_net"));
        let packets: u64 = record.peer.reading.streams.iter().map(|stream| stream.received.bytes).sum();
        assert!(packets > 1 << 20, "{packets} bytes");
        // In the guest and outside, told apart.
        let guest = record.dut.guest.as_ref().unwrap();
        assert!(guest.emulator.starts_with("QEMU "), "{guest:?}");
        let outside = guest.host_cpu.unwrap();
        assert!(outside.user_ns > 0 && outside.window_ns > 500_000_000, "{outside:?}");
        assert_eq!(record.peer.guest.as_ref().unwrap().host_cpu, None);
        let told = record.hazards.iter().any(|hazard| hazard.kind == HazardKind::SoftwareEmulation);
        assert_eq!(told, guest.emulated);
    }
}

/// Boots a guest of a profile, and has its driver carry data both ways.
fn carries(profile: &str) {
    let node = format!("vm:{profile}");
    let load = ["-w", "tcp-bidir", "-t", "0.5", "--warmup", "0.2", "--json", "--quiet"];
    let finished =
        run_within(linerate().command(&[&["run", &node], &load[..]].concat()), LIMIT).expect_code(0);
    let record = records(&finished.stdout).remove(0);
    let driver = record.dut.environment.link.and_then(|link| link.driver).unwrap();
    let list = linerate().run(&["vm", "list"]).expect_code(0).stdout;
    let line = list.lines().find(|line| line.contains(&format!("{node} "))).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some(driver.as_str()), "{line}");
    for reading in [&record.dut.reading, &record.peer.reading] {
        assert!(reading.streams.iter().any(|stream| stream.received.bytes > 0), "{reading:?}");
    }
}

macro_rules! every_driver_carries {
    ($($name:ident: $profile:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            need!(tool(QEMU));
            need!(with kernel());
            carries($profile);
        }
    )+};
}

// e1000 and virtio_net carry in the tests above and below.
every_driver_carries! {
    e1000e_carries: "e1000e",
    e100_carries: "e100",
    tulip_carries: "tulip",
    pcnet32_carries: "pcnet",
    cp8139_carries: "8139cp",
    vmxnet3_carries: "vmxnet3",
}

#[test]
fn a_tap_leads_from_a_guest_to_a_namespace() {
    need!(netns(), tool(QEMU));
    need!(with kernel());
    let netns = Netns::new("vm");
    let finished = run_within(
        linerate().command(&[
            "run",
            &netns.node(),
            "--dut",
            "vm:virtio-net",
            "-w",
            "tcp-rr",
            "-t",
            "0.5",
            "--family",
            "4,6",
            "--json",
            "--quiet",
        ]),
        LIMIT,
    )
    .expect_code(0);
    let records = records(&finished.stdout);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| !record.shared_kernel && record.peer.guest.is_none()));
    let link = records[0].dut.environment.link.as_ref().unwrap();
    // A tap has a vnet header, so that offloads work: over a hub they don't.
    assert!(link.features["tx-tcp-segmentation"].on, "{link:?}");
    eventually(Duration::from_secs(5), "the tap to go with its guest", || {
        (!netns.ip(&["-br", "link"]).contains("lr-tap")).then_some(())
    });
}

#[test]
fn nothing_is_left_of_a_guest_when_linerate_is_killed() {
    need!(tool(QEMU));
    need!(with kernel());
    let controller =
        ChildGuard::spawn(linerate().command(&["run", "vm:e1000", "-w", "tcp-stream", "-t", "60"]));
    let qemu = eventually(LIMIT, "QEMU", || qemus_of(controller.pid()).first().copied());
    controller.signal(Signal::SIGKILL);
    wait_until_gone(qemu, Duration::from_secs(5));
}

#[test]
fn a_guest_that_panics_is_told_with_the_end_of_its_console() {
    need!(tool(QEMU));
    need!(with kernel());
    let text = "about = 'x'\nnic = 'e1000'\ndriver = 'e1000'\nmodules = ['e1000']\nkernel-arguments = ['rdinit=/none']\n";
    let profile = ProfileFile::new("panic", text);
    let command = linerate().command(&["links", &profile.node()]);
    let finished = run_within(command, LIMIT).expect_code(3);
    for words in ["greet its agent: the guest went down", "its console says:", "Kernel panic"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn what_can_not_be_booted_is_told_with_the_way_out() {
    let told = |arguments: &[&str], qemu: Option<&str>, code: i32| {
        let mut command: Command = linerate().command(arguments);
        command.envs(qemu.map(|path| ("LINERATE_QEMU", path)));
        run_within(command, LIMIT).expect_code(code).stderr
    };
    let unknown = told(&["links", "vm:e2000"], None, 2);
    assert!(unknown.contains("no profile e2000: there are e1000, "), "{unknown}");
    let no_qemu = told(&["links", "vm:e1000"], Some("/none/qemu"), 3);
    assert!(no_qemu.contains("run /none/qemu"), "{no_qemu}");
    let no_wire = told(&["run", "local", "--dut", "vm:e1000"], None, 2);
    assert!(no_wire.contains("no wire leads from a guest to local"), "{no_wire}");
}
