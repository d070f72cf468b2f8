//! Ctrl-C while a node is still being reached.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_testkit::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_signal_ends_the_wait_for_ssh_at_once_and_ssh_with_it() {
    let folder = std::env::temp_dir().join(format!("lr-stop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ssh = folder.join("ssh");
    std::fs::write(&ssh, format!("#!/bin/sh\necho $$ >{}/pid\nexec sleep 50\n", folder.display())).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["run", "ssh:nowhere", "-w", "tcp-rr", "--no-store"]).env("PATH", &path);
        let mut run =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid: i32 = eventually(LIMIT, "ssh runs", || {
            std::fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok()
        });
        let asked = Instant::now();
        kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), signal).unwrap();
        let status = run.wait().unwrap();
        assert_eq!(status.code(), Some(5), "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{signal}: {:?}", asked.elapsed());
        eventually(LIMIT, "ssh ends", || kill(Pid::from_raw(pid), None).is_err().then_some(()));
        std::fs::remove_file(folder.join("pid")).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
