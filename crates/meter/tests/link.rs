//! Link and protocol counters against traffic of a known size, over a veth pair between two namespaces.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use linerate_meter::{Meter, difference};
use linerate_model::counters::MeterReading;
use linerate_sys::ethtool_ioctl::DriverStatistics;
use linerate_sys::netns;
use linerate_testkit::{Wire, need, within};

const DATAGRAMS: u64 = 1000;
const PAYLOAD: usize = 1000;
/// UDP, IPv4 and Ethernet headers, without the frame check sequence.
const HEADERS: u64 = 8 + 20 + 14;

/// Sends datagrams from the left end and reads the meter of the left namespace around them.
fn measure(wire: &Wire) -> MeterReading {
    let (left, to) = (wire.left.name().to_owned(), wire.right_ipv4());
    thread::spawn(move || {
        let _hidden = netns::enter_with_sysfs(&left).unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        // The neighbour is found before the window.
        socket.send_to(&[0; 1], (to, 9)).unwrap();
        thread::sleep(Duration::from_millis(200));
        let mut meter = Meter::open(Some(Wire::LEFT_LINK)).unwrap();
        let before = meter.sample();
        let mut sent = 0;
        while sent < DATAGRAMS {
            // A closed port answers, and the next send tells of it.
            sent += u64::from(socket.send_to(&[0; PAYLOAD], (to, 9)).is_ok());
        }
        thread::sleep(Duration::from_millis(50));
        difference(&before, &meter.sample())
    })
    .join()
    .unwrap()
}

#[test]
fn a_links_counters_cover_the_window() {
    need!(netns());
    within(Duration::from_secs(60), || {
        let reading = measure(&Wire::new());
        let link = reading.link.unwrap();
        assert_eq!(link.name, Wire::LEFT_LINK);
        let bytes = DATAGRAMS * (PAYLOAD as u64 + HEADERS);
        // A neighbour's or router's message more may fall into the window.
        assert!((DATAGRAMS..DATAGRAMS + 10).contains(&link.counters.tx_packets), "{link:?}");
        assert!((bytes..bytes + 2000).contains(&link.counters.tx_bytes), "{link:?}");
        assert!(
            (DATAGRAMS..=DATAGRAMS + 1).contains(&reading.protocol["Udp.OutDatagrams"]),
            "{:?}",
            reading.protocol
        );
        assert_eq!(link.qdisc, None, "veth has noqueue");
        let received: u64 = reading.cpu.cpus.iter().map(|cpu| cpu.packets_processed).sum();
        assert!(received >= DATAGRAMS, "{received}");
        let softirqs: u64 = reading.cpu.cpus.iter().map(|cpu| cpu.net_rx_softirqs).sum();
        assert!(softirqs > 0);
        let other = reading.unavailable.iter().filter(|note| !note.starts_with("energy: "));
        assert_eq!(other.count(), 0, "{:?}", reading.unavailable);
    });
}

#[test]
fn a_queueing_discipline_is_counted_once() {
    need!(netns(), tool("tc"));
    within(Duration::from_secs(60), || {
        let wire = Wire::new();
        let mut tc = wire.left.command("tc");
        let set = ["qdisc", "replace", "dev", Wire::LEFT_LINK, "root", "pfifo"];
        if !tc.args(set).status().unwrap().success() {
            need!(with Err::<(), _>(linerate_testkit::Skip::new("this kernel has no pfifo")));
        }
        let qdisc = measure(&wire).link.unwrap().qdisc.unwrap();
        assert!((DATAGRAMS..DATAGRAMS + 10).contains(&qdisc.packets), "{qdisc:?}");
        assert_eq!(qdisc.drops, 0);
    });
}

#[test]
fn driver_statistics_are_those_of_ethtool() {
    need!(netns(), tool("ethtool"));
    within(Duration::from_secs(60), || {
        let wire = Wire::new();
        let name = wire.left.name().to_owned();
        let ours: Vec<String> = thread::spawn(move || {
            netns::enter_with_sysfs(&name).unwrap();
            let mut driver = DriverStatistics::open(Wire::LEFT_LINK).unwrap();
            let values = driver.read().unwrap();
            driver.names().iter().zip(values).map(|(name, value)| format!("{name}: {value}")).collect()
        })
        .join()
        .unwrap();
        let theirs = wire.left.command("ethtool").args(["-S", Wire::LEFT_LINK]).output().unwrap();
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        let theirs: Vec<&str> = theirs.lines().skip(1).map(str::trim).collect();
        assert_eq!(ours, theirs);
        assert!(
            ours.iter().any(|line| line.starts_with("peer_ifindex: ") && !line.ends_with(" 0")),
            "{ours:?}"
        );
    });
}

#[test]
fn a_link_that_goes_away_is_told() {
    need!(netns());
    within(Duration::from_secs(60), || {
        let wire = Wire::new();
        let name = wire.left.name().to_owned();
        let (ask, asked) = mpsc::channel::<()>();
        let (ready, is_ready) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            netns::enter_with_sysfs(&name).unwrap();
            let mut meter = Meter::open(Some(Wire::LEFT_LINK)).unwrap();
            let before = meter.sample();
            ready.send(()).unwrap();
            asked.recv().unwrap();
            difference(&before, &meter.sample())
        });
        is_ready.recv().unwrap();
        wire.left.ip(&["link", "delete", Wire::LEFT_LINK]);
        ask.send(()).unwrap();
        let reading = thread.join().unwrap();
        assert_eq!(reading.link, None);
        assert!(reading.unavailable.iter().any(|note| note.contains("read counters of link")), "{reading:?}");
        assert!(reading.cpu.window_ns > 0);
    });
}
