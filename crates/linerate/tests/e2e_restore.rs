//! Settings come back, whoever is killed at whatever moment: the controller, the agents, all of them, or the connection
//! between them. Twenty-five times each, at moments drawn from a seed that is printed (LINERATE_TEST_SEED sets it).

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use linerate_link::{in_netns, settings};
use linerate_testkit::{ChildGuard, Netns, Wire, eventually, need, run_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const ROUNDS: u32 = 25;
const LIMIT: Duration = Duration::from_secs(40);
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// Of every kind that a veth has. Without GRO a veth has no NAPI, so it comes first; an MTU below 1280 takes IPv6 away.
const SET: [&str; 11] = [
    "both.gro=on",
    "dut.napi-threaded=on",
    "dut.napi-defer-hard-irqs=3",
    "dut.gro-flush-timeout=20000",
    "dut.tso=off",
    "peer.gso=off",
    "both.mtu=1000",
    "dut.txqueuelen=77",
    "both.qdisc=pfifo",
    "dut.tcp-sack=0",
    "peer.sysctl:net.ipv4.conf.all.rp_filter=2",
];

#[test]
fn with_the_controller_killed_settings_come_back() {
    need!(netns(), tool("tc"));
    Bench::new("controller").rounds(|run, _| run.kill_controller());
}

#[test]
fn with_the_agents_killed_settings_come_back() {
    need!(netns(), tool("tc"));
    Bench::new("agents").rounds(|run, _| run.kill_agents());
}

#[test]
fn with_all_killed_settings_come_back() {
    need!(netns(), tool("tc"));
    Bench::new("all").rounds(|run, random| {
        let agents = run.agents();
        if random.below(2) == 0 {
            run.kill_controller();
            // The agents may be half way through putting back.
            std::thread::sleep(Duration::from_millis(random.below(15)));
            kill_each(&agents);
        } else {
            run.kill_agents();
            run.kill_controller();
        }
        if random.below(2) == 0 {
            kill_a_restorer(random);
        }
    });
}

#[test]
fn with_the_connection_cut_settings_come_back() {
    need!(netns(), tool("tc"));
    let mut bench = Bench::new("connection");
    bench.through_ssh = true;
    bench.rounds(|run, _| run.cut_connection());
}

/// Two namespaces joined by a veth pair, and what they were like at first.
struct Bench {
    label: &'static str,
    wire: Wire,
    /// Has a program `ssh` that enters a namespace through two pipes.
    folder: PathBuf,
    through_ssh: bool,
}

impl Bench {
    fn new(label: &'static str) -> Self {
        let folder = std::env::temp_dir().join(format!("lr-restore-{}-{label}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let ssh = folder.join("ssh");
        let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n\
            cat | ip netns exec \"$2\" sh -c \"$3\" | cat\n";
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self { label, wire: Wire::new(), folder, through_ssh: false }
    }

    fn rounds(&self, harm: impl Fn(&Run, &mut Random)) {
        let mut random = Random::seeded();
        println!("{}: LINERATE_TEST_SEED={}", self.label, random.0);
        let before = self.state();
        let (mut changed, mut undone) = (0, 0);
        for round in 0..ROUNDS {
            let run = self.start();
            run.wait_for_agents();
            // While settings are rehearsed and changed, or later, while traffic runs. Looking takes time, so it is left
            // out of the first.
            let kind = random.below(3);
            let moment = random.below([150, 400, 1500][kind as usize]);
            std::thread::sleep(Duration::from_millis(moment));
            changed += u32::from(kind != 0 && self.state() != before);
            let agents = run.agents();
            harm(&run, &mut random);
            run.end();
            let words = if random.below(5) == 0 { self.next_run() } else { restore() };
            undone += u32::from(words.contains("again"));
            let after = self.state();
            for (item, value) in &before {
                let now = &after[item];
                assert_eq!(now, value, "round {round}, {moment} ms: {item}\n{words}");
            }
            eventually(LIMIT, "agents end", || agents.iter().all(|pid| !lives(*pid)).then_some(()));
            // A process that was killed may take a moment to be gone on a busy machine.
            eventually(LIMIT, "nothing is left to put back", || {
                (restore() == "nothing to put back\n").then_some(())
            });
        }
        println!("{}: changed when harmed {changed}, put back by the next {undone} of {ROUNDS}", self.label);
        assert!(changed >= ROUNDS / 5, "only {changed} rounds had anything to put back");
    }

    fn start(&self) -> Run {
        let scheme = if self.through_ssh { "ssh" } else { "netns" };
        let node = |netns: &Netns| format!("{scheme}:{}", netns.name());
        let mut command = Command::new(PROGRAM);
        command.args(["run", &node(&self.wire.right), "--dut", &node(&self.wire.left)]);
        command.args(["--link", Wire::LEFT_LINK, "--peer-link", Wire::RIGHT_LINK, "--family", "4"]);
        command.args(["-w", "tcp-stream", "-t", "20", "--settle", "0.2", "--no-store", "--quiet"]);
        command.args(SET.iter().flat_map(|set| ["--set", *set]));
        if self.through_ssh {
            let path = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{path}", self.folder.display()));
            command.args(["--remote-program", PROGRAM]);
        }
        command.stdin(Stdio::null());
        Run { controller: ChildGuard::spawn(command) }
    }

    /// A run without settings of its own puts back what the one before left.
    fn next_run(&self) -> String {
        let mut command = Command::new(PROGRAM);
        command.args(["run", &self.wire.right.node(), "--dut", &self.wire.left.node(), "--family", "4"]);
        command.args(["-w", "tcp-stream", "-t", "0.05", "--warmup", "0", "--no-store", "--quiet"]);
        let finished = run_within(command, LIMIT);
        assert!(finished.success(), "{}", finished.output());
        finished.stderr
    }

    /// Every setting, by our own word and by that of other programs.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for (netns, link) in [(&self.wire.left, Wire::LEFT_LINK), (&self.wire.right, Wire::RIGHT_LINK)] {
            for info in in_netns(netns.name(), || settings::list(link)).unwrap() {
                state.insert(format!("{link} {}", info.key), format!("{:?}", info.value));
            }
            let rp_filter =
                in_netns(netns.name(), || settings::read(link, "sysctl:net.ipv4.conf.all.rp_filter"));
            state.insert(format!("{link} rp_filter"), rp_filter.unwrap());
            state.insert(format!("{link} addresses"), netns.ip(&["-o", "addr", "show", "scope", "global"]));
            let mut tc = netns.command("tc");
            tc.args(["qdisc", "show", "dev", link]);
            state.insert(format!("{link} tc"), run_within(tc, LIMIT).expect_code(0).stdout);
        }
        state
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn restore() -> String {
    let mut command = Command::new(PROGRAM);
    command.arg("restore");
    run_within(command, LIMIT).expect_code(0).stdout
}

/// Starts putting back, and is killed at it, with the agent that does the work.
fn kill_a_restorer(random: &mut Random) {
    let mut command = Command::new(PROGRAM);
    command.arg("restore").stdin(Stdio::null());
    let mut restorer = ChildGuard::spawn(command);
    std::thread::sleep(Duration::from_millis(random.below(60)));
    kill_each(&descendants(restorer.pid()));
    if restorer.is_running() {
        restorer.signal(Signal::SIGKILL);
    }
    eventually(LIMIT, "the restorer ends", || (!restorer.is_running()).then_some(()));
}

/// A measurement that is under way.
struct Run {
    controller: ChildGuard,
}

impl Run {
    fn wait_for_agents(&self) {
        eventually(LIMIT, "both agents run", || (self.agents().len() == 2).then_some(()));
    }

    fn kill_controller(&self) {
        self.controller.signal(Signal::SIGKILL);
    }

    fn kill_agents(&self) {
        kill_each(&self.agents());
    }

    /// Ends what carries the bytes, and nothing else.
    fn cut_connection(&self) {
        let carriers: Vec<_> =
            descendants(self.controller.pid()).into_iter().filter(|pid| name(*pid) == "cat").collect();
        assert!(!carriers.is_empty(), "there was a connection to cut");
        kill_each(&carriers);
    }

    /// The agents that are there, as long as the controller is.
    fn agents(&self) -> Vec<u32> {
        let is_agent = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(PROGRAM.as_bytes()) && line.windows(7).any(|part| part == b"--stdio")
        };
        descendants(self.controller.pid()).into_iter().filter(is_agent).collect()
    }

    /// Waits until the controller has ended, by itself or by a signal.
    fn end(mut self) {
        eventually(LIMIT, "the controller ends", || (!self.controller.is_running()).then_some(()));
    }
}

fn kill_each(pids: &[u32]) {
    for pid in pids {
        // One that has ended meanwhile is as good as killed.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
}

fn lives(pid: u32) -> bool {
    name(pid) == "linerate"
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|text| text.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

/// xorshift64: enough to spread moments.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let given = std::env::var("LINERATE_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64 | 1);
        Self(given.unwrap_or_else(now))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
