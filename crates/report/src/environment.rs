//! The environment of records in few lines: machine and link of both nodes, said once where they are the same.

use std::collections::BTreeMap;

use linerate_model::Record;
use linerate_model::environment::{Environment, Feature, LinkInfo};

use crate::text::{Style, paint, printable, unbroken, wrap};

/// Lines about the machines and links of the records: two where both nodes share a machine and have links of one make,
/// else one for each node. Of records of other environments what is other is told too, in their order.
pub fn environment_lines(records: &[Record], width: usize, color: bool) -> Vec<String> {
    let mut known: Vec<Fact> = Vec::new();
    for fact in records.iter().flat_map(facts) {
        if !known.contains(&fact) {
            known.push(fact);
        }
    }
    let mut lines = Vec::new();
    for fact in known {
        let head = format!("{:<14}", fact.about);
        let mut wrapped = wrap(&head, head.len(), &printable(&fact.text), width);
        wrapped[0].replace_range(..head.len(), &paint(&head, Style::Dim, color));
        lines.append(&mut wrapped);
    }
    lines
}

#[derive(PartialEq)]
struct Fact {
    about: &'static str,
    text: String,
}

fn facts(record: &Record) -> Vec<Fact> {
    if !record.peers.is_empty() {
        return facts_of_many(record);
    }
    let nodes = [&record.dut, &record.peer];
    let machines = nodes.map(|n| machine_text(&n.environment));
    let links = nodes.map(|n| n.environment.link.as_ref().map(link_text).unwrap_or_default());
    let [dut, peer] = nodes.map(|n| n.node.to_string());
    let [dut_host, peer_host] = nodes.map(|n| host_text(&n.environment));
    let mut facts = Vec::new();
    let mut add = |about, text: String| facts.push(Fact { about, text });
    if record.shared_kernel {
        add("both nodes", format!("{dut}, {peer}{dut_host}: {}", machines[0]));
    } else if machines[0] == machines[1] {
        add("both nodes", format!("{dut}{dut_host}, {peer}{peer_host}: {} each", machines[0]));
    } else {
        add("dut", format!("{dut}{dut_host}: {}", machines[0]));
        add("peer", format!("{peer}{peer_host}: {}", machines[1]));
    }
    let [near, far] = nodes.map(|n| n.environment.link.as_ref().map_or("?", |l| l.name.as_str()));
    match links {
        [a, b] if a.is_empty() && b.is_empty() => {}
        [a, b] if a == b && near == far => add("both links", format!("{near}: {a}")),
        [a, b] if a == b => add("both links", format!("{near}, {far}: {a}")),
        [a, b] => {
            for (about, name, text) in [("dut link", near, a), ("peer link", far, b)] {
                if !text.is_empty() {
                    add(about, format!("{name}: {text}"));
                }
            }
        }
    }
    facts
}

/// The dut and its link; then peers of one make together.
fn facts_of_many(record: &Record) -> Vec<Fact> {
    let link = |e: &Environment| e.link.as_ref().map(|l| format!("{}: {}", l.name, link_text(l)));
    let dut = &record.dut.environment;
    let mut facts = Vec::new();
    let mut add = |about, text: String| facts.push(Fact { about, text });
    add("dut", format!("{}{}: {}", record.dut.node, host_text(dut), machine_text(dut)));
    link(dut).into_iter().for_each(|text| add("dut link", text));
    let mut machines: Vec<(String, Vec<String>)> = Vec::new();
    let mut links: Vec<String> = Vec::new();
    for peer in &record.peers {
        let e = &peer.environment;
        let machine = if record.shared_kernel { "the same machine".to_owned() } else { machine_text(e) };
        let name = peer.node.to_string() + &if record.shared_kernel { String::new() } else { host_text(e) };
        match machines.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, names)) => names.push(name),
            None => machines.push((machine, vec![name])),
        }
        if let Some(text) = link(e).filter(|text| !links.contains(text)) {
            links.push(text);
        }
    }
    machines
        .into_iter()
        .for_each(|(machine, names)| add("peers", format!("{}: {machine}", names.join(", "))));
    links.into_iter().for_each(|text| add("peer links", text));
    facts
}

fn host_text(e: &Environment) -> String {
    if e.host.is_empty() { String::new() } else { format!(" on {}", e.host) }
}

fn machine_text(e: &Environment) -> String {
    let mut parts = vec![unbroken(&format!("Linux {} {}", e.kernel, e.architecture))];
    let cpus = unbroken(&format!("{} CPU{}", e.cpus_online, if e.cpus_online == 1 { "" } else { "s" }));
    let model = e.cpu_model.replace("(R)", "").replace("(TM)", "");
    parts.push(if model.is_empty() { cpus } else { format!("{cpus} {model}") });
    let allowed = e.cpus_allowed.len();
    if allowed > 0 && allowed < e.cpus_online as usize {
        parts.push(unbroken(&format!("{allowed} allowed")));
    }
    if e.numa_nodes > 1 {
        parts.push(unbroken(&format!("{} NUMA nodes", e.numa_nodes)));
    }
    parts.extend(e.governor.as_ref().map(|g| unbroken(&format!("governor {g}"))));
    parts.extend(e.hypervisor.as_ref().map(|h| unbroken(&format!("under {h}"))));
    parts.join(", ")
}

fn link_text(link: &LinkInfo) -> String {
    let mut parts = Vec::new();
    parts.push(match link.driver.as_deref().or(link.kind.as_deref()) {
        Some(driver) => driver.to_owned(),
        None if link.loopback => "loopback".to_owned(),
        None => unbroken("driver unknown"),
    });
    parts.extend(link.firmware.as_ref().filter(|f| !f.is_empty()).map(|f| format!("firmware {f}")));
    parts.extend(link.speed_mbit.map(|mbit| unbroken(&speed_text(mbit))));
    if link.duplex.as_deref() == Some("half") {
        parts.push(unbroken("half duplex"));
    }
    parts.push(unbroken(&format!("MTU {}", link.mtu)));
    if link.tx_queues.max(link.rx_queues) > 1 {
        parts.push(unbroken(&format!("{} tx {} rx queues", link.tx_queues, link.rx_queues)));
    }
    let (on, off) = offloads(&link.features);
    if !on.is_empty() {
        parts.push(format!("on: {}", on.join(" ")));
    }
    if !off.is_empty() {
        parts.push(format!("off: {}", off.join(" ")));
    }
    parts.join(", ")
}

fn speed_text(mbit: u32) -> String {
    if mbit >= 1000 && mbit.is_multiple_of(100) {
        format!("{} Gbit/s", f64::from(mbit) / 1000.0)
    } else {
        format!("{mbit} Mbit/s")
    }
}

/// The offloads that bear most on throughput and CPU, by the short names of ethtool(8), with the kernel's names of the
/// features that each stands for (net/ethtool/common.c, `netdev_features_strings`).
const OFFLOADS: &[(&str, &[&str])] = &[
    ("tso", &["tx-tcp-segmentation"]),
    ("tso6", &["tx-tcp6-segmentation"]),
    ("gso", &["tx-generic-segmentation"]),
    ("uso", &["tx-udp-segmentation"]),
    ("gro", &["rx-gro"]),
    ("gro-hw", &["rx-gro-hw"]),
    ("lro", &["rx-lro"]),
    ("tx-csum", &["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"]),
    ("rx-csum", &["rx-checksum"]),
    ("sg", &["tx-scatter-gather"]),
];

/// Offloads that are on, and those that are off but could be on. A feature that the link does not have is not told.
fn offloads(features: &BTreeMap<String, Feature>) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for (short, names) in OFFLOADS {
        let known: Vec<Feature> = names.iter().filter_map(|n| features.get(*n)).copied().collect();
        if known.iter().any(|f| f.on) {
            on.push(*short);
        } else if known.iter().any(|f| f.changeable) {
            off.push(*short);
        }
    }
    (on, off)
}
