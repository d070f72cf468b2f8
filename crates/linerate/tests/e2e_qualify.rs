//! `linerate qualify` on veth pairs: runs that pass, words that make no sense, links that must not be qualified, ends that
//! are lost, signals, the kernel selftests' names.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_testkit::{ChildGuard, Finished, LeakCheck, Netns, Program, Wire, need, run_within};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(120);
const LEFT: &str = Wire::LEFT_LINK;
const RIGHT: &str = Wire::RIGHT_LINK;

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

/// A qualification of the left end of a wire with the right one.
fn command(wire: &Wire, options: &[&str]) -> Command {
    let (dut, peer) = (wire.left.node(), wire.right.node());
    let mut words = vec!["qualify", "--no-store", &peer, "--dut", &dut];
    words.extend(options);
    linerate().command(&words)
}

fn qualify(wire: &Wire, options: &[&str]) -> Finished {
    run_within(command(wire, options), LIMIT)
}

/// Must fail before any case, with this exit code and these words.
fn refused(finished: Finished, code: i32, words: &str) {
    let finished = finished.expect_code(code);
    assert!(finished.stderr.contains(words), "no {words:?} in\n{}", finished.output());
    assert!(!finished.stdout.contains("pass"), "{}", finished.output());
}

/// The link's facts that cases change.
fn state(wire: &Wire) -> String {
    let of = |netns: &Netns, link: &str| {
        let shown = netns.ip(&["-d", "link", "show", "dev", link]);
        // Without the counters of promiscuity and the like, which may lag behind a closed socket.
        shown.lines().take(2).collect::<Vec<_>>().join("\n")
            + &netns.ip(&["-br", "addr", "show", "dev", link])
    };
    of(&wire.left, LEFT) + &of(&wire.right, RIGHT)
}

#[test]
fn alone_it_qualifies_a_private_pair_as_root_and_as_an_ordinary_user() {
    need!(netns(), unprivileged());
    let leaks = LeakCheck::start();
    let public = linerate().for_everybody();
    let words = ["qualify", "--no-store", "--case", "TX-01,RX-01,MTU-01,CSUM-01", "--seed", "7"];
    for (who, command) in [("root", linerate().command(&words)), ("an ordinary user", public.command(&words))]
    {
        let finished = run_within(command, LIMIT).expect_code(0);
        for name in ["TX-01.lock_step", "RX-01.tagged", "CSUM-01.v6_tcp", "MTU-01"] {
            let passed = finished.stdout.lines().any(|line| line.starts_with("pass") && line.contains(name));
            assert!(passed, "{who}: no pass of {name}\n{}", finished.output());
        }
    }
    drop(public);
    leaks.assert_none();
}

#[test]
fn what_there_is_is_told_without_running_any() {
    let run = |words: &[&str]| linerate().run(&[&["qualify"], words].concat()).expect_code(0).stdout;
    assert_eq!(run(&["--list"]).lines().count(), 116);
    let explained = run(&["--explain", "csum-01"]);
    assert!(explained.contains("Must hold") && explained.contains("v6_extensions"), "{explained}");
    let plan = run(&["--plan", "--case", "NVM-01,TX-01"]);
    assert!(plan.contains("TX-01.pipelined") && plan.contains("skip"), "{plan}");
}

#[test]
fn words_that_make_no_sense_are_refused() {
    for (words, told) in [
        (&["--case", "NONE-01"][..], "no case matches 'NONE-01'"),
        (&["--area", "nowhere"], "no area 'nowhere'"),
        (&["--explain", "NONE-01"], "no case 'NONE-01'"),
        (&["--peer-link", "eth9"], "needs a PEER"),
        (&["--allow", "fire"], "cannot be allowed"),
        (&["tcp:127.0.0.1", "--link", "lo"], "traffic only"),
        (&["--topology", "/nonexistent.toml"], "nonexistent"),
    ] {
        let finished = linerate().run(&[&["qualify"], words].concat());
        assert!(finished.stderr.contains(told), "{words:?}: no {told:?} in\n{}", finished.output());
        assert_eq!(finished.code(), 2, "{words:?}\n{}", finished.output());
    }
}

#[test]
fn links_that_cannot_be_qualified_are_refused_with_what_to_do() {
    need!(netns());
    let wire = Wire::new();
    let case = ["--case", "TX-01.lock_step"];
    let with = |words: &[&str]| qualify(&wire, &[&case, words].concat());
    refused(with(&["--link", "nosuch"]), 2, "there is no link nosuch");
    let dut = wire.left.node();
    let same = linerate().run(&["qualify", &dut, "--dut", &dut, "--link", LEFT, "--peer-link", LEFT]);
    refused(same, 2, "same link");
    let elsewhere = Netns::new("elsewhere");
    elsewhere.ip(&["link", "add", "lr-a", "type", "veth", "peer", "name", "lr-b"]);
    elsewhere.ip(&["link", "set", "lr-a", "up"]);
    elsewhere.ip(&["link", "set", "lr-b", "up"]);
    let node = elsewhere.node();
    let no_peer = linerate().run(&["qualify", &node, "--dut", &dut, "--case", "TX-01"]);
    refused(no_peer, 3, "no peer there");
    wire.right.ip(&["link", "set", RIGHT, "down"]);
    refused(with(&["--link", LEFT]), 3, "without carrier");
    wire.left.ip(&["link", "set", LEFT, "down"]);
    refused(with(&["--link", LEFT]), 3, "is down");
}

#[test]
fn the_control_path_is_refused_unless_it_is_meant() {
    need!(netns());
    let wire = Wire::new();
    wire.left.ip(&["route", "add", "default", "via", &wire.right_ipv4().to_string()]);
    let run = |more: &[&str]| {
        let mut command = wire.left.command(env!("CARGO_BIN_EXE_linerate"));
        let peer = wire.right.node();
        command
            .args(["qualify", "--no-store", &peer, "--link", LEFT, "--case", "TX-01.lock_step"])
            .args(more);
        run_within(command, LIMIT)
    };
    refused(run(&[]), 2, "--even-control-path");
    run(&["--even-control-path"]).expect_code(0);
}

#[test]
fn a_link_without_addresses_is_lent_some_and_loses_them_again() {
    need!(netns());
    let wire = Wire::new();
    wire.left.ip(&["addr", "flush", "dev", LEFT]);
    wire.right.ip(&["addr", "flush", "dev", RIGHT]);
    let before = state(&wire);
    let finished = qualify(&wire, &["--case", "TX-01.lock_step,DATA-01.v4_write"]).expect_code(0);
    assert!(finished.stderr.contains("is lent"), "{}", finished.output());
    assert!(finished.stdout.contains("DATA-01.v4_write"), "{}", finished.output());
    assert_eq!(before, state(&wire));
}

#[test]
fn a_second_suite_on_the_same_link_is_told_of_the_first() {
    need!(netns());
    let wire = Wire::new();
    let mut first = ChildGuard::spawn(command(&wire, &["--case", "TX-01", "--repeat", "1000"]));
    first.wait_for_text("TX-01.lock_step", LIMIT);
    let second = qualify(&wire, &["--case", "TX-01"]);
    refused(second, 3, "another qualification runs on this link");
    assert!(first.is_running());
    first.signal(Signal::SIGINT);
    first.wait_within(LIMIT).expect_code(5);
    qualify(&wire, &["--case", "TX-01.lock_step"]).expect_code(0);
}

#[test]
fn a_signal_in_each_phase_puts_everything_back_and_keeps_what_was_found() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    let before = state(&wire);
    let start = |case: &str| ChildGuard::spawn(command(&wire, &["--case", case, "--repeat", "1000"]));
    // While it joins the ends, calibrates, and begins.
    for wait_ms in [20, 120, 400, 700, 1100] {
        let child = start("MTU-01");
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.signal(Signal::SIGTERM);
        let finished = child.wait_within(LIMIT);
        // Before it has begun to listen to signals, one ends it; then nothing has been changed.
        let code = finished.status.code().unwrap_or(143);
        assert!([3, 5, 143].contains(&code), "after {wait_ms} ms: {code}\n{}", finished.output());
        assert_eq!(before, state(&wire), "after {wait_ms} ms");
    }
    // While cases run: what is over is shown.
    for case in ["TX-01", "MTU-01", "DATA-01"] {
        let mut child = start(case);
        child.wait_for_text(case, LIMIT);
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        child.signal(Signal::SIGINT);
        let finished = child.wait_within(LIMIT).expect_code(5);
        assert!(asked.elapsed() < Duration::from_secs(30), "{case}: {:?}", asked.elapsed());
        assert!(finished.stdout.contains("nterrupted"), "{}", finished.output());
        assert!(finished.stdout.contains("pass"), "{}", finished.output());
        assert_eq!(before, state(&wire), "{case}");
    }
    drop(wire);
    leaks.assert_none();
}

#[test]
fn a_link_that_disappears_ends_the_run_with_what_was_found() {
    need!(netns());
    let wire = Wire::new();
    let mut child = ChildGuard::spawn(command(&wire, &["--case", "TX-01", "--repeat", "1000"]));
    child.wait_for_text("TX-01.pipelined", LIMIT);
    wire.left.ip(&["link", "del", LEFT]);
    let finished = child.wait_within(LIMIT).expect_code(3);
    assert!(finished.stdout.contains("is gone"), "{}", finished.output());
    assert!(finished.stdout.contains("pass"), "{}", finished.output());
}

#[test]
fn an_agent_that_dies_ends_the_run_with_what_was_found() {
    need!(netns());
    let wire = Wire::new();
    let before = state(&wire);
    let mut child = ChildGuard::spawn(command(&wire, &["--case", "MTU-01", "--repeat", "1000"]));
    child.wait_for_text("MTU-01", LIMIT);
    kill_agent(child.pid(), wire.left.name());
    let finished = child.wait_within(LIMIT).expect_code(3);
    assert!(finished.stdout.contains("Ended early"), "{}", finished.output());
    // What the dead agent had changed is put back by the next one there.
    qualify(&wire, &["--case", "TX-01.lock_step"]).expect_code(0);
    assert_eq!(before, state(&wire));
}

/// Kills the agent that a controller started in a namespace.
fn kill_agent(controller: u32, netns: &str) {
    let list = format!("/proc/{controller}/task/{controller}/children");
    let children = std::fs::read_to_string(list).unwrap();
    let agent = children.split_whitespace().find(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.contains("--stdio") && words.contains(netns))
    });
    let pid = agent.unwrap().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

#[test]
fn a_topology_file_tells_both_ends() {
    need!(netns());
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("lr-topology-{}.toml", std::process::id()));
    let text = format!(
        "medium = \"veth\"\ndisruptive = false\n[local]\nnode = \"{}\"\nlink = \"{LEFT}\"\n[remote]\nnode = \"{}\"\n",
        wire.left.node(),
        wire.right.node()
    );
    std::fs::write(&path, text).unwrap();
    let words =
        ["qualify", "--no-store", "--topology", path.to_str().unwrap(), "--case", "TX-01.lock_step,MTU-01"];
    let finished = linerate().run(&words);
    let _ = std::fs::remove_file(&path);
    let finished = finished.expect_code(0);
    assert!(finished.stdout.contains("NOT_ALLOWED"), "{}", finished.output());
}

#[test]
fn the_kernel_selftests_names_and_exit_codes_are_understood() {
    need!(netns());
    let wire = Wire::new();
    let run = |case: &str, more: &[(&str, &str)]| {
        let mut command = wire.left.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["qualify", "--no-store", "--case", case]);
        command
            .env("NETIF", LEFT)
            .env("LOCAL_V4", wire.left_ipv4().to_string())
            .env("REMOTE_V4", wire.right_ipv4().to_string())
            .env("REMOTE_TYPE", "netns")
            .env("REMOTE_ARGS", wire.right.name())
            .envs(more.iter().copied());
        run_within(command, LIMIT)
    };
    run("TX-01.lock_step", &[]).expect_code(0);
    run("NVM-01", &[]).expect_code(4);
    run("MTU-01", &[("DISRUPTIVE", "no")]).expect_code(4);
    run("TX-01.lock_step", &[("KSFT_MACHINE_SLOW", "yes")]).expect_code(0);
    run("TX-01", &[("NETIF", "nosuch")]).expect_code(1);
    run("TX-01", &[("DISRUPTIVE", "perhaps")]).expect_code(2);
}
