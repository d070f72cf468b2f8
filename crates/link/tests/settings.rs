//! Settings on real links: listed, refused, changed with what they drag along, and put back.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use linerate_link::changes::Changes;
use linerate_link::journal::JournalFolder;
use linerate_link::lab::{LabOptions, PrivateLab};
use linerate_link::restore::{Outcome, Restored, restore_stale_in};
use linerate_link::settings::{self, SettingInfo};
use linerate_link::{LinkError, in_netns, links};
use linerate_testkit::need;

const LINK: &str = "lr-dut";
/// What the process of [`owner_process`] is to do.
const OWNER_NETNS: &str = "LINERATE_TEST_OWNER_NETNS";
const OWNER_FOLDER: &str = "LINERATE_TEST_OWNER_FOLDER";
/// Settings of every kind that a veth has, in an order in which each goes.
const CHANGES: [(&str, &str); 12] = [
    ("gro", "on"),
    ("napi-threaded", "on"),
    ("napi-defer-hard-irqs", "7"),
    ("gro-flush-timeout", "20000"),
    ("tso", "off"),
    ("tx-udp-segmentation", "off"),
    ("mtu", "1000"),
    ("txqueuelen", "77"),
    ("qdisc", "pfifo"),
    ("xps-cpus", "1"),
    ("tcp-sack", "0"),
    ("sysctl:net.ipv4.conf.all.rp_filter", "2"),
];

struct Bench {
    lab: PrivateLab,
    folder: PathBuf,
}

impl Bench {
    fn new(label: &str) -> Self {
        let lab =
            PrivateLab::create(LabOptions { queues: Some(2), mtu: None, ..LabOptions::default() }).unwrap();
        let folder = std::env::temp_dir().join(format!("linerate-changes-{}-{label}", std::process::id()));
        Self { lab, folder }
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> linerate_link::Result<T> + Send) -> T {
        in_netns(&self.lab.dut().netns, work).unwrap()
    }

    fn refused<T: Send>(&self, work: impl FnOnce() -> linerate_link::Result<T> + Send) -> LinkError {
        in_netns(&self.lab.dut().netns, work).err().expect("a refusal")
    }

    fn folder(&self) -> JournalFolder {
        JournalFolder::at(&self.folder)
    }

    /// Everything that a change may touch, by other programs' word where there is one.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for command in [
            "ethtool -k lr-dut",
            "tc qdisc show dev lr-dut",
            "ip -o addr show dev lr-dut scope global",
            "ip -6 route show dev lr-dut",
            "sysctl -a --ignore -r ^net[.]ipv[46][.]",
        ] {
            let mut words = command.split(' ');
            let output = Command::new("ip")
                .args(["netns", "exec", &self.lab.dut().netns])
                .args(words.by_ref())
                .output()
                .unwrap();
            assert!(output.status.success(), "{command}");
            // The kernel counts these up and down by itself.
            let own = ["tcp_mem", "random", "route.flush", "tcp_fastopen_key"];
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let kept: Vec<_> =
                text.lines().filter(|line| !own.iter().any(|own| line.contains(own))).collect();
            state.insert(command.to_owned(), kept.join("\n"));
        }
        for info in self.inside(|| settings::list(LINK)) {
            state.insert(info.key, info.value.unwrap_or_default());
        }
        state
    }

    fn set_all(&self, changes: &mut Changes) {
        for (key, value) in CHANGES {
            changes.set(key, value).unwrap();
            assert_eq!(settings::read(LINK, key).unwrap(), value, "{key}");
        }
    }

    fn sweep(&self) -> Vec<Restored> {
        // From outside of the namespace, as the next linerate would.
        restore_stale_in(&self.folder()).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    for (key, value) in before {
        assert_eq!(after.get(key), Some(value), "{key}");
    }
}

/// Not a test of its own: the owner that other tests kill. It changes settings, says so, and waits.
#[test]
fn owner_process() {
    let (Ok(netns), Ok(folder)) = (std::env::var(OWNER_NETNS), std::env::var(OWNER_FOLDER)) else { return };
    in_netns(&netns, || {
        let mut changes = Changes::begin_in(JournalFolder::at(folder), LINK)?;
        for (key, value) in CHANGES {
            changes.set(key, value)?;
        }
        println!("changed");
        std::thread::sleep(std::time::Duration::from_secs(60));
        Ok(())
    })
    .unwrap();
}

fn start_owner(bench: &Bench) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_process", "--nocapture"])
        .env(OWNER_NETNS, &bench.lab.dut().netns)
        .env(OWNER_FOLDER, &bench.folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_changed(owner: &mut Child) {
    let mut seen = Vec::new();
    let stdout = owner.stdout.as_mut().unwrap();
    while !String::from_utf8_lossy(&seen).contains("changed") {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "the owner ended");
        seen.push(byte[0]);
    }
}

fn kill(mut owner: Child) {
    owner.kill().unwrap();
    owner.wait().unwrap();
}

#[test]
fn settings_are_listed_with_what_they_take_or_why_not() {
    need!(netns());
    let bench = Bench::new("list");
    let all = bench.inside(|| settings::list(LINK));
    let of = |key: &str| all.iter().find(|info| info.key == key).unwrap();
    let shown = |info: &SettingInfo| (info.value.clone().unwrap(), info.allowed.to_string(), info.changeable);
    assert_eq!(shown(of("mtu")), ("1500".to_owned(), "68 to 65535".to_owned(), true));
    assert_eq!(shown(of("tso")), ("on".to_owned(), "on, off".to_owned(), true));
    assert_eq!(shown(of("channels-rx")), ("2".to_owned(), "0 to 2".to_owned(), true));
    assert!(!of("tx-scatter-gather").description.is_empty());
    assert_eq!(of("qdisc").value.as_deref(), Some("noqueue"));
    let rings = of("ring-rx");
    assert_eq!(rings.value, None);
    assert!(rings.unavailable.as_ref().unwrap().contains("Operation not supported"), "{rings:?}");
    let fixed = all.iter().filter(|info| info.allowed == settings::Allowed::Switch && !info.changeable);
    assert!(fixed.count() > 10);
    let keys: std::collections::BTreeSet<_> = all.iter().map(|info| &info.key).collect();
    assert_eq!(keys.len(), all.len(), "no key twice");
}

#[test]
fn refusals_say_what_where_and_why() {
    need!(netns());
    let bench = Bench::new("refusals");
    let place = format!("{LINK} in netns {}", bench.lab.dut().netns);
    let words = |key: &str, value: &str| {
        let set = || Changes::begin_in(bench.folder(), LINK)?.set(key, value);
        bench.refused(set).to_string()
    };
    assert_eq!(words("mtu", "67"), format!("mtu=67 on {place}: allowed is 68 to 65535"));
    assert_eq!(words("tso", "maybe"), format!("tso=maybe on {place}: allowed is on, off"));
    assert!(words("no-such", "1").contains("setting no-such: the kernel has no feature of this name"));
    assert!(words("rx-usecs", "5").contains("Operation not supported"));
    assert!(words("lro", "on").ends_with("it is off and can't be changed on this link"));
    let qdisc = words("qdisc", "nosuch");
    assert!(qdisc.contains("set qdisc=nosuch on lr-dut in netns") && qdisc.contains("unknown"), "{qdisc}");
    // Without GRO a veth has no NAPI.
    let napi = words("napi-threaded", "on");
    assert_eq!(napi, format!("set napi-threaded=on on {place}: Operation not supported (os error 95)"));
    let sysctl = words("tcp-congestion-control", "nosuch");
    assert!(sysctl.starts_with("set sysctl net/ipv4/tcp_congestion_control"), "{sysctl}");
    let gone = bench.refused(|| Changes::begin_in(bench.folder(), "lr-none"));
    assert!(matches!(gone, LinkError::NoSuchLink { .. }));
    assert!(bench.sweep().is_empty(), "what was refused left nothing behind");
}

#[test]
fn all_that_was_changed_and_dragged_along_comes_back() {
    need!(netns(), tool("ethtool"), tool("tc"), tool("sysctl"));
    let bench = Bench::new("back");
    let ip = |words: &[&str]| {
        let status = Command::new("ip").args(["-n", &bench.lab.dut().netns]).args(words).status();
        assert!(status.unwrap().success());
    };
    ip(&["addr", "add", "fd00:77::1/64", "dev", LINK, "nodad", "noprefixroute"]);
    ip(&["-6", "route", "add", "fd00:88::/64", "via", "fd6c:696e:6572::2", "dev", LINK, "metric", "5"]);
    let before = bench.state();
    bench.inside(|| {
        let mut changes = Changes::begin_in(bench.folder(), LINK)?;
        bench.set_all(&mut changes);
        assert!(
            links::named(LINK)?.addresses.iter().all(|address| address.address.is_ipv4()),
            "IPv6 is gone"
        );
        let report = changes.restore()?;
        assert!(report.is_complete(), "{report:#?}");
        let named = |name: &str| report.put_back.iter().any(|one| one.setting == name);
        assert!(named("mtu") && named("feature tx-tcp-mangleid-segmentation"), "{report:#?}");
        assert!(named("ipv6 address fd00:77::1/64"), "{report:#?}");
        assert_eq!(changes.restore()?, linerate_link::restore::Report::default(), "once is enough");
        Ok(())
    });
    same(&before, &bench.state());
    assert_eq!(bench.sweep(), []);
}

#[test]
fn dropping_and_panicking_restore() {
    need!(netns(), tool("ethtool"), tool("tc"), tool("sysctl"));
    let bench = Bench::new("drop");
    let before = bench.state();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        bench.inside(|| {
            let mut changes = Changes::begin_in(bench.folder(), LINK)?;
            bench.set_all(&mut changes);
            if changes.link() == LINK {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            Ok(())
        });
    }));
    assert!(panicked.is_err());
    same(&before, &bench.state());
}

#[test]
fn a_killed_owners_settings_come_back_and_a_living_ones_stay() {
    need!(netns(), tool("ethtool"), tool("tc"), tool("sysctl"));
    let bench = Bench::new("killed");
    let before = bench.state();
    let mut owner = start_owner(&bench);
    wait_until_changed(&mut owner);
    let changed = bench.state();
    let living = bench.sweep();
    assert!(matches!(&living[..], [one] if one.outcome == Outcome::InUse && one.owner == owner.id()));
    let rival = bench.refused(|| Changes::begin_in(bench.folder(), LINK)?.set("gso", "off"));
    assert!(matches!(rival, LinkError::InUse { owner: other, .. } if other == owner.id()), "{rival}");
    same(&changed, &bench.state());
    kill(owner);
    // Several at once: one works, the others wait and find nothing.
    let swept = std::thread::scope(|scope| {
        let sweeps: Vec<_> = (0..3).map(|_| scope.spawn(|| bench.sweep())).collect();
        sweeps.into_iter().flat_map(|sweep| sweep.join().unwrap()).collect::<Vec<_>>()
    });
    let [Restored { outcome: Outcome::Done(report), .. }] = &swept[..] else { panic!("{swept:#?}") };
    assert!(report.is_complete() && !report.put_back.is_empty(), "{report:#?}");
    same(&before, &bench.state());
    assert_eq!(bench.sweep(), []);
}

#[test]
fn the_next_owner_starts_from_what_was_before_the_killed_one() {
    need!(netns(), tool("ethtool"), tool("tc"), tool("sysctl"));
    let bench = Bench::new("next");
    let before = bench.state();
    let mut owner = start_owner(&bench);
    wait_until_changed(&mut owner);
    kill(owner);
    bench.inside(|| {
        let mut changes = Changes::begin_in(bench.folder(), LINK)?;
        changes.set("mtu", "2000")?;
        assert_eq!(settings::read(LINK, "tso")?, "on", "the dead owner's change is undone first");
        assert!(changes.restore()?.is_complete());
        Ok(())
    });
    same(&before, &bench.state());
}

#[test]
fn an_mtu_too_small_for_ipv6_and_then_a_large_one_go_back() {
    need!(netns(), tool("ethtool"), tool("tc"), tool("sysctl"));
    let bench = Bench::new("small");
    let before = bench.state();
    bench.inside(|| {
        let mut changes = Changes::begin_in(bench.folder(), LINK)?;
        for mtu in ["68", "65535", "1500", "9000"] {
            changes.set("mtu", mtu)?;
        }
        let report = changes.restore()?;
        assert!(report.is_complete(), "{report:#?}");
        Ok(())
    });
    same(&before, &bench.state());
}

#[test]
fn a_namespace_made_anew_under_the_same_name_is_not_mistaken() {
    need!(netns());
    let bench = Bench::new("anew");
    let mut owner = start_owner(&bench);
    wait_until_changed(&mut owner);
    kill(owner);
    let netns = &bench.lab.dut().netns;
    let ip = |words: &[&str]| assert!(Command::new("ip").args(words).status().unwrap().success());
    ip(&["netns", "del", netns]);
    ip(&["netns", "add", netns]);
    ip(&["-n", netns, "link", "add", LINK, "mtu", "900", "type", "veth", "peer", "name", "lr-other"]);
    let swept = bench.sweep();
    let [Restored { outcome: Outcome::Moot(why), .. }] = &swept[..] else { panic!("{swept:#?}") };
    assert_eq!(why, "its network namespace is gone");
    assert_eq!(bench.inside(|| settings::read(LINK, "mtu")), "900");
    assert_eq!(bench.sweep(), []);
}

#[test]
fn a_link_made_anew_is_let_be_and_the_rest_comes_back() {
    need!(netns());
    let bench = Bench::new("link");
    let mut owner = start_owner(&bench);
    wait_until_changed(&mut owner);
    kill(owner);
    let netns = &bench.lab.dut().netns;
    let ip = |words: &[&str]| assert!(Command::new("ip").args(words).status().unwrap().success());
    ip(&["-n", netns, "link", "del", LINK]);
    ip(&["-n", netns, "link", "add", LINK, "mtu", "900", "type", "veth", "peer", "name", "lr-other"]);
    let swept = bench.sweep();
    let [Restored { outcome: Outcome::Done(report), .. }] = &swept[..] else { panic!("{swept:#?}") };
    assert!(report.is_complete(), "{report:#?}");
    let state = bench.inside(|| Ok((settings::read(LINK, "mtu")?, settings::read(LINK, "tcp-sack")?)));
    assert_eq!(state, ("900".to_owned(), "1".to_owned()));
}

#[test]
fn a_renamed_link_is_found_by_its_index() {
    need!(netns());
    let bench = Bench::new("renamed");
    let mut owner = start_owner(&bench);
    wait_until_changed(&mut owner);
    kill(owner);
    let rename = |from: &str, to: &str| {
        let words = ["-n", &bench.lab.dut().netns, "link", "set", from, "name", to];
        assert!(Command::new("ip").args(words).status().unwrap().success());
    };
    rename(LINK, "lr-renamed");
    let swept = bench.sweep();
    assert!(matches!(&swept[..], [Restored { outcome: Outcome::Done(report), .. }] if report.is_complete()));
    assert_eq!(bench.inside(|| settings::read("lr-renamed", "mtu")), "1500");
    rename("lr-renamed", LINK);
}
