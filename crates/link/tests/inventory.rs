//! Inventory and setters on real links, against ip(8) and ethtool(8).

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use linerate_link::ethtool::{self, Ethtool, Group, StringSet};
use linerate_link::inventory::{self, Inventory};
use linerate_link::lab::{LabOptions, PrivateLab};
use linerate_link::{LinkError, address, in_netns, links};
use linerate_testkit::{eventually, need};
use serde_json::Value;

const LINK: &str = "lr-dut";

fn lab(queues: u32) -> PrivateLab {
    PrivateLab::create(LabOptions { queues: Some(queues), mtu: None, ..LabOptions::default() }).unwrap()
}

fn inside<T: Send>(lab: &PrivateLab, work: impl FnOnce() -> linerate_link::Result<T> + Send) -> T {
    in_netns(&lab.dut().netns, work).unwrap()
}

fn refused<T: Send>(lab: &PrivateLab, work: impl FnOnce() -> linerate_link::Result<T> + Send) -> LinkError {
    in_netns(&lab.dut().netns, work).err().expect("a refusal")
}

fn output(lab: &PrivateLab, words: &[&str]) -> String {
    let output = Command::new("ip").args(["netns", "exec", &lab.dut().netns]).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(lab: &PrivateLab, words: &[&str]) -> Value {
    serde_json::from_str(&output(lab, words)).unwrap()
}

fn switches(names: &[&str], on: bool) -> BTreeMap<String, bool> {
    names.iter().map(|name| ((*name).to_owned(), on)).collect()
}

fn values(values: &[(&str, u32)]) -> BTreeMap<String, u32> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn links_and_addresses_are_those_of_iproute2() {
    need!(netns());
    let lab = lab(3);
    // A point-to-point address and one that is not the first.
    output(&lab, &["ip", "addr", "add", "10.9.8.7", "peer", "10.9.8.6/32", "dev", LINK]);
    output(&lab, &["ip", "addr", "add", "fd00::7/128", "dev", "lo"]);
    let theirs = json(&lab, &["ip", "-j", "-d", "addr"]);
    let ours = inside(&lab, links::all);
    let theirs = theirs.as_array().unwrap();
    assert_eq!(ours.len(), theirs.len());
    for (link, their) in ours.iter().zip(theirs) {
        let text = |key: &str| their[key].as_str().map(str::to_owned);
        let flags: Vec<_> = their["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(Some(link.name.clone()), text("ifname"));
        assert_eq!(their["ifindex"], link.index);
        assert_eq!(their["mtu"], link.mtu);
        assert_eq!(link.mac, text("address"));
        assert_eq!(link.qdisc, text("qdisc"));
        assert_eq!(link.kind, their["linkinfo"]["info_kind"].as_str().map(str::to_owned));
        assert_eq!(their["num_tx_queues"], link.tx_queues);
        assert_eq!(their["num_rx_queues"], link.rx_queues);
        assert_eq!(link.up, flags.contains(&"UP"));
        assert_eq!(link.carrier, flags.contains(&"LOWER_UP"));
        assert_eq!(link.loopback, flags.contains(&"LOOPBACK"));
        let their_addresses: Vec<_> = their["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| format!("{} {} {}", it["local"], it["prefixlen"], it["scope"]).replace('"', ""))
            .collect();
        let our_addresses: Vec<_> =
            link.addresses.iter().map(|it| format!("{} {} {}", it.address, it.prefix, it.scope)).collect();
        assert_eq!(our_addresses, their_addresses);
    }
}

#[test]
fn counters_are_those_of_iproute2() {
    need!(netns());
    let lab = lab(1);
    let peer = lab.peer().ipv4.to_string();
    // Something to count.
    let ping = format!("exec 3<>/dev/udp/{peer}/9; for i in 1 2 3; do echo {LINK} >&3; done");
    output(&lab, &["bash", "-c", &ping]);
    eventually(Duration::from_secs(10), "the same counters in both", || {
        let ours = inside(&lab, || links::counters(LINK));
        let theirs = json(&lab, &["ip", "-j", "-s", "link", "show", LINK]);
        let theirs = &theirs[0]["stats64"];
        let same =
            [("rx", "packets"), ("rx", "bytes"), ("tx", "packets"), ("tx", "bytes"), ("rx", "dropped")]
                .iter()
                .all(|(way, what)| theirs[way][what] == ours[&format!("{way}_{what}")]);
        (same && ours["tx_packets"] >= 3).then_some(())
    });
}

#[test]
fn features_are_those_of_ethtool() {
    need!(netns(), tool("ethtool"));
    let lab = lab(1);
    for link in ["lo", LINK] {
        let theirs = json(&lab, &["ethtool", "--json", "-k", link]);
        let ours = inside(&lab, || Ethtool::open()?.features(link));
        let mut compared = 0;
        for (name, their) in theirs[0].as_object().unwrap() {
            let Some(state) = ours.get(name) else { continue };
            assert_eq!(their["active"], state.active, "{link} {name}");
            assert_eq!(their["fixed"], !state.changeable, "{link} {name}");
            assert_eq!(their["requested"], state.wanted, "{link} {name}");
            compared += 1;
        }
        assert!(compared > 30, "{compared}");
    }
}

#[test]
fn switching_a_feature_tells_what_it_dragged_along_and_can_be_put_back() {
    need!(netns(), tool("ethtool"));
    let lab = lab(1);
    let before = inside(&lab, || Ethtool::open()?.features(LINK));
    let off = switches(&["tx-tcp-segmentation"], false);
    let changed = inside(&lab, || Ethtool::open()?.set_features(LINK, &off));
    assert_eq!(changed, switches(&["tx-tcp-segmentation", "tx-tcp-mangleid-segmentation"], false));
    assert_eq!(inside(&lab, || Ethtool::open()?.set_features(LINK, &off)), BTreeMap::new(), "off already");
    let theirs = json(&lab, &["ethtool", "--json", "-k", LINK]);
    assert_eq!(theirs[0]["tx-tcp-segmentation"]["active"], false);

    let back =
        before.iter().filter(|(_, state)| state.changeable).map(|(name, state)| (name.clone(), state.wanted));
    let back = back.collect();
    inside(&lab, || Ethtool::open()?.set_features(LINK, &back));
    assert_eq!(inside(&lab, || Ethtool::open()?.features(LINK)), before);
}

#[test]
fn a_feature_that_is_fixed_or_unknown_is_refused_with_its_name() {
    need!(netns());
    let lab = lab(1);
    let netns = &lab.dut().netns;
    let error = refused(&lab, || Ethtool::open()?.set_features(LINK, &switches(&["no-such-thing"], true)));
    let expected = format!(
        "set no-such-thing=on on {LINK} in netns {netns}: Operation not supported (os error 95): bit name not found"
    );
    assert_eq!(error.to_string(), expected);

    let mixed = BTreeMap::from([("rx-all".to_owned(), true), ("tx-tcp-ecn-segmentation".to_owned(), false)]);
    let error = refused(&lab, || Ethtool::open()?.set_features(LINK, &mixed));
    let LinkError::FeatureKept { kept, changed, .. } = &error else { panic!("{error:?}") };
    assert_eq!((kept, changed), (&vec!["rx-all".to_owned()], &switches(&["tx-tcp-ecn-segmentation"], false)));
    let expected = format!(
        "set rx-all=on tx-tcp-ecn-segmentation=off on {LINK} in netns {netns}: the driver keeps rx-all as it was"
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn channels_are_set_within_their_limits() {
    need!(netns(), tool("ethtool"));
    let lab = lab(4);
    let read = || inside(&lab, || Ethtool::open()?.parameters(LINK, Group::Channels));
    let before = read();
    assert_eq!((before["rx"].value, before["rx"].maximum), (4, Some(4)));
    inside(&lab, || Ethtool::open()?.set_parameters(LINK, Group::Channels, &values(&[("rx", 2), ("tx", 3)])));
    let after = read();
    assert_eq!((after["rx"].value, after["tx"].value), (2, 3));
    let theirs = output(&lab, &["ethtool", "-l", LINK]);
    let current = theirs.split("Current hardware settings:").nth(1).unwrap();
    assert!(current.contains("RX:\t\t2") && current.contains("TX:\t\t3"), "{theirs}");
    let set = values(&[("rx", 5)]);
    let text = refused(&lab, || Ethtool::open()?.set_parameters(LINK, Group::Channels, &set)).to_string();
    assert!(
        text.contains("set channels rx=5 on lr-dut in netns") && text.contains("exceeds maximum"),
        "{text}"
    );
    assert_eq!(read(), after);
}

#[test]
fn what_a_driver_lacks_is_refused_in_the_kernels_words() {
    need!(netns());
    let lab = lab(1);
    for (group, name) in [(Group::Rings, "rx"), (Group::Coalesce, "rx-usecs"), (Group::Pause, "rx")] {
        let error = refused(&lab, || Ethtool::open()?.parameters(LINK, group));
        assert!(error.is_unsupported(), "{error}");
        let set = values(&[(name, 1)]);
        let error = refused(&lab, || Ethtool::open()?.set_parameters(LINK, group, &set));
        assert!(error.is_unsupported(), "{error}");
        assert!(error.to_string().contains(&format!("set {} {name}=1 on {LINK}", group.name())), "{error}");
    }
    let error = refused(&lab, || Ethtool::open()?.features("eth7"));
    assert_eq!(error.raw_os_error(), Some(nix::libc::ENODEV), "{error}");
    let error = refused(&lab, || Ethtool::open()?.features("a-name-over-15-bytes"));
    assert!(matches!(error, LinkError::Invalid { .. }), "{error}");
}

#[test]
fn coalescing_is_set_where_the_driver_has_it() {
    need!(netns(), tool("ethtool"));
    let lab = lab(1);
    output(&lab, &["ip", "tuntap", "add", "lr-tap", "mode", "tap"]);
    let frames =
        || inside(&lab, || Ethtool::open()?.parameters("lr-tap", Group::Coalesce))["rx-frames"].value;
    assert_eq!(frames(), 0);
    let set = |value| values(&[("rx-frames", value)]);
    inside(&lab, || Ethtool::open()?.set_parameters("lr-tap", Group::Coalesce, &set(32)));
    assert_eq!(frames(), 32);
    assert!(output(&lab, &["ethtool", "-c", "lr-tap"]).contains("rx-frames: 32"));
    let error = refused(&lab, || {
        Ethtool::open()?.set_parameters("lr-tap", Group::Coalesce, &values(&[("tx-usecs", 5)]))
    });
    assert!(error.to_string().contains("unsupported parameter"), "{error}");
    let physical = inside(&lab, || Ethtool::open()?.physical("lr-tap"));
    inside(&lab, || Ethtool::open()?.set_modes("lr-tap", Some(2500), Some("half"), Some(false)));
    let after = inside(&lab, || Ethtool::open()?.physical("lr-tap"));
    assert_eq!((after.speed_mbit, after.duplex.as_deref()), (Some(2500), Some("half")), "{physical:?}");
}

#[test]
fn driver_statistics_are_whole_where_netlink_cuts_them() {
    need!(netns(), tool("ethtool"));
    let lab = lab(256);
    let ours = inside(&lab, || ethtool::statistics(LINK));
    let theirs = output(&lab, &["ethtool", "-S", LINK]);
    let theirs: Vec<_> = theirs.lines().skip(1).filter_map(|line| line.trim().rsplit_once(": ")).collect();
    assert!(theirs.len() > 2000);
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().zip(&theirs).all(|((name, _), (their, _))| name == their));
}

#[test]
fn a_link_in_full_says_what_it_has_and_why_it_lacks_the_rest() {
    need!(netns(), tool("ethtool"));
    let lab = lab(2);
    let full = inside(&lab, || inventory::in_full(LINK));
    let theirs = output(&lab, &["ethtool", "-i", LINK]);
    let line =
        |name: &str| theirs.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(full.link.driver, Some(line("driver:")));
    assert_eq!(full.link.driver_version, Some(line("version:")));
    assert_eq!((full.link.speed_mbit, full.link.duplex.as_deref()), (Some(10_000), Some("full")));
    assert_eq!(full.parameters["channels"]["rx"].maximum, Some(2));
    assert_eq!(full.features["tx-tcp-segmentation"].active, full.link.features["tx-tcp-segmentation"].on);
    assert!(full.steering.contains_key("rx-1/rps_cpus") && full.steering.contains_key("tx-1/xps_cpus"));
    for lacking in ["coalesce: Operation not supported", "pause: Operation not supported"] {
        assert!(
            full.link.unavailable.iter().any(|text| text.starts_with(lacking)),
            "{:?}",
            full.link.unavailable
        );
    }
    let text = serde_json::to_string(&full).unwrap();
    assert_eq!(serde_json::from_str::<Inventory>(&text).unwrap(), full);
    let lo = inside(&lab, || inventory::in_full("lo"));
    assert!(lo.link.driver.is_none() && lo.link.loopback);
    assert_eq!(inside(&lab, inventory::all).len(), 2);
    let error = refused(&lab, || inventory::in_full("eth7"));
    assert!(matches!(error, LinkError::NoSuchLink { .. }), "{error}");
}

#[test]
fn names_come_by_set() {
    need!(netns());
    let lab = lab(1);
    let names = inside(&lab, || Ethtool::open()?.strings(LINK, StringSet::Features));
    let features = inside(&lab, || Ethtool::open()?.features(LINK));
    assert!(features.keys().all(|feature| names.values().any(|name| name == feature)));
    let names = inside(&lab, || Ethtool::open()?.strings(LINK, StringSet::Statistics));
    assert_eq!(names[&0], "peer_ifindex");
    assert_eq!(
        refused(&lab, || Ethtool::open()?.private_flags(LINK)).raw_os_error(),
        Some(nix::libc::EOPNOTSUPP)
    );
}

#[test]
fn mtu_and_addresses_change_and_go() {
    need!(netns());
    let lab = lab(1);
    inside(&lab, || links::set_mtu(LINK, 4000));
    assert_eq!(json(&lab, &["ip", "-j", "link", "show", LINK])[0]["mtu"], 4000);
    let net = "10.1.2.3/20".parse().unwrap();
    inside(&lab, || address::add(LINK, net));
    assert!(output(&lab, &["ip", "addr", "show", LINK]).contains("10.1.2.3/20"));
    let text = refused(&lab, || address::add(LINK, net)).to_string();
    assert!(text.starts_with("add address 10.1.2.3/20 to lr-dut in netns lr-"), "{text}");
    inside(&lab, || address::remove(LINK, net));
    assert!(!output(&lab, &["ip", "addr", "show", LINK]).contains("10.1.2.3"));
    inside(&lab, || links::set_up(LINK, false));
    let error = refused(&lab, || links::wait_for_carrier(LINK, Duration::from_millis(50)));
    assert!(matches!(error, LinkError::Timeout { .. }), "{error}");
    inside(&lab, || links::remove(LINK));
    assert_eq!(inside(&lab, links::all).len(), 1);
}

#[test]
fn every_link_of_this_machine_is_described() {
    let all = inventory::all().unwrap();
    assert!(all.iter().any(|inventory| inventory.link.name == "lo"));
}
