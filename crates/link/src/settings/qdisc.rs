//! The queueing discipline at a link's root, replaced and put back with its options as the kernel gave them.
//!
//! Sources: rtnetlink(7), linux/pkt_sched.h, linux/rtnetlink.h.

use std::collections::BTreeMap;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};

use super::part::Values;
use crate::error::{LinkError, Result};
use crate::ethtool::attribute::Attributes;
use crate::raw::{Raw, hex, push_attribute, unhex, word};
use crate::rtnl::Rtnl;
use crate::{links, netns};

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// `struct tcmsg`.
const TCMSG: usize = 20;
const TC_H_ROOT: u32 = 0xffff_ffff;
/// Parent of `ingress` and `clsact`, which stand on the receiving side and stay.
const TC_H_INGRESS: u32 = 0xffff_fff1;
const ROOT: &str = "root";
/// The discipline that the kernel chose by itself.
pub(crate) const DEFAULT: &str = "default";
/// Disciplines whose options go in as they came out. Others keep classes, filters or tables that would be lost.
const RESTORABLE: [&str; 12] = [
    "noqueue",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "fq",
    "fq_codel",
    "fq_pie",
    "codel",
    "pie",
    "sfq",
    "tbf",
    "cake",
];
const MULTIQUEUE: &str = "mq";

/// What is offered by name; the kernel may have more, or fewer.
pub(crate) fn known() -> Vec<String> {
    let kinds = ["pfifo_fast", "fq", "fq_codel", "noqueue", "pfifo", "bfifo", MULTIQUEUE, DEFAULT];
    kinds.map(str::to_owned).to_vec()
}

/// The kind of the root, which for a link that is down is `noop`.
pub(crate) fn read(link: &str) -> Result<String> {
    let root = values(link)?.remove(ROOT).unwrap_or_default();
    Ok(root.split(' ').next().unwrap_or_default().to_owned())
}

/// Puts a new discipline of this kind at the root; `default` lets the kernel choose again.
pub(crate) fn write(link: &str, kind: &str) -> Result<()> {
    let mut place = Place::of(link)?;
    if kind == DEFAULT { place.delete_root() } else { place.replace(TC_H_ROOT, 0, kind, None) }
}

/// The disciplines by parent (`root`, `8001:2`): `fq default` where the kernel chose, else `fq 80010000 OPTIONS`.
pub(crate) fn values(link: &str) -> Result<Values> {
    Place::of(link)?.values()
}

/// Refuses before the root is replaced what could not be put back afterwards.
pub(crate) fn require_restorable(link: &str) -> Result<()> {
    let mut place = Place::of(link)?;
    let refuse = |why: &str| {
        Err(LinkError::Invalid {
            what: format!("replace the qdisc of {link}{}", netns::place()),
            why: format!("{why}, which could not be put back"),
        })
    };
    for (parent, text) in place.values()? {
        let kind = text.split(' ').next().unwrap_or_default();
        let automatic = text.ends_with(DEFAULT);
        if !automatic && !RESTORABLE.contains(&kind) && kind != MULTIQUEUE {
            return refuse(&format!("{kind} at {parent} has classes or tables"));
        }
    }
    if place.list(RTM_GETTFILTER)?.iter().any(|filter| word(filter, 12) != Some(TC_H_INGRESS)) {
        return refuse("there are filters");
    }
    Ok(())
}

/// Makes the disciplines what they were.
pub(crate) fn put_back(link: &str, before: &Values, now: &Values) -> Result<()> {
    let mut place = Place::of(link)?;
    let root = before.get(ROOT).map(String::as_str).unwrap_or_default();
    if now.get(ROOT).map(String::as_str) != Some(root) {
        match Explicit::parse(root) {
            Some(root) => place.put(TC_H_ROOT, &root)?,
            None => place.let_kernel_choose(now)?,
        }
    }
    for (parent, text) in before.iter().filter(|(parent, _)| *parent != ROOT) {
        if let (Some(parent), Some(child)) = (parse_handle(parent), Explicit::parse(text)) {
            place.put(parent, &child)?;
        }
    }
    Ok(())
}

/// A discipline that someone put there.
struct Explicit<'a> {
    kind: &'a str,
    handle: u32,
    options: Option<Vec<u8>>,
}

impl<'a> Explicit<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split(' ');
        let (kind, handle) = (words.next()?, words.next()?);
        let options = words.next().map(unhex);
        Some(Self { kind, handle: u32::from_str_radix(handle, 16).ok()?, options: options.flatten() })
    }
}

struct Place {
    rtnl: Rtnl,
    index: u32,
    link: String,
}

impl Place {
    fn of(link: &str) -> Result<Self> {
        let mut rtnl = Rtnl::open()?;
        let index = links::index_of(&mut rtnl, link)?;
        Ok(Self { rtnl, index, link: link.to_owned() })
    }

    fn values(&mut self) -> Result<Values> {
        let operation = format!("list qdiscs of {}", self.link);
        let mut values = BTreeMap::new();
        for payload in self.list(RTM_GETQDISC)? {
            let described =
                describe(&payload).map_err(|error| LinkError::unexpected(&operation, error.to_string()))?;
            values.extend(described);
        }
        // A link that is down has only the one that drops everything, which the kernel does not list.
        values.entry(ROOT.to_owned()).or_insert_with(|| format!("noop {DEFAULT}"));
        Ok(values)
    }

    /// The kernel lists those of all links.
    fn list(&mut self, kind: u16) -> Result<Vec<Vec<u8>>> {
        let what = match kind {
            RTM_GETQDISC => "qdiscs",
            _ => "filters",
        };
        let message = Raw { kind, payload: self.head(0, 0) };
        let listed = self.rtnl.raw_dump(&format!("list {what} of {}", self.link), message)?;
        let ours = |payload: &Vec<u8>| word(payload, 4) == Some(self.index);
        Ok(listed.into_iter().map(|message| message.payload).filter(ours).collect())
    }

    fn head(&self, handle: u32, parent: u32) -> Vec<u8> {
        let words = [0, self.index, handle, parent, 0];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn put(&mut self, parent: u32, qdisc: &Explicit<'_>) -> Result<()> {
        self.replace(parent, qdisc.handle, qdisc.kind, qdisc.options.as_deref())
    }

    fn replace(&mut self, parent: u32, handle: u32, kind: &str, options: Option<&[u8]>) -> Result<()> {
        let mut payload = self.head(handle, parent);
        push_attribute(&mut payload, TCA_KIND, &[kind.as_bytes(), &[0]].concat());
        if let Some(options) = options {
            push_attribute(&mut payload, TCA_OPTIONS, options);
        }
        let operation = format!("set qdisc={kind} on {}", self.link);
        self.rtnl.raw_request(&operation, Raw { kind: RTM_NEWQDISC, payload }, NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn delete_root(&mut self) -> Result<()> {
        let message = Raw { kind: RTM_DELQDISC, payload: self.head(0, TC_H_ROOT) };
        match self.rtnl.raw_request(&format!("remove the qdisc of {}", self.link), message, 0) {
            // It is the kernel's own choice already.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOENT) => Ok(()),
            other => other,
        }
    }

    fn let_kernel_choose(&mut self, now: &Values) -> Result<()> {
        // It chooses anew only when one that was put there goes.
        if now.get(ROOT).is_some_and(|root| root.ends_with(DEFAULT)) {
            self.replace(TC_H_ROOT, 0, "pfifo", None)?;
        }
        self.delete_root()
    }
}

/// A discipline with its parent; `None` for those on the receiving side.
fn describe(
    payload: &[u8],
) -> std::result::Result<Option<(String, String)>, netlink_packet_core::DecodeError> {
    let short = || netlink_packet_core::DecodeError::from("a message shorter than struct tcmsg");
    let (handle, parent) = word(payload, 8).zip(word(payload, 12)).ok_or_else(short)?;
    if parent == TC_H_INGRESS {
        return Ok(None);
    }
    let attributes = Attributes::parse(payload.get(TCMSG..).ok_or_else(short)?)?;
    let kind = attributes.text(TCA_KIND)?.unwrap_or_default();
    let parent = if parent == TC_H_ROOT { ROOT.to_owned() } else { show_handle(parent) };
    if handle == 0 {
        return Ok(Some((parent, format!("{kind} {DEFAULT}"))));
    }
    let options = attributes.bytes(TCA_OPTIONS).map(|bytes| format!(" {}", hex(bytes)));
    Ok(Some((parent, format!("{kind} {handle:x}{}", options.unwrap_or_default()))))
}

fn show_handle(handle: u32) -> String {
    format!("{:x}:{:x}", handle >> 16, handle & 0xffff)
}

fn parse_handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let half = |text| u16::from_str_radix(text, 16).ok().map(u32::from);
    Some(half(major)? << 16 | half(minor)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn handles_and_disciplines_go_both_ways() {
        assert_eq!(parse_handle(&show_handle(0x8001_0002)), Some(0x8001_0002));
        let qdisc = Explicit::parse("fq 80010000 0400ff").unwrap();
        assert_eq!((qdisc.kind, qdisc.handle, qdisc.options), ("fq", 0x8001_0000, Some(vec![4, 0, 255])));
        assert!(Explicit::parse("fq default").is_none());
    }

    proptest! {
        #[test]
        fn hostile_messages_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = describe(&payload);
        }
    }
}
