use std::collections::BTreeSet;
use std::process::Command;

use linerate_testkit::need;

use super::*;

struct Guard(String);

impl Guard {
    fn new(name: &str) -> Self {
        let name = format!("lr-t{}-{name}", std::process::id());
        create(&name).unwrap();
        Self(name)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn links() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn iproute2_sees_what_we_make_and_we_remove_what_it_makes() {
    need!(netns());
    let guard = Guard::new("ip");
    let ip = |args: &[&str]| {
        let output = Command::new("ip").args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(ip(&["netns", "list"]).contains(&guard.0));
    assert!(ip(&["netns", "exec", &guard.0, "ip", "-br", "link"]).starts_with("lo"));
    assert!(matches!(create(&guard.0), Err(NetnsError::Exists(_))));

    let theirs = format!("{}-theirs", guard.0);
    ip(&["netns", "add", &theirs]);
    assert!(list().unwrap().contains(&theirs));
    remove(&theirs).unwrap();
    assert!(!exists(&theirs));
    assert!(matches!(remove(&theirs), Err(NetnsError::Missing(_))));
    assert!(matches!(enter(&theirs), Err(NetnsError::Missing(_))));
}

#[test]
fn a_thread_enters_with_the_right_sysfs_and_keeps_the_mounts_below() {
    need!(netns());
    let guard = Guard::new("sysfs");
    let below: Vec<_> = ["/sys/fs/cgroup"].into_iter().filter(|path| Path::new(path).is_dir()).collect();
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    let before: Vec<_> = below.iter().map(|path| count(path)).collect();
    let (hidden, inside, after) = on_thread(|| {
        let hidden = enter_with_sysfs(&guard.0).unwrap();
        (hidden, links(), below.iter().map(|path| count(path)).collect::<Vec<_>>())
    });
    assert_eq!(hidden, Vec::<PathBuf>::new());
    assert!(inside.contains("lo") && !inside.contains("eth0"), "{inside:?}");
    assert_eq!(before, after);
    assert_ne!(links(), inside, "this thread stayed outside");
}

#[test]
fn bad_names_are_refused_before_anything_is_touched() {
    for name in ["", ".", "..", "a/b", "a b", &"x".repeat(201), "é"] {
        assert!(matches!(create(name), Err(NetnsError::BadName(_))), "{name:?}");
        assert!(matches!(remove(name), Err(NetnsError::BadName(_))), "{name:?}");
    }
}

#[test]
fn whole_process_moves_are_refused_with_several_threads() {
    // The test harness itself has more than one thread.
    let error = on_thread(|| unshare_user_root().unwrap_err());
    assert!(matches!(error, NetnsError::MultiThreaded { .. }), "{error}");
    let error = on_thread(|| enter_process("lr-none").unwrap_err());
    assert!(matches!(error, NetnsError::MultiThreaded { .. }), "{error}");
}
