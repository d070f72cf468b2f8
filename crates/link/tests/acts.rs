//! Acts upon links in a private lab: each shows in the kernel's own words, goes back with its owner, and after SIGKILL by
//! the next linerate.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linerate_link::changes::Changes;
use linerate_link::journal::JournalFolder;
use linerate_link::lab::{LabOptions, PrivateLab};
use linerate_link::restore::{Outcome, restore_stale_in};
use linerate_link::{LinkError, Result, in_netns, links, settings};
use linerate_model::bench::act::{LinkAct, LinkKind};
use linerate_testkit::need;

const LINK: &str = "lr-dut";
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x11, 0x22, 0x33];
const MAC: [u8; 6] = [0x02, 0, 0, 0, 0xaa, 0xbb];
const OWNER_NETNS: &str = "LINERATE_TEST_ACTS_NETNS";
const OWNER_FOLDER: &str = "LINERATE_TEST_ACTS_FOLDER";

struct Bench {
    lab: PrivateLab,
    folder: PathBuf,
}

impl Bench {
    fn new(label: &str) -> Self {
        let lab = PrivateLab::create(LabOptions::default()).unwrap();
        let folder = std::env::temp_dir().join(format!("linerate-acts-{}-{label}", std::process::id()));
        Self { lab, folder }
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> T {
        in_netns(&self.lab.dut().netns, work).unwrap()
    }

    fn with_changes<T: Send>(&self, work: impl FnOnce(&mut Changes) -> Result<T> + Send) -> T {
        let folder = JournalFolder::at(&self.folder);
        self.inside(move || {
            let mut changes = Changes::begin_in(folder, LINK)?;
            let made = work(&mut changes)?;
            let report = changes.restore()?;
            assert!(report.is_complete(), "{report:?}");
            Ok(made)
        })
    }

    /// What there is, by other programs' word.
    fn state(&self) -> String {
        let show = |arguments: &str| {
            let output = Command::new("ip")
                .args(["-n", &self.lab.dut().netns])
                .args(arguments.split(' '))
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let all = [
            "-o link show up",
            "-o addr show scope global",
            "route show",
            "-6 route show",
            "neigh show nud permanent",
            "maddr show dev lr-dut",
        ];
        // Down and up leaves a carrier that comes back in its own time, and routes in another order.
        let mut lines: Vec<_> = all.map(show).concat().lines().map(str::to_owned).collect();
        lines.sort();
        lines.join("\n")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn acts() -> Vec<LinkAct> {
    let link = || LINK.to_owned();
    vec![
        LinkAct::SetMac { link: link(), mac: MAC },
        LinkAct::AddAddress { link: link(), address: "192.0.2.1".parse().unwrap(), prefix: 24 },
        LinkAct::AddAddress { link: link(), address: "2001:db8::1".parse().unwrap(), prefix: 64 },
        LinkAct::AddNeighbour { link: link(), address: "192.0.2.2".parse().unwrap(), mac: MAC },
        LinkAct::AddNeighbour { link: link(), address: "2001:db8::2".parse().unwrap(), mac: MAC },
        LinkAct::AddRoute {
            link: link(),
            destination: "198.51.100.0".parse().unwrap(),
            prefix: 24,
            gateway: Some("192.0.2.2".parse().unwrap()),
        },
        LinkAct::AddRoute {
            link: link(),
            destination: "2001:db8:1::".parse().unwrap(),
            prefix: 64,
            gateway: None,
        },
        LinkAct::JoinGroup { link: link(), mac: GROUP },
        LinkAct::SetPromiscuous { link: link(), on: true },
        LinkAct::SetAllMulticast { link: link(), on: true },
        LinkAct::Make { name: "lr-one".to_owned(), kind: LinkKind::Veth { other: "lr-two".to_owned() } },
        LinkAct::SetUp { link: "lr-one".to_owned(), up: true },
        LinkAct::SetUp { link: "lr-two".to_owned(), up: true },
        LinkAct::AwaitCarrier { link: "lr-one".to_owned(), limit_ns: 2_000_000_000 },
    ]
}

#[test]
fn what_is_made_and_changed_shows_and_goes_back() {
    need!(netns());
    let bench = Bench::new("all");
    let before = bench.state();
    let during = bench.with_changes(|changes| {
        for act in acts() {
            changes.act(&act).unwrap_or_else(|error| panic!("{act:?}: {error}"));
        }
        assert_eq!(settings::read(LINK, "mac")?, "02:00:00:00:aa:bb");
        Ok(bench.state())
    });
    for shown in [
        "192.0.2.1/24",
        "2001:db8::1/64",
        "192.0.2.2 dev lr-dut lladdr 02:00:00:00:aa:bb PERMANENT",
        "198.51.100.0/24 via 192.0.2.2",
        "2001:db8:1::/64 dev lr-dut",
        "01:00:5e:11:22:33 static",
        "PROMISC",
        "ALLMULTI",
        "lr-two@lr-one",
    ] {
        assert!(during.contains(shown), "{shown} in\n{during}");
    }
    assert_eq!(bench.state(), before);
}

#[test]
fn a_link_that_was_down_for_a_while_has_its_addresses_and_routes_again() {
    need!(netns());
    let bench = Bench::new("down");
    bench.inside(|| {
        linerate_link::address::add(LINK, "203.0.113.1/24".parse().unwrap())?;
        let gateway = Some("203.0.113.2".parse().unwrap());
        linerate_link::route::add(LINK, "198.51.100.0/24".parse().unwrap(), gateway)?;
        linerate_link::address::add(LINK, "2001:db8::9/64".parse().unwrap())
    });
    let mut ip = Command::new("ip");
    ip.args(["-n", &bench.lab.dut().netns, "neigh", "add", "203.0.113.2", "lladdr", "02:00:00:00:00:09"]);
    assert!(ip.args(["dev", LINK, "nud", "permanent"]).status().unwrap().success());
    let before = bench.state();
    let during = bench.with_changes(|changes| {
        changes.act(&LinkAct::SetUp { link: LINK.to_owned(), up: false })?;
        Ok(bench.state())
    });
    assert!(!during.contains("198.51.100.0") && !during.contains("2001:db8::9"), "{during}");
    assert_eq!(bench.state(), before);
}

#[test]
fn kinds_of_links_are_made_or_refused_in_the_kernels_words() {
    need!(netns());
    let bench = Bench::new("kinds");
    let (local, remote) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let tunnel = |protocol: &str| LinkKind::Tunnel {
        protocol: protocol.to_owned(),
        link: LINK.to_owned(),
        local,
        remote,
    };
    let kinds = [
        LinkKind::Bridge,
        LinkKind::Bond,
        LinkKind::Vlan { link: LINK.to_owned(), id: 7, protocol: 0x8100 },
        LinkKind::Vlan { link: LINK.to_owned(), id: 7, protocol: 0x88a8 },
        LinkKind::Macvlan { link: LINK.to_owned(), mac: MAC },
        LinkKind::Vxlan { link: LINK.to_owned(), id: 9, local, remote, port: 4789, checksum: true },
        tunnel("gre"),
        tunnel("ipip"),
        tunnel("sit"),
    ];
    let before = bench.state();
    bench.with_changes(|changes| {
        for kind in kinds {
            let name = "lr-new".to_owned();
            match changes.act(&LinkAct::Make { name: name.clone(), kind: kind.clone() }) {
                Ok(()) => {
                    assert_eq!(links::named(&name)?.name, name);
                    println!("{kind:?}: made");
                    if kind == LinkKind::Bridge {
                        let under = |master| LinkAct::SetMaster { link: LINK.to_owned(), master };
                        changes.act(&under(Some(name.clone())))?;
                        assert_eq!(links::master(LINK)?, Some(name.clone()));
                        changes.act(&under(None))?;
                        assert_eq!(links::master(LINK)?, None);
                    }
                    changes.act(&LinkAct::Remove { name })?;
                }
                // The kernel of this machine may have been built without it.
                Err(error) => {
                    assert!(error.is_unsupported(), "{kind:?}: {error}");
                    println!("{kind:?}: {error}");
                }
            }
        }
        Ok(())
    });
    assert_eq!(bench.state(), before);
}

#[test]
fn what_makes_no_sense_is_refused() {
    need!(netns());
    let bench = Bench::new("refused");
    bench.with_changes(|changes| {
        let mut refuse = |act: LinkAct| -> LinkError { changes.act(&act).expect_err("a refusal") };
        for name in ["eth7", "lr-", "lr-a-name-that-is-too-long", "lr-a/b"] {
            let error = refuse(LinkAct::Make { name: name.to_owned(), kind: LinkKind::Bridge });
            assert!(matches!(error, LinkError::Invalid { .. }), "{name}: {error}");
        }
        let error = refuse(LinkAct::Remove { name: LINK.to_owned() });
        assert!(matches!(error, LinkError::Invalid { .. }), "{error}");
        let error = refuse(LinkAct::SetMac { link: LINK.to_owned(), mac: [1, 0, 0, 0, 0, 1] });
        assert_eq!(error.raw_os_error(), Some(nix::libc::EADDRNOTAVAIL), "{error}");
        let error = refuse(LinkAct::SetUp { link: "lr-none".to_owned(), up: true });
        assert!(matches!(error, LinkError::NoSuchLink { .. }), "{error}");
        links::set_up(LINK, false)?;
        let error = refuse(LinkAct::AwaitCarrier { link: LINK.to_owned(), limit_ns: 1_000_000 });
        assert!(matches!(error, LinkError::Timeout { .. }), "{error}");
        Ok(())
    });
}

/// Not a test of its own: the owner that another test kills.
#[test]
fn owner_process() {
    let Ok(netns) = std::env::var(OWNER_NETNS) else { return };
    let folder = JournalFolder::at(std::env::var(OWNER_FOLDER).unwrap());
    in_netns(&netns, move || {
        let mut changes = Changes::begin_in(folder, LINK)?;
        for act in acts() {
            changes.act(&act)?;
        }
        println!("READY");
        std::thread::sleep(std::time::Duration::from_secs(60));
        Ok(())
    })
    .unwrap();
}

#[test]
fn after_sigkill_the_next_linerate_removes_and_puts_back() {
    need!(netns());
    let bench = Bench::new("killed");
    let before = bench.state();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_process", "--nocapture"])
        .env(OWNER_NETNS, &bench.lab.dut().netns)
        .env(OWNER_FOLDER, &bench.folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = owner.stdout.take().unwrap();
    let mut told = String::new();
    while !told.contains("READY") {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "it ended early: {told}");
        told.push(char::from(byte[0]));
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(bench.state().contains("lr-two@lr-one"));
    let restored = restore_stale_in(&JournalFolder::at(&bench.folder)).unwrap();
    assert!(
        matches!(&restored[..], [one] if matches!(&one.outcome, Outcome::Done(report) if report.is_complete())),
        "{restored:?}"
    );
    assert_eq!(bench.state(), before);
}
