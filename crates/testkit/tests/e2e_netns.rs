//! The guards of namespaces, on real ones.

use std::{process::Command, time::Duration};

use linerate_testkit::{LeakCheck, Netns, Wire, need, run_within};

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn a_wire_carries_both_families_and_leaves_nothing() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    for family in [4, 6] {
        // Without ping: a kernel answers a connection to a closed port of a reachable address with a reset.
        let mut connect = wire.left.command("bash");
        connect.args(["-c", &format!("exec 3<>/dev/tcp/{}/9", wire.right_address(family))]);
        let refused = run_within(connect, LIMIT).expect_code(1);
        assert!(refused.stderr.contains("Connection refused"), "{}", refused.stderr);
    }
    assert!(wire.left.link_counter(Wire::LEFT_LINK, "tx_packets") > 0);
    drop(wire);
    leaks.assert_none();
}

#[test]
fn a_command_runs_inside() {
    need!(netns());
    let netns = Netns::new("inside");
    let mut list = netns.command("ls");
    list.arg("/sys/class/net");
    assert_eq!(run_within(list, LIMIT).expect_code(0).stdout, "lo\n");
    assert_eq!(netns.node(), format!("netns:{}", netns.name()));
}

#[test]
fn a_namespace_is_found_while_it_is_there() {
    need!(netns());
    let check = LeakCheck::start();
    let netns = Netns::new("leak");
    assert!(check.now().namespaces.iter().any(|name| name == netns.name()));
    drop(netns);
    check.assert_none();
}

#[test]
fn a_namespace_of_another_name_left_behind_is_reported() {
    need!(netns());
    let check = LeakCheck::start();
    let name = format!("lr-left-{}", std::process::id());
    let ip = |verb| run_within(command(&["ip", "netns", verb, &name]), LIMIT).expect_code(0);
    ip("add");
    let found = check.now().namespaces;
    ip("delete");
    // Another test may have a lab at this moment.
    assert!(found.contains(&name), "{found:?}");
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}
