//! Private labs as root and as an ordinary user: traffic, kept labs, owners that die, and nothing left behind.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use linerate_link::lab::{self, LabOptions, PrivateLab};
use linerate_link::{LinkError, Route, in_netns, links, route, route_to, sysctl};
use linerate_sys::netns as sys;
use linerate_testkit::{eventually, need};

const LIMIT: Duration = Duration::from_secs(20);
/// Starts the example `private_lab`, which `cargo test` builds beside the tests.
fn example(arguments: &[&str], user: Option<u32>) -> Example {
    let mut program = program();
    if user.is_some() {
        // The target folder may be closed to an ordinary user.
        let open = open_copy();
        std::fs::copy(&program, &open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
        program = open;
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    Example { child, output }
}

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().with_file_name("examples").join("private_lab")
}

fn open_copy() -> PathBuf {
    let thread = std::thread::current();
    std::env::temp_dir().join(format!("lr-{}-{}", std::process::id(), thread.name().unwrap()))
}

struct Example {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn line_with(&mut self, word: &str) -> String {
        let line = self.output.by_ref().map_while(Result::ok).find(|line| line.contains(word));
        line.unwrap_or_else(|| panic!("the child ended without {word:?}"))
    }
}

/// Bytes through a TCP connection from one end to the other.
fn talk(lab: &PrivateLab, address: IpAddr) {
    let listener = in_netns(&lab.peer().netns, || Ok(TcpListener::bind((address, 0)).unwrap())).unwrap();
    let target = listener.local_addr().unwrap();
    let mut client =
        in_netns(&lab.dut().netns, || Ok(TcpStream::connect_timeout(&target, LIMIT).unwrap())).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"through the wire").unwrap();
    drop(client);
    let mut got = String::new();
    server.read_to_string(&mut got).unwrap();
    assert_eq!(got, "through the wire");
}

fn exercise(lab: &PrivateLab) {
    let (dut, peer) = (lab.dut(), lab.peer());
    talk(lab, peer.ipv4.into());
    talk(lab, peer.ipv6.expect("IPv6 here").into());
    let expected = Route { link: dut.link.clone(), source: Some(dut.ipv4.into()), gateway: None, mtu: 1500 };
    assert_eq!(in_netns(&dut.netns, || route_to(peer.ipv4.into())).unwrap(), expected);
    let link = in_netns(&dut.netns, || links::named(&dut.link)).unwrap();
    assert!(link.up && link.carrier && !link.loopback);
    assert_eq!(link.kind.as_deref(), Some("veth"));
    assert!(link.addresses.iter().all(|address| !address.tentative), "{:?}", link.addresses);
    let sysfs = in_netns(&dut.netns, || {
        Ok(std::fs::read_to_string(format!("/sys/class/net/{}/operstate", dut.link)).unwrap())
    });
    assert_eq!(sysfs.unwrap(), "up\n");
}

#[test]
fn a_lab_carries_traffic_and_leaves_nothing() {
    need!(netns());
    let lab = PrivateLab::create(LabOptions::default()).unwrap();
    let names = [lab.dut().netns.clone(), lab.peer().netns.clone()];
    exercise(&lab);
    let id = lab.id().to_owned();
    assert!(lab::list().unwrap().iter().any(|state| state.id == id && state.owned));
    assert!(!PrivateLab::sweep_stale().unwrap().contains(&id), "an owned lab is not swept");
    assert!(matches!(lab::remove(&id), Err(LinkError::Invalid { .. })));
    lab.remove().unwrap();
    assert!(names.iter().all(|name| !sys::exists(name)));
    assert!(lab::list().unwrap().iter().all(|state| state.id != id));
}

#[test]
fn options_reach_the_links() {
    need!(netns());
    let lab =
        PrivateLab::create(LabOptions { queues: Some(3), mtu: Some(9000), ..LabOptions::default() }).unwrap();
    for end in [lab.dut(), lab.peer()] {
        let link = in_netns(&end.netns, || links::named(&end.link)).unwrap();
        assert_eq!((link.tx_queues, link.rx_queues, link.mtu), (3, 3, 9000));
    }
}

#[test]
fn further_peers_share_a_segment_with_the_dut() {
    need!(netns());
    let lab = PrivateLab::create(LabOptions { further_peers: 3, ..LabOptions::default() }).unwrap();
    let id = lab.id().to_owned();
    exercise(&lab);
    for peer in lab.peers() {
        for address in [IpAddr::from(peer.ipv4), peer.ipv6.expect("IPv6 here").into()] {
            let listener = in_netns(&peer.netns, || Ok(TcpListener::bind((address, 0)).unwrap())).unwrap();
            let target = listener.local_addr().unwrap();
            in_netns(&lab.dut().netns, || Ok(TcpStream::connect_timeout(&target, LIMIT).unwrap())).unwrap();
        }
    }
    lab.remove().unwrap();
    let prefix = format!("lr-{id}-");
    assert!(!sys::list().unwrap().iter().any(|name| name.starts_with(&prefix)));
}

#[test]
fn ten_labs_at_once_do_not_meet() {
    need!(netns());
    let labs: Vec<_> = std::thread::scope(|scope| {
        let makers: Vec<_> =
            (0..10).map(|_| scope.spawn(|| PrivateLab::create(LabOptions::default()).unwrap())).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    let names: Vec<_> = labs.iter().map(|lab| lab.dut().netns.clone()).collect();
    talk(&labs[9], labs[9].peer().ipv4.into());
    drop(labs);
    assert!(names.iter().all(|name| !sys::exists(name)));
}

#[test]
fn a_kept_lab_survives_sweeps_until_it_is_removed() {
    need!(netns());
    let kept = PrivateLab::create(LabOptions::default()).unwrap().keep().unwrap();
    assert!(!kept.needs_holder);
    assert!(!PrivateLab::sweep_stale().unwrap().contains(&kept.id));
    let words = kept.enter_command(&kept.dut, None);
    let output = Command::new(&words[0]).args(&words[1..]).args(["-c", "ip -br addr"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("198.18.0.1/24"));
    assert!(lab::list().unwrap().iter().any(|state| state.id == kept.id && state.kept && !state.owned));
    lab::remove(&kept.id).unwrap();
    assert!(!sys::exists(&kept.dut.netns) && !sys::exists(&kept.peers[0].netns));
    assert!(matches!(lab::remove(&kept.id), Err(LinkError::Invalid { .. })));
}

#[test]
fn a_killed_owners_lab_is_swept() {
    need!(netns());
    let mut owner = example(&[], None);
    let id = owner.line_with("lab ").split_whitespace().last().unwrap().to_owned();
    assert!(!PrivateLab::sweep_stale().unwrap().contains(&id), "its owner lives");
    assert!(sys::exists(&format!("lr-{id}-dut")));
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    // Another test's sweep may have been first.
    let swept = PrivateLab::sweep_stale().unwrap();
    assert!(swept.contains(&id) || !sys::exists(&format!("lr-{id}-dut")), "{swept:?}");
    eventually(LIMIT, "both names gone", || {
        ["dut", "peer"].iter().all(|end| !sys::exists(&format!("lr-{id}-{end}"))).then_some(())
    });
}

#[test]
fn an_owner_killed_at_any_moment_leaves_nothing_after_a_sweep() {
    need!(netns());
    for round in 0..30 {
        let mut owner = example(&[], None);
        std::thread::sleep(Duration::from_micros(1000 * round));
        owner.child.kill().unwrap();
        owner.child.wait().unwrap();
        PrivateLab::sweep_stale().unwrap();
        let mine = |name: &String| name.starts_with(&format!("lr-{}-", owner.child.id()));
        eventually(LIMIT, "its namespaces gone", || (!sys::list().unwrap().iter().any(mine)).then_some(()));
    }
}

#[test]
fn a_forbidden_user_namespace_names_the_limit() {
    need!(netns(), tool("unshare"));
    // A user namespace whose own limit is 0, so that the machine's stays as it is.
    let program = program();
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {} user", program.display());
    let output = Command::new("unshare").args(["-Ur", "sh", "-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{output:?}");
    assert!(text.contains("No space left on device") && text.contains("UserNamespaceForbidden"), "{text}");
    assert!(text.contains("limit user.max_user_namespaces reached"), "{text}");
}

#[test]
fn an_ordinary_user_has_the_same_lab() {
    need!(unprivileged());
    let mut user = example(&[], Some(65534));
    let id = user.line_with("lab ").split_whitespace().last().unwrap().to_owned();
    let names = ["dut", "peer"].map(|end| format!("lr-{id}-{end}"));
    assert!(names.iter().all(|name| !sys::exists(name)), "it is the user's own, not the system's");
    let pid = user.child.id().to_string();
    let enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", &pid, "ip", "netns", "exec"];
    let ping = [&enter[1..], &[&names[0], "ip", "-br", "addr"]].concat();
    let output = Command::new(enter[0]).args(ping).uid(65534).gid(65534).output().unwrap();
    let text = format!("{output:?}");
    assert!(text.contains("198.18.0.1/24") && text.contains("fd6c:696e:6572::1/64"), "{text}");
    drop(user.child.stdin.take());
    user.line_with("left []");
    assert!(user.child.wait().unwrap().success());
    std::fs::remove_file(open_copy()).unwrap();
}

#[test]
fn an_ordinary_users_kept_lab_is_entered_through_its_holder() {
    need!(unprivileged());
    let mut user = example(&["keep"], Some(65534));
    let enter = user.line_with("enter ");
    let words: Vec<_> = enter.split_whitespace().skip(1).chain(["-c", "ip -br addr"]).collect();
    let output = Command::new(words[0]).args(&words[1..]).uid(65534).gid(65534).output().unwrap();
    let text = format!("{output:?}");
    assert!(text.contains("198.18.0.1/24"), "{text}");
    drop(user.child.stdin.take());
    assert!(user.child.wait().unwrap().success());
    std::fs::remove_file(open_copy()).unwrap();
}

#[test]
fn a_process_moves_into_a_lab_with_its_sysfs() {
    need!(netns());
    let lab = PrivateLab::create(LabOptions::default()).unwrap();
    let mut process = example(&["enter", &lab.dut().netns], None);
    let line = process.line_with("links ");
    assert_eq!(line, r#"links ["lo", "lr-dut"], in sysfs 2, hidden []"#);
    assert!(process.child.wait().unwrap().success());
}

#[test]
fn errors_name_the_object_the_place_and_the_cause() {
    need!(netns());
    let lab = PrivateLab::create(LabOptions::default()).unwrap();
    let (netns, link) = (&lab.dut().netns, &lab.dut().link);
    let text = in_netns(netns, || links::named("eth7")).unwrap_err().to_string();
    assert_eq!(text, format!("no link eth7 in netns {netns}: there are lo, lr-dut"));
    let text = in_netns(netns, || links::set_mtu(link, 20)).unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("set mtu of lr-dut to 20 in netns {netns}: Invalid argument")),
        "{text}"
    );
    assert!(text.contains("mtu less than device minimum"), "{text}");
    let error = in_netns(netns, || route_to("192.0.2.1".parse().unwrap())).unwrap_err();
    assert!(matches!(error, LinkError::NoRoute { .. }));
    assert!(error.to_string().contains("192.0.2.1") && error.to_string().contains("unreachable"), "{error}");
    assert!(in_netns(netns, || route::route_over("fe80::9".parse().unwrap(), link)).is_ok());
    let error = in_netns("lr-none", || Ok(())).unwrap_err().to_string();
    assert_eq!(error, "netns lr-none: no such namespace (see `ip netns list`)");
    in_netns(netns, || sysctl::write("net.ipv4.ip_forward", "1")).unwrap();
    assert_eq!(in_netns(netns, || sysctl::read("net.ipv4.ip_forward")).unwrap(), "1");
    let error = in_netns(netns, || sysctl::write("net.ipv4.tcp_rmem", "x")).unwrap_err().to_string();
    assert!(error.starts_with("set sysctl net.ipv4.tcp_rmem to \"x\": Invalid argument"), "{error}");
}
