//! Plain attributes of a link: up or down, address, what it lets in, MTU, queue length, and how NAPI polls it.

use std::fs;

use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use serde::{Deserialize, Serialize};

use super::value::{Allowed, mac_bytes, on_off, switch};
use crate::error::{LinkError, Result};
use crate::rtnl::Rtnl;
use crate::{links, netns, sysfs};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Attribute {
    /// Administratively up (`IFF_UP`).
    Up,
    /// Hardware address.
    Mac,
    /// Takes every frame (`IFF_PROMISC`, as set by hand).
    Promiscuous,
    /// Takes every multicast frame (`IFF_ALLMULTI`, as set by hand).
    AllMulticast,
    /// Largest packet, bytes.
    Mtu,
    /// Packets that the queue holds.
    TxQueueLength,
    /// NAPI polls in kernel threads (`/sys/class/net/LINK/threaded`).
    NapiThreaded,
    /// Empty polls before the interrupt is armed again (`napi_defer_hard_irqs`).
    NapiDeferHardIrqs,
    /// Time that GRO may hold packets, nanoseconds (`gro_flush_timeout`).
    GroFlushTimeout,
}

impl Attribute {
    pub(crate) const ALL: [Self; 9] = [
        Self::Up,
        Self::Mac,
        Self::Promiscuous,
        Self::AllMulticast,
        Self::Mtu,
        Self::TxQueueLength,
        Self::NapiThreaded,
        Self::NapiDeferHardIrqs,
        Self::GroFlushTimeout,
    ];

    /// Its key.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Mac => "mac",
            Self::Promiscuous => "promiscuous",
            Self::AllMulticast => "all-multicast",
            Self::Mtu => "mtu",
            Self::TxQueueLength => "txqueuelen",
            Self::NapiThreaded => "napi-threaded",
            Self::NapiDeferHardIrqs => "napi-defer-hard-irqs",
            Self::GroFlushTimeout => "gro-flush-timeout",
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Up => "the link is up",
            Self::Mac => "hardware address",
            Self::Promiscuous => "takes every frame",
            Self::AllMulticast => "takes every multicast frame",
            Self::Mtu => "largest packet, bytes",
            Self::TxQueueLength => "packets that the send queue holds",
            Self::NapiThreaded => "polling in kernel threads",
            Self::NapiDeferHardIrqs => "empty polls before interrupts come back",
            Self::GroFlushTimeout => "time that GRO holds packets, ns",
        }
    }

    /// The flag of those that are one.
    const fn flag(self) -> LinkFlags {
        match self {
            Self::Up => LinkFlags::Up,
            Self::Promiscuous => LinkFlags::Promisc,
            Self::AllMulticast => LinkFlags::Allmulti,
            _ => LinkFlags::empty(),
        }
    }

    /// The file in `/sys/class/net/LINK` of those that only it tells.
    const fn file(self) -> &'static str {
        match self {
            Self::NapiThreaded => "threaded",
            Self::NapiDeferHardIrqs => "napi_defer_hard_irqs",
            _ => "gro_flush_timeout",
        }
    }

    /// What it is now, and what it takes.
    pub(crate) fn read(self, link: &str) -> Result<(String, Allowed)> {
        let number = |max: u64| Allowed::Number { min: 0, max };
        match self {
            Self::Up | Self::Promiscuous | Self::AllMulticast => {
                let message = links::find(&mut Rtnl::open()?, link)?;
                Ok((on_off(message.header.flags.contains(self.flag())).to_owned(), Allowed::Switch))
            }
            Self::Mac => {
                let address = links::named(link)?.mac.unwrap_or_default();
                Ok((address, Allowed::MacAddress))
            }
            Self::Mtu => {
                let message = links::find(&mut Rtnl::open()?, link)?;
                let mtu =
                    attribute(&message, |a| if let LinkAttribute::Mtu(n) = a { Some(*n) } else { None });
                let min =
                    attribute(&message, |a| if let LinkAttribute::MinMtu(n) = a { Some(*n) } else { None });
                let max =
                    attribute(&message, |a| if let LinkAttribute::MaxMtu(n) = a { Some(*n) } else { None });
                // A driver that tells no maximum tells 0.
                let max = max.filter(|max| *max > 0).unwrap_or(u32::MAX);
                let allowed = Allowed::Number { min: min.unwrap_or(0).into(), max: max.into() };
                Ok((mtu.unwrap_or_default().to_string(), allowed))
            }
            Self::TxQueueLength => {
                let message = links::find(&mut Rtnl::open()?, link)?;
                let length =
                    attribute(
                        &message,
                        |a| {
                            if let LinkAttribute::TxQueueLen(n) = a { Some(*n) } else { None }
                        },
                    );
                Ok((length.unwrap_or_default().to_string(), number(i32::MAX as u64)))
            }
            Self::NapiThreaded => {
                let raw = self.read_file(link)?;
                Ok((switch(&raw).map_or(raw, |on| on_off(on).to_owned()), Allowed::Switch))
            }
            Self::NapiDeferHardIrqs => Ok((self.read_file(link)?, number(i32::MAX as u64))),
            Self::GroFlushTimeout => Ok((self.read_file(link)?, number(u64::MAX))),
        }
    }

    /// Sets it to a checked value.
    pub(crate) fn write(self, link: &str, value: &str) -> Result<()> {
        let parse = || {
            let invalid = |_| LinkError::Invalid {
                what: format!("{}={value} on {link}", self.key()),
                why: "a number of 32 bits is needed".to_owned(),
            };
            value.parse::<u32>().map_err(invalid)
        };
        match self {
            Self::Up => links::set_up(link, value == "on"),
            Self::Promiscuous | Self::AllMulticast => {
                links::set_flag(link, self.flag(), self.key(), value == "on")
            }
            Self::Mac => match mac_bytes(value) {
                Some(mac) => links::set_mac(link, mac),
                None => Err(LinkError::Invalid {
                    what: format!("mac={value} on {link}"),
                    why: "an address of 6 bytes is needed".to_owned(),
                }),
            },
            Self::Mtu => links::set_mtu(link, parse()?),
            Self::TxQueueLength => links::set_tx_queue_length(link, parse()?),
            Self::NapiThreaded | Self::NapiDeferHardIrqs | Self::GroFlushTimeout => {
                self.write_file(link, value)
            }
        }
    }

    fn read_file(self, link: &str) -> Result<String> {
        // A missing link is said to be one, not a missing file.
        links::find(&mut Rtnl::open()?, link)?;
        let path = sysfs::class_folder(link).join(self.file());
        let text = fs::read_to_string(path).map_err(|cause| {
            LinkError::file("read", format!("{} of {link}{}", self.key(), netns::place()), cause)
        })?;
        Ok(text.trim().to_owned())
    }

    fn write_file(self, link: &str, value: &str) -> Result<()> {
        let path = sysfs::class_folder(link).join(self.file());
        let number = match value {
            "on" => "1",
            "off" => "0",
            number => number,
        };
        fs::write(path, number).map_err(|cause| {
            LinkError::file("set", format!("{}={value} on {link}{}", self.key(), netns::place()), cause)
        })
    }
}

fn attribute(message: &LinkMessage, pick: impl Fn(&LinkAttribute) -> Option<u32>) -> Option<u32> {
    message.attributes.iter().find_map(pick)
}
