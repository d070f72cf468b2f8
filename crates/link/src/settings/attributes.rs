//! Plain numbers of a link: MTU, queue length, and how NAPI polls it.

use std::fs;

use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use serde::{Deserialize, Serialize};

use super::value::{Allowed, on_off, switch};
use crate::error::{LinkError, Result};
use crate::rtnl::Rtnl;
use crate::{links, netns, sysfs};

/// One of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Attribute {
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
    pub(crate) const ALL: [Self; 5] =
        [Self::Mtu, Self::TxQueueLength, Self::NapiThreaded, Self::NapiDeferHardIrqs, Self::GroFlushTimeout];

    /// Its key.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::TxQueueLength => "txqueuelen",
            Self::NapiThreaded => "napi-threaded",
            Self::NapiDeferHardIrqs => "napi-defer-hard-irqs",
            Self::GroFlushTimeout => "gro-flush-timeout",
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Mtu => "largest packet, bytes",
            Self::TxQueueLength => "packets that the send queue holds",
            Self::NapiThreaded => "polling in kernel threads",
            Self::NapiDeferHardIrqs => "empty polls before interrupts come back",
            Self::GroFlushTimeout => "time that GRO holds packets, ns",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::TxQueueLength => "tx_queue_len",
            Self::NapiThreaded => "threaded",
            Self::NapiDeferHardIrqs => "napi_defer_hard_irqs",
            Self::GroFlushTimeout => "gro_flush_timeout",
        }
    }

    /// What it is now, and what it takes.
    pub(crate) fn read(self, link: &str) -> Result<(String, Allowed)> {
        let number = |max: u64| Allowed::Number { min: 0, max };
        match self {
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
