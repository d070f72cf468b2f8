//! Links as text: a table of all, or one in full.

use linerate_link::inventory::Inventory;
use linerate_model::environment::LinkInfo;

use crate::layout::{columns, wrapped};

/// A line for each link.
pub(crate) fn list(links: &[Inventory]) -> String {
    let head = ["LINK", "STATE", "SPEED", "MTU", "DRIVER", "RX/TX", "ADDRESSES"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(links.iter().map(|inventory| {
        let link = &inventory.link;
        vec![
            link.name.clone(),
            state(link).to_owned(),
            speed(link),
            link.mtu.to_string(),
            link.driver.clone().or_else(|| link.kind.clone()).unwrap_or_else(|| "-".to_owned()),
            format!("{}/{}", link.rx_queues, link.tx_queues),
            addresses(link),
        ]
    }));
    columns(&rows)
}

/// All that is known of a link.
pub(crate) fn in_full(inventory: &Inventory) -> String {
    let link = &inventory.link;
    let mut page = Page::default();
    page.line("link", &format!("{}, index {}, {}", link.name, link.index, state(link)));
    page.optional("kind", link.kind.as_deref());
    page.line("speed", &format!("{} {}", speed(link), link.duplex.as_deref().unwrap_or_default()));
    page.line("MTU", &link.mtu.to_string());
    page.optional("MAC", link.mac.as_deref());
    page.line("addresses", &addresses(link));
    let driver = [&link.driver, &link.driver_version].map(|part| part.clone().unwrap_or_default());
    page.line("driver", &driver.join(" "));
    page.optional("firmware", link.firmware.as_deref());
    page.optional("bus", link.bus.as_deref());
    let pci = link.pci_speed.as_ref().map(|speed| match link.pci_lanes {
        Some(lanes) => format!("{speed}, {lanes} lanes"),
        None => speed.clone(),
    });
    page.optional("PCI", pci.as_deref());
    page.optional("NUMA node", link.numa_node.map(|node| node.to_string()).as_deref());
    page.line("queues", &format!("{} receive, {} transmit", link.rx_queues, link.tx_queues));
    page.optional("qdisc", link.qdisc.as_deref());
    if let Some(physical) = &inventory.physical {
        page.optional("port", physical.port.as_deref());
        page.optional("negotiates", physical.autonegotiation.map(yes_no));
        let modes: Vec<_> = physical.modes.keys().map(String::as_str).collect();
        page.line("modes", &modes.join(", "));
    }
    let features = |wanted: fn(bool, bool) -> bool| {
        let chosen = inventory.features.iter().filter(|(_, state)| wanted(state.active, state.changeable));
        chosen.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    page.line("features on", &features(|on, changeable| on && changeable));
    page.line("off", &features(|on, changeable| !on && changeable));
    page.line("fixed on", &features(|on, changeable| on && !changeable));
    page.line("fixed off", &features(|on, changeable| !on && !changeable));
    for (group, parameters) in &inventory.parameters {
        let parameter =
            |(name, parameter): (&String, &linerate_link::ethtool::Parameter)| match parameter.maximum {
                Some(maximum) => format!("{name} {} (of {maximum})", parameter.value),
                None => format!("{name} {}", parameter.value),
            };
        page.line(group, &parameters.iter().map(parameter).collect::<Vec<_>>().join(", "));
    }
    if let Some(rss) = inventory.rss.as_ref().filter(|rss| !rss.indirection.is_empty()) {
        let mut queues: Vec<_> = rss.indirection.clone();
        queues.sort_unstable();
        queues.dedup();
        let queues: Vec<_> = queues.iter().map(u32::to_string).collect();
        let entries = rss.indirection.len();
        page.line("RSS", &format!("{entries} entries to queues {}", queues.join(", ")));
    }
    let named = |(name, value): (&String, &String)| format!("{name} {value}");
    page.line("NAPI", &inventory.napi.iter().map(named).collect::<Vec<_>>().join(", "));
    page.line("steering", &inventory.steering.iter().map(named).collect::<Vec<_>>().join(", "));
    let irqs: Vec<_> =
        link.irqs.iter().map(|irq| format!("{} {} on {}", irq.number, irq.name, irq.affinity)).collect();
    page.line("IRQs", &irqs.join(", "));
    let flags: Vec<_> =
        inventory.private_flags.iter().map(|(name, on)| format!("{name} {}", yes_no(*on))).collect();
    page.line("private flags", &flags.join(", "));
    let counters = inventory.counters.iter().filter(|(_, count)| **count != 0);
    page.line("counters", &counters.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", "));
    let statistics = inventory.statistics.iter().filter(|(_, count)| *count != 0);
    page.line("driver's", &statistics.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", "));
    page.line("not here", &link.unavailable.join(", "));
    page.0
}

/// Lines of a label and what it stands for; empty ones are left out.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        if !text.trim().is_empty() {
            self.0.push_str(&wrapped(&format!("{label:<14}"), text));
        }
    }

    fn optional(&mut self, label: &str, text: Option<&str>) {
        self.line(label, text.unwrap_or_default());
    }
}

const fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

const fn state(link: &LinkInfo) -> &'static str {
    match (link.up, link.carrier) {
        (true, true) => "up",
        (true, false) => "no carrier",
        (false, _) => "down",
    }
}

fn speed(link: &LinkInfo) -> String {
    match link.speed_mbit {
        Some(mbit) if mbit >= 1000 && mbit.is_multiple_of(1000) => format!("{}G", mbit / 1000),
        Some(mbit) => format!("{mbit}M"),
        None => "-".to_owned(),
    }
}

fn addresses(link: &LinkInfo) -> String {
    let address = |one: &linerate_model::environment::LinkAddress| format!("{}/{}", one.address, one.prefix);
    link.addresses.iter().map(address).collect::<Vec<_>>().join(" ")
}
