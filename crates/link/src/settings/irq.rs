//! Which CPUs may take a link's interrupts (`/proc/irq/NUMBER/smp_affinity_list`).

use std::fs;

use super::part::Values;
use super::value::{cpu_list, joined, spread};
use crate::error::{LinkError, Result};
use crate::{links, sysfs};

/// An interrupt with the CPUs that may take it.
struct Affinity {
    /// Its name, which stays when the driver asks for its interrupts anew, as its number does not.
    name: String,
    number: u32,
    cpus: String,
}

/// The CPUs of each interrupt, by name.
pub(crate) fn values(link: &str) -> Result<Values> {
    Ok(affinities(link)?.into_iter().map(|irq| (irq.name, irq.cpus)).collect())
}

/// The lists as one value.
pub(crate) fn read(link: &str) -> Result<String> {
    let lists: Vec<_> = affinities(link)?.into_iter().map(|irq| irq.cpus).collect();
    Ok(joined(&lists))
}

/// Sets all interrupts to a checked value.
pub(crate) fn write(link: &str, value: &str) -> Result<()> {
    let irqs = affinities(link)?;
    let lists = spread(&format!("irq-affinity={value} on {link}"), value, irqs.len())?;
    irqs.iter().zip(lists).try_for_each(|(irq, list)| write_one(irq, list))
}

/// Sets what differs, of the interrupts that are still the link's.
pub(crate) fn put_back(link: &str, before: &Values) -> Result<()> {
    for irq in affinities(link)? {
        if let Some(list) = before.get(&irq.name).filter(|list| **list != irq.cpus) {
            write_one(&irq, list)?;
        }
    }
    Ok(())
}

/// In the order of their numbers.
fn affinities(link: &str) -> Result<Vec<Affinity>> {
    links::named(link)?;
    let irqs = sysfs::irqs(link)?;
    if irqs.is_empty() {
        let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(LinkError::file("find", format!("interrupts of {link}"), cause));
    }
    let mut all: Vec<Affinity> = Vec::new();
    for irq in irqs {
        let path = path(irq.number);
        let text = fs::read_to_string(&path).map_err(|cause| LinkError::file("read", &path, cause))?;
        let cpus = cpu_list(text.trim())
            .ok_or_else(|| LinkError::unexpected(&format!("read {path}"), text.trim()))?;
        let same_name = all.iter().filter(|other| other.name.split('#').next() == Some(&irq.name)).count();
        let name = if same_name == 0 { irq.name } else { format!("{}#{same_name}", irq.name) };
        all.push(Affinity { name, number: irq.number, cpus });
    }
    Ok(all)
}

fn write_one(irq: &Affinity, list: &str) -> Result<()> {
    let what = || format!("{} ({}) to {list}", path(irq.number), irq.name);
    fs::write(path(irq.number), list).map_err(|cause| LinkError::file("set", what(), cause))
}

fn path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}
