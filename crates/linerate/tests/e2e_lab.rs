//! `linerate` alone: the private lab, as root and as an ordinary user, and what it leaves behind.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use linerate_model::hazard::HazardKind;
use linerate_testkit::{
    ChildGuard, Finished, LeakCheck, Program, as_ordinary_user, eventually, need, records, run_within,
    wait_until_gone,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const MINUTE: Duration = Duration::from_secs(60);
const QUICK: [&str; 7] = ["run", "-w", "tcp-rr", "-t", "0.1", "--warmup", "0"];

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

/// A look at namespaces, links, processes and files before the program under test ran.
struct Before {
    leaks: LeakCheck,
    files: BTreeSet<String>,
}

impl Before {
    fn new() -> Self {
        Self { leaks: LeakCheck::start(), files: files() }
    }

    fn assert_nothing_left(&self) {
        self.leaks.assert_none();
        let left: Vec<_> = files().difference(&self.files).cloned().collect();
        assert!(left.is_empty(), "files left behind: {left:?}");
    }
}

/// Files that linerate might leave.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["/run/linerate", "/tmp", "/dev/shm", "/var/tmp"] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let names = entries.filter_map(|entry| entry.ok()?.path().to_str().map(str::to_owned));
        found.extend(names.filter(|name| name.contains("linerate")));
    }
    found
}

fn words(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// What stands behind a label in the words about a kept lab.
fn told(finished: &Finished, label: &str) -> String {
    let line = finished.stderr.lines().find_map(|line| line.trim().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label:?} in\n{}", finished.stderr)).trim().to_owned()
}

#[test]
fn alone_it_measures_within_a_minute_as_root_and_as_an_ordinary_user_and_leaves_nothing() {
    need!(netns(), unprivileged());
    let before = Before::new();
    let public = linerate().for_everybody();
    let both = [
        ("root", ChildGuard::spawn(linerate().command(&[]))),
        ("an ordinary user", ChildGuard::spawn(public.command(&[]))),
    ];
    for (who, child) in both {
        let finished = child.wait_within(MINUTE).expect_code(0);
        for workload in
            ["tcp-stream", "tcp-reverse", "tcp-bidir", "tcp-rr", "tcp-crr", "udp-stream", "udp-rr"]
        {
            let rows = finished.stdout.lines().filter(|line| line.starts_with(workload));
            assert_eq!(
                rows.count(),
                2,
                "{who}: a row of {workload} for each IP version\n{}",
                finished.output()
            );
        }
        assert!(!finished.stdout.contains("loopback-instead"), "{who}\n{}", finished.output());
        assert!(finished.stdout.contains("veth"), "{who}\n{}", finished.output());
    }
    drop(public);
    before.assert_nothing_left();
}

#[test]
fn ten_runs_in_a_row_leave_nothing() {
    need!(netns(), unprivileged());
    let before = Before::new();
    let public = linerate().for_everybody();
    for _ in 0..10 {
        linerate().run(&QUICK).expect_code(0);
        run_within(public.command(&QUICK), MINUTE).expect_code(0);
    }
    drop(public);
    before.assert_nothing_left();
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    need!(netns());
    let before = Before::new();
    let together: Vec<_> = (0..4).map(|_| ChildGuard::spawn(linerate().command(&QUICK))).collect();
    for child in together {
        child.wait_within(MINUTE).expect_code(0);
    }
    before.assert_nothing_left();
}

#[test]
fn a_kept_lab_can_be_entered_measured_in_and_removed_by_root() {
    need!(netns());
    let before = Before::new();
    let finished = linerate().run(&[&QUICK[..], &["--keep-lab"]].concat()).expect_code(0);
    for (end, address) in [("enter the dut:", "198.18.0.2"), ("enter the peer:", "198.18.0.1")] {
        let mut enter = words(&told(&finished, end));
        enter.args(["-c", &format!("ip route get {address}")]);
        let seen = run_within(enter, MINUTE).expect_code(0);
        assert!(seen.stdout.contains("dev lr-"), "{}", seen.output());
    }
    let measure = told(&finished, "measure in it:");
    let measure: Vec<&str> = measure.split_whitespace().skip(1).chain(QUICK[1..].iter().copied()).collect();
    linerate().run(&measure).expect_code(0);
    // A run that comes later sweeps what was left behind, not what was kept.
    linerate().run(&QUICK).expect_code(0);
    let id = told(&finished, "remove:").split_whitespace().last().unwrap().to_owned();
    let listed = linerate().run(&["lab"]).expect_code(0);
    assert!(listed.stdout.contains(&id), "{}", listed.output());
    linerate().run(&["lab", "remove", &id]).expect_code(0);
    before.assert_nothing_left();
    let again = linerate().run(&["lab", "remove", &id]);
    assert!(!again.success() && again.stderr.contains("no lab of this id"), "{}", again.output());
}

#[test]
fn a_kept_lab_can_be_entered_and_removed_by_an_ordinary_user() {
    need!(netns(), unprivileged(), tool("nsenter"));
    let before = Before::new();
    let public = linerate().for_everybody();
    let finished = run_within(public.command(&[&QUICK[..], &["--keep-lab"]].concat()), MINUTE).expect_code(0);
    for (end, address) in [("enter the dut:", "198.18.0.2"), ("enter the peer:", "198.18.0.1")] {
        let line = told(&finished, end);
        let (program, arguments) = line.split_once(' ').unwrap();
        let mut enter = as_ordinary_user(program.as_ref());
        enter.args(arguments.split_whitespace()).args(["-c", &format!("ip route get {address}")]);
        let seen = run_within(enter, MINUTE).expect_code(0);
        assert!(seen.stdout.contains("dev lr-"), "{}", seen.output());
    }
    let remove = told(&finished, "remove:");
    let pid: u32 = remove.split_whitespace().last().unwrap().parse().unwrap();
    let mut command = as_ordinary_user("sh".as_ref());
    command.args(["-c", &remove]);
    run_within(command, MINUTE).expect_code(0);
    wait_until_gone(pid, Duration::from_secs(5));
    drop(public);
    before.assert_nothing_left();
}

#[test]
fn where_user_namespaces_are_forbidden_it_measures_over_loopback_and_says_so() {
    need!(unprivileged(), tool("unshare"));
    let before = Before::new();
    let public = linerate().for_everybody();
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let mut command = as_ordinary_user("unshare".as_ref());
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(public.program().path());
    command.args(QUICK).arg("--json");
    let finished = run_within(command, MINUTE).expect_code(0);
    let record = records(&finished.stdout).remove(0);
    let hazard = record.hazards.iter().find(|h| h.kind == HazardKind::LoopbackInsteadOfLab);
    let hazard = hazard.unwrap_or_else(|| panic!("{:?}", record.hazards));
    assert!(hazard.evidence.contains("user namespace"), "{hazard:?}");
    assert!(hazard.cure.contains("max_user_namespaces"), "{hazard:?}");
    assert!(record.dut.environment.link.as_ref().unwrap().loopback);
    drop(public);
    before.assert_nothing_left();
}

#[test]
fn killed_at_any_moment_nothing_is_left_when_the_next_run_has_started() {
    need!(netns());
    let before = Before::new();
    // Different moments each time the tests run: while the lab is built, agents start, traffic flows, all is taken down.
    let seed = u64::from(std::time::UNIX_EPOCH.elapsed().unwrap().subsec_micros());
    for round in 0..12 {
        let delay = Duration::from_millis((seed + round * 97) % 50 + round * 45);
        let child =
            ChildGuard::spawn(linerate().command(&["run", "-w", "tcp-stream", "-t", "0.2", "--warmup", "0"]));
        std::thread::sleep(delay);
        child.signal(Signal::SIGKILL);
        child.wait_within(MINUTE);
    }
    linerate().run(&QUICK).expect_code(0);
    before.assert_nothing_left();
}

#[test]
fn killed_as_an_ordinary_user_nothing_is_left() {
    need!(netns(), unprivileged());
    let before = Before::new();
    let public = linerate().for_everybody();
    for delay_ms in [50, 200, 350, 500, 800] {
        let child = ChildGuard::spawn(public.command(&["run", "-w", "udp-stream", "-t", "5"]));
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.signal(Signal::SIGKILL);
        child.wait_within(MINUTE);
    }
    drop(public);
    before.assert_nothing_left();
}

#[test]
fn a_killed_run_leaves_no_traffic_behind() {
    need!(netns());
    let before = Before::new();
    let mut child =
        ChildGuard::spawn(linerate().command(&["run", "-w", "tcp-stream", "-t", "30", "--interval", "0.1"]));
    child.wait_for_text("tcp-stream", MINUTE);
    let children = format!("/proc/{0}/task/{0}/children", child.pid());
    let agents: Vec<u32> = eventually(MINUTE, "both agents", || {
        let text = std::fs::read_to_string(&children).ok()?;
        let pids: Vec<u32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    });
    child.signal(Signal::SIGKILL);
    for agent in &agents {
        wait_until_gone(*agent, Duration::from_secs(3));
        assert!(kill(Pid::from_raw(agent.cast_signed()), None).is_err() || is_zombie(*agent));
    }
    linerate().run(&QUICK).expect_code(0);
    before.assert_nothing_left();
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}
