//! The names of settings, and which parts of a node each one touches.

use super::attributes::Attribute;
use super::part::Part;
use super::steering::Steering;
use super::{features, parameters, qdisc, sysctls, tunables};
use crate::error::{LinkError, Result};
use crate::ethtool::Group;
use crate::{links, sysctl};
use linerate_sys::ethtool_memory::Tunable;

/// What a private flag's key begins with.
pub(crate) const FLAG_PREFIX: &str = "flag:";
/// Below this IPv6 leaves a link (RFC 8200 section 5).
const IPV6_MIN_MTU: u64 = 1280;

/// A setting by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Key {
    ShortFeature(&'static features::Short),
    Feature(String),
    Parameter(Group, &'static str),
    Flag(String),
    Tunable(Tunable),
    Attribute(Attribute),
    Steering(Steering),
    IrqAffinity,
    Governor,
    Qdisc,
    /// Path below `/proc/sys`.
    Sysctl(String),
}

/// A part that a change may touch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) link: String,
    pub(crate) part: Part,
    /// It is dragged along where the link has it.
    pub(crate) optional: bool,
}

impl Touched {
    /// A parameter of the link that goes with its IPv6 as a whole.
    pub(crate) fn is_ipv6_parameter(&self) -> bool {
        let prefix = format!("net/ipv6/conf/{}/", self.link);
        matches!(&self.part, Part::Sysctl(path) if path.starts_with(&prefix))
    }
}

impl Key {
    /// Any name that is none of the others is taken for a feature's, which the kernel knows or not.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(name) = text.strip_prefix(sysctls::PREFIX) {
            return Ok(Self::Sysctl(sysctl::canonical(name)?));
        }
        if let Some(flag) = text.strip_prefix(FLAG_PREFIX) {
            return Ok(Self::Flag(flag.to_owned()));
        }
        if let Some(short) = sysctls::SHORT_NAMES.iter().find(|short| short.name == text) {
            return Ok(Self::Sysctl(sysctl::canonical(short.sysctl)?));
        }
        let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !plain {
            let why = "no setting has such a name: see `linerate settings`".to_owned();
            return Err(LinkError::Invalid { what: format!("setting {text:?}"), why });
        }
        let fixed =
            [("irq-affinity", Self::IrqAffinity), ("governor", Self::Governor), ("qdisc", Self::Qdisc)];
        let fixed = || fixed.into_iter().find(|(name, _)| *name == text).map(|(_, key)| key);
        let short = || features::SHORT_NAMES.iter().find(|short| short.name == text).map(Self::ShortFeature);
        let parameter = || parameters::find(text).map(|(group, name)| Self::Parameter(group, name));
        let tunable =
            || tunables::ALL.iter().find(|(name, _)| *name == text).map(|(_, it)| Self::Tunable(*it));
        let attribute = || Attribute::ALL.into_iter().find(|it| it.key() == text).map(Self::Attribute);
        let steering = || Steering::ALL.into_iter().find(|it| it.key() == text).map(Self::Steering);
        let known = short().or_else(parameter).or_else(tunable).or_else(attribute).or_else(steering);
        Ok(known.or_else(fixed).unwrap_or_else(|| Self::Feature(text.to_owned())))
    }

    /// Its name; that of a parameter of the kernel is the short one where it has one.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::ShortFeature(short) => short.name.to_owned(),
            Self::Feature(name) => name.clone(),
            Self::Parameter(group, name) => parameters::key(*group, name),
            Self::Flag(flag) => format!("{FLAG_PREFIX}{flag}"),
            Self::Tunable(tunable) => tunables::key(*tunable).to_owned(),
            Self::Attribute(attribute) => attribute.key().to_owned(),
            Self::Steering(steering) => steering.key().to_owned(),
            Self::IrqAffinity => "irq-affinity".to_owned(),
            Self::Governor => "governor".to_owned(),
            Self::Qdisc => "qdisc".to_owned(),
            Self::Sysctl(path) => {
                let dotted = if path.contains('.') { path.clone() } else { path.replace('/', ".") };
                let short = sysctls::SHORT_NAMES.iter().find(|short| short.sysctl == dotted);
                short.map_or_else(|| format!("{}{dotted}", sysctls::PREFIX), |short| short.name.to_owned())
            }
        }
    }

    /// What setting it to a checked value may change: what is dragged along first, its own part last.
    pub(crate) fn touched(&self, link: &str, value: &str) -> Result<Vec<Touched>> {
        let of = |link: &str, part, optional| Touched { link: link.to_owned(), part, optional };
        let dragged = |part| of(link, part, true);
        let own = |part| of(link, part, false);
        Ok(match self {
            Self::ShortFeature(_) | Self::Feature(_) => vec![own(Part::Features)],
            // Another number of queues means other queues to steer.
            Self::Parameter(Group::Channels, _) => vec![
                dragged(Part::Steering(Steering::Rps)),
                dragged(Part::Steering(Steering::Xps)),
                dragged(Part::IrqAffinity),
                own(Part::Parameters(Group::Channels)),
            ],
            Self::Parameter(group, _) => vec![own(Part::Parameters(*group))],
            Self::Flag(_) => vec![own(Part::PrivateFlags)],
            Self::Tunable(_) => vec![own(Part::Tunables)],
            Self::Attribute(Attribute::Mtu) => {
                let loses_ipv6 = value.parse::<u64>().is_ok_and(|mtu| mtu < IPV6_MIN_MTU);
                let ipv6_mtu = format!("net/ipv6/conf/{link}/mtu");
                let ipv6 = if loses_ipv6 { Part::Ipv6 } else { Part::Sysctl(ipv6_mtu) };
                // Drivers drop features that their largest packets don't allow.
                vec![dragged(ipv6), dragged(Part::Features), own(Part::Attribute(Attribute::Mtu))]
            }
            // A link that goes down loses IPv6 addresses, the routes through it, and its neighbours.
            Self::Attribute(Attribute::Up) => vec![
                dragged(Part::Neighbours),
                dragged(Part::Ipv4Routes),
                dragged(Part::Ipv6),
                own(Part::Attribute(Attribute::Up)),
            ],
            Self::Attribute(Attribute::Mac) => {
                vec![dragged(Part::Neighbours), own(Part::Attribute(Attribute::Mac))]
            }
            Self::Attribute(attribute) => vec![own(Part::Attribute(*attribute))],
            Self::Steering(steering) => vec![own(Part::Steering(*steering))],
            Self::IrqAffinity => vec![own(Part::IrqAffinity)],
            Self::Governor => vec![own(Part::Governor)],
            Self::Qdisc => {
                qdisc::require_restorable(link)?;
                vec![own(Part::Qdisc)]
            }
            Self::Sysctl(path) => {
                let links = match sysctls::takes_ipv6_of(path) {
                    None => Vec::new(),
                    Some(sysctls::Affected::One(link)) => vec![link],
                    Some(sysctls::Affected::All) => links::all()?.into_iter().map(|link| link.name).collect(),
                };
                let mut touched: Vec<_> = links.iter().map(|link| of(link, Part::Ipv6, true)).collect();
                // Forwarding turns LRO off.
                if path.contains("forward") {
                    touched.push(dragged(Part::Features));
                }
                let also = sysctls::dragged_along(path).into_iter();
                let sysctl = |path: String, optional| {
                    let link = sysctls::link_of(&path).unwrap_or(link).to_owned();
                    of(&link, Part::Sysctl(path), optional)
                };
                touched.extend(also.map(|path| sysctl(path, true)));
                touched.push(sysctl(path.clone(), false));
                touched
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for name in [
            "tso",
            "tx-tcp-segmentation",
            "ring-rx",
            "rx-usecs",
            "channels-combined",
            "pause-autoneg",
            "flag:x y",
            "rx-copybreak",
            "up",
            "mac",
            "all-multicast",
            "mtu",
            "txqueuelen",
            "napi-threaded",
            "rps-cpus",
            "irq-affinity",
            "governor",
            "qdisc",
            "busy-poll",
            "sysctl:net.ipv4.tcp_fin_timeout",
            "sysctl:net/ipv4/conf/eth0.1/rp_filter",
        ] {
            assert_eq!(Key::parse(name).unwrap().name(), name);
        }
        assert_eq!(Key::parse("sysctl:net/core/busy_poll").unwrap().name(), "busy-poll");
        assert!(Key::parse("sysctl:../x").is_err() && Key::parse("a b").is_err() && Key::parse("").is_err());
    }

    #[test]
    fn a_small_mtu_takes_ipv6_along() {
        let parts = |value: &str| {
            let touched = Key::Attribute(Attribute::Mtu).touched("eth0", value).unwrap();
            touched.into_iter().map(|touched| touched.part).collect::<Vec<_>>()
        };
        assert!(parts("600").contains(&Part::Ipv6) && !parts("9000").contains(&Part::Ipv6));
        assert_eq!(parts("600").last(), Some(&Part::Attribute(Attribute::Mtu)));
    }
}
