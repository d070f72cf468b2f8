//! Nodes on other machines: `ssh:` through a real sshd in a namespace, `tcp:` against `linerate serve`.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_model::NodeUrl;
use linerate_testkit::skip::find_tool;
use linerate_testkit::{
    ChildGuard, Finished, LeakCheck, Netns, Program, Relay, Wire, eventually, free_tcp_port, need, records,
    run_within,
};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(30);
const QUICK: [&str; 6] = ["-w", "tcp-rr", "-t", "0.2", "--warmup", "0"];

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

fn run(netns: &Netns, arguments: &[&str]) -> Finished {
    let mut command = netns.command(env!("CARGO_BIN_EXE_linerate"));
    command.arg("run").args(arguments);
    run_within(command, LIMIT)
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(label: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lr-{label}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An sshd at the right end of a wire, with keys, config and PATH of its own.
struct Sshd {
    wire: Wire,
    folder: Folder,
    made_run_folder: bool,
    daemon: Option<ChildGuard>,
}

const PORT: u16 = 2222;

impl Sshd {
    /// `tmp` is where programs started by it make temporary files.
    fn start(tmp: &str) -> Self {
        let wire = Wire::new();
        let folder = Folder::new("ssh");
        for name in ["bin", "tmp"] {
            fs::create_dir(folder.0.join(name)).unwrap();
        }
        for key in ["host", "user", "other"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &folder.file(key)]);
            run_within(keygen, LIMIT).expect_code(0);
        }
        fs::copy(folder.file("user.pub"), folder.file("authorized_keys")).unwrap();
        // sshd(8) wants this folder, and Debian makes it only when its service starts.
        let made_run_folder = fs::create_dir("/run/sshd").is_ok();
        let path = |name: &str| folder.file(name);
        let config = format!(
            "Port {PORT}\nListenAddress 0.0.0.0\nListenAddress ::\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             SetEnv PATH={}:/usr/bin:/bin TMPDIR={tmp}\n",
            path("host"),
            path("authorized_keys"),
            path("bin"),
        );
        fs::write(folder.file("sshd_config"), config.replace("$FOLDER", folder.0.to_str().unwrap())).unwrap();
        let mut sshd = wire.right.command(find_tool("sshd").unwrap().to_str().unwrap());
        sshd.args(["-D", "-e", "-f", &folder.file("sshd_config")]);
        let mut daemon = ChildGuard::spawn(sshd);
        daemon.wait_for_text("Server listening on :: port", LIMIT);
        let started = Self { wire, folder, made_run_folder, daemon: Some(daemon) };
        started.know_host("host");
        started.configure("");
        started
    }

    /// Tells the client which host key to expect.
    fn know_host(&self, key: &str) {
        let public = fs::read_to_string(self.folder.file(&format!("{key}.pub"))).unwrap();
        let known = format!("[{}]:{PORT} {public}[127.0.0.1]:{PORT} {public}", self.wire.right_ipv4());
        fs::write(self.folder.file("known_hosts"), known).unwrap();
    }

    fn configure(&self, more: &str) {
        let config = format!(
            "{more}\nHost lr-far\n  HostName {}\nHost *\n  Port {PORT}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
            self.wire.right_ipv4(),
            self.folder.file("user"),
            self.folder.file("known_hosts"),
        );
        fs::write(self.folder.file("ssh_config"), config).unwrap();
    }

    /// Puts linerate in the remote PATH.
    fn install(&self) {
        symlink(env!("CARGO_BIN_EXE_linerate"), self.folder.0.join("bin/linerate")).unwrap();
    }

    fn command(&self, peer: &str, options: &[&str]) -> Command {
        let mut command = self.wire.left.command(env!("CARGO_BIN_EXE_linerate"));
        let config = format!("--ssh-option={}", self.folder.file("ssh_config"));
        command.args(["run", peer, "--ssh-option=-F", &config]).args(options);
        command
    }

    fn run(&self, peer: &str, options: &[&str]) -> Finished {
        run_within(self.command(peer, options), LIMIT)
    }

    fn temporary_files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.folder.0.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.daemon.take();
        if self.made_run_folder {
            let _ = fs::remove_dir("/run/sshd");
        }
    }
}

#[test]
fn ssh_measures_every_workload_with_the_program_in_the_remote_path() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let leaks = LeakCheck::start();
    let sshd = Sshd::start("$FOLDER/tmp");
    sshd.install();
    let workloads = "tcp-stream,tcp-reverse,tcp-bidir,tcp-rr,tcp-crr,udp-stream,udp-rr";
    let options = ["-w", workloads, "--family", "4,6", "-t", "0.2", "--warmup", "0.1", "--json"];
    let finished = sshd.run("ssh:lr-far", &options).expect_code(0);
    let records = records(&finished.stdout);
    assert_eq!(records.len(), 14);
    for record in &records {
        assert_eq!(record.peer.node, "ssh:lr-far".parse::<NodeUrl>().unwrap());
        assert_eq!(record.peer.environment.link.as_ref().unwrap().name, Wire::RIGHT_LINK);
        assert_eq!(record.dut.environment.link.as_ref().unwrap().name, Wire::LEFT_LINK);
        assert!(record.summary.goodput_bytes > 0, "{:?}", record.trial.workload);
    }
    drop(sshd);
    leaks.assert_none();
}

#[test]
fn ssh_pushes_the_program_and_removes_it_again() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let leaks = LeakCheck::start();
    let sshd = Sshd::start("$FOLDER/tmp");
    sshd.run("ssh:lr-far", &[&QUICK[..], &["--push"]].concat()).expect_code(0);
    eventually(LIMIT, "removal of the pushed program", || sshd.temporary_files().is_empty().then_some(()));
    drop(sshd);
    leaks.assert_none();
}

#[test]
fn ssh_leaves_no_pushed_program_behind_when_the_controller_is_killed() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let leaks = LeakCheck::start();
    let sshd = Sshd::start("$FOLDER/tmp");
    // While it is copied, while the agent starts, and in the middle of the traffic.
    for delay_ms in [0, 20, 100, 300, 1500] {
        let child =
            ChildGuard::spawn(sshd.command("ssh:lr-far", &["--push", "-w", "tcp-stream", "-t", "20"]));
        eventually(LIMIT, "the pushed program", || (!sshd.temporary_files().is_empty()).then_some(()));
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.signal(Signal::SIGKILL);
        child.wait_within(LIMIT);
        let gone = || sshd.temporary_files().is_empty().then_some(());
        eventually(Duration::from_secs(5), &format!("removal after a kill at {delay_ms} ms"), gone);
    }
    drop(sshd);
    leaks.assert_none();
}

#[test]
fn ssh_says_that_the_host_key_is_refused() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let sshd = Sshd::start("$FOLDER/tmp");
    sshd.install();
    sshd.know_host("other");
    let finished = sshd.run("ssh:lr-far", &QUICK).expect_code(3);
    for word in ["node ssh:lr-far", "greet its agent", "Host key verification failed"] {
        assert!(finished.stderr.contains(word), "no {word:?} in\n{}", finished.stderr);
    }
}

#[test]
fn ssh_says_that_the_program_is_not_there() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let sshd = Sshd::start("$FOLDER/tmp");
    let finished = sshd.run("ssh:lr-far", &QUICK).expect_code(3);
    for word in ["node ssh:lr-far", "linerate", "not found", "--push"] {
        assert!(finished.stderr.contains(word), "no {word:?} in\n{}", finished.stderr);
    }
    let named = ["--remote-program", env!("CARGO_BIN_EXE_linerate")];
    sshd.run("ssh:lr-far", &[&QUICK[..], &named].concat()).expect_code(0);
}

#[test]
fn ssh_says_that_the_far_disk_is_full_and_leaves_nothing_on_it() {
    need!(netns(), tool("sshd"), tool("ssh"), tool("mount"));
    let disk = SmallDisk::mount();
    let sshd = Sshd::start(disk.0.0.to_str().unwrap());
    let finished = sshd.run("ssh:lr-far", &[&QUICK[..], &["--push"]].concat()).expect_code(3);
    for word in ["node ssh:lr-far", "copy linerate there", "No space left on device"] {
        assert!(finished.stderr.contains(word), "no {word:?} in\n{}", finished.stderr);
    }
    let left: Vec<_> = fs::read_dir(&disk.0.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A file system with room for half a megabyte.
struct SmallDisk(Folder);

impl SmallDisk {
    fn mount() -> Self {
        let disk = Self(Folder::new("small"));
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k", "lr-small"]).arg(&disk.0.0);
        run_within(mount, LIMIT).expect_code(0);
        disk
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).output();
    }
}

#[test]
fn ssh_goes_over_a_jump_host_of_its_config() {
    need!(netns(), tool("sshd"), tool("ssh"));
    let sshd = Sshd::start("$FOLDER/tmp");
    sshd.install();
    // The far node is reached at its own loopback, which is no address to test with.
    sshd.configure("Host lr-behind\n  HostName 127.0.0.1\n  ProxyJump lr-far");
    let finished = sshd.run("ssh:lr-behind", &[&QUICK[..], &["--json"]].concat()).expect_code(0);
    let record = records(&finished.stdout).remove(0);
    assert_eq!(record.peer.environment.link.as_ref().unwrap().name, Wire::RIGHT_LINK);
    let remote = record.dut.reading.streams[0].remote.unwrap().ip();
    assert_eq!(remote, sshd.wire.right_address(4));
}

/// A `linerate serve` at the right end of a wire.
struct Serve {
    wire: Wire,
    server: ChildGuard,
    port: u16,
}

impl Serve {
    fn start(options: &[&str]) -> Self {
        let wire = Wire::new();
        let port = 5300;
        let mut command = wire.right.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["serve", "--port", &port.to_string()]).args(options);
        let mut server = ChildGuard::spawn(command);
        server.wait_for_text("serving", LIMIT);
        Self { wire, server, port }
    }

    fn node(&self, family: u8) -> String {
        match self.wire.right_address(family) {
            std::net::IpAddr::V4(v4) => format!("tcp:{v4}:{}", self.port),
            std::net::IpAddr::V6(v6) => format!("tcp:[{v6}]:{}", self.port),
        }
    }

    fn run(&self, options: &[&str]) -> Finished {
        run(&self.wire.left, &[&[self.node(4).as_str()], options].concat())
    }

    fn start_run(&self, options: &[&str]) -> ChildGuard {
        let mut command = self.wire.left.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["run", &self.node(4)]).args(options);
        ChildGuard::spawn(command)
    }
}

#[test]
fn serve_measures_every_workload_over_both_ip_versions() {
    need!(netns());
    let leaks = LeakCheck::start();
    let serve = Serve::start(&[]);
    let workloads = "tcp-stream,tcp-reverse,tcp-bidir,tcp-rr,tcp-crr,udp-stream,udp-rr";
    for family in [4, 6] {
        let node = serve.node(family);
        let options = [node.as_str(), "-w", workloads, "-t", "0.2", "--warmup", "0.1", "--json", "--verify"];
        let finished = run(&serve.wire.left, &options).expect_code(0);
        let records = records(&finished.stdout);
        assert_eq!(records.len(), 7);
        for record in &records {
            assert_eq!(record.dut.reading.streams[0].remote.unwrap().ip(), serve.wire.right_address(family));
            assert!(record.summary.goodput_bytes > 0, "{:?}", record.trial.workload);
            assert_eq!(record.summary.bad_bytes, Some(0));
            assert_eq!(record.peer.environment.link.as_ref().unwrap().name, Wire::RIGHT_LINK);
        }
    }
    let Serve { wire, mut server, .. } = serve;
    assert!(server.is_running());
    server.signal(Signal::SIGTERM);
    server.wait_within(LIMIT).expect_code(0);
    drop(wire);
    leaks.assert_none();
}

#[test]
fn serve_has_many_clients_at_once() {
    need!(netns());
    let serve = Serve::start(&["--max-clients", "12"]);
    let options =
        ["-w", "tcp-stream", "-t", "1", "--warmup", "0.1", "--rate", "20m", "--size", "1400", "--json"];
    let clients: Vec<_> = (0..12).map(|_| serve.start_run(&options)).collect();
    for client in clients {
        let record = records(&client.wait_within(LIMIT).expect_code(0).stdout).remove(0);
        let goodput = record.summary.goodput_bits_per_second;
        assert!((18e6..22e6).contains(&goodput), "{goodput} bit/s of 20m");
    }
}

#[test]
fn serve_turns_away_clients_over_its_limit_and_takes_them_afterwards() {
    need!(netns());
    let serve = Serve::start(&["--max-clients", "1"]);
    let first = serve.start_run(&["-w", "tcp-rr", "-t", "1.5", "--warmup", "0"]);
    std::thread::sleep(Duration::from_millis(700));
    let second = serve.run(&QUICK).expect_code(3);
    assert!(second.stderr.contains("--max-clients"), "{}", second.stderr);
    first.wait_within(LIMIT).expect_code(0);
    serve.run(&QUICK).expect_code(0);
}

#[test]
fn serve_refuses_trials_over_its_longest_duration() {
    need!(netns());
    let serve = Serve::start(&["--max-duration", "1"]);
    let refused = serve.run(&["-w", "tcp-rr", "-t", "2"]).expect_code(2);
    assert!(refused.stderr.contains("--max-duration"), "{}", refused.stderr);
    serve.run(&QUICK).expect_code(0);
    // A count that never comes ends with the limit too.
    let endless = serve.start_run(&["-w", "tcp-stream", "--bytes", "1G", "--rate", "1m"]);
    let finished = endless.wait_within(Duration::from_secs(20));
    assert_eq!(finished.code(), 3, "{}", finished.output());
    assert!(finished.stderr.contains("--max-duration"), "{}", finished.stderr);
}

#[test]
fn serve_lets_in_only_networks_that_are_allowed() {
    need!(netns());
    let serve = Serve::start(&["--allow", "198.18.0.0/24"]);
    serve.run(&QUICK).expect_code(0);
    let node = serve.node(6);
    let refused = run(&serve.wire.left, &[&[node.as_str()], &QUICK[..]].concat()).expect_code(4);
    assert!(refused.stderr.contains("--allow"), "{}", refused.stderr);
}

#[test]
fn serve_wants_its_secret_and_the_secret_never_crosses_the_wire() {
    let folder = Folder::new("secret");
    let secret = "correct horse battery staple";
    for (name, content) in [("right", secret), ("wrong", "incorrect horse battery")] {
        fs::write(folder.0.join(name), format!("{content}\n")).unwrap();
        fs::set_permissions(folder.0.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let port = free_tcp_port().to_string();
    let right = folder.file("right");
    let own = ["serve", "--bind", "127.0.0.1", "--only", "linerate", "--port"];
    let options = [&own[..], &[&port, "--secret-file", &right]].concat();
    let mut server = ChildGuard::spawn(linerate().command(&options));
    server.wait_for_text("serving", LIMIT);
    let relay = Relay::start(("127.0.0.1", port.parse().unwrap()));
    let node = format!("tcp:127.0.0.1:{}", relay.port());
    let run = |options: &[&str]| linerate().run(&[&["run", &node], &QUICK[..], options].concat());

    run(&["--secret-file", &right]).expect_code(0);
    let wrong = run(&["--secret-file", &folder.file("wrong")]).expect_code(4);
    assert!(wrong.stderr.contains("secret"), "{}", wrong.stderr);
    let missing = run(&[]).expect_code(4);
    assert!(missing.stderr.contains("--secret-file"), "{}", missing.stderr);
    let unreadable = run(&["--secret-file", &folder.file("absent")]).expect_code(2);
    assert!(unreadable.stderr.contains("absent"), "{}", unreadable.stderr);

    let seen = relay.seen();
    assert!(seen.len() > 1000);
    let hex = secret.bytes().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    for form in [secret.as_bytes(), hex.as_bytes(), b"Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ"] {
        assert!(!seen.windows(form.len()).any(|part| part == form), "the secret was sent");
    }
    // A server that does not know the secret is found out, too.
    let plain_port = free_tcp_port().to_string();
    let mut plain = ChildGuard::spawn(linerate().command(&[&own[..], &[&plain_port]].concat()));
    plain.wait_for_text("serving", LIMIT);
    let node = format!("tcp:127.0.0.1:{plain_port}");
    let fooled =
        linerate().run(&[&["run", &node, "--secret-file", &right], &QUICK[..]].concat()).expect_code(4);
    assert!(fooled.stderr.contains("did not prove"), "{}", fooled.stderr);
}

#[test]
fn serve_is_no_dut_and_listens_dual_stack() {
    let port = free_tcp_port().to_string();
    let mut server = ChildGuard::spawn(linerate().command(&["serve", "--only", "linerate", "--port", &port]));
    server.wait_for_text("serving", LIMIT);
    for host in ["127.0.0.1", "::1"] {
        TcpStream::connect((host, port.parse().unwrap())).unwrap();
    }
    let node = format!("tcp:127.0.0.1:{port}");
    let refused = linerate().run(&["run", "local", "--dut", &node]).expect_code(2);
    assert!(refused.stderr.contains("make it the peer"), "{}", refused.stderr);
    let second = linerate().run(&["serve", "--only", "linerate", "--port", &port]).expect_code(3);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    assert!(Path::new(env!("CARGO_BIN_EXE_linerate")).exists());
}
