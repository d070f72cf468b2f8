//! The numbers that drivers let one turn: rings, channels, coalescing, pause.

use std::collections::BTreeMap;

use netlink_packet_core::DecodeError;
use serde::{Deserialize, Serialize};

use super::Ethtool;
use super::attribute::{Attribute, Attributes};
use super::message::Command;
use crate::error::{LinkError, Result};

/// Parameters that are read and set together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Descriptors in the rings (`ethtool -g`, `-G`).
    Rings,
    /// Queues and their interrupts (`ethtool -l`, `-L`).
    Channels,
    /// Interrupt moderation (`ethtool -c`, `-C`); times in microseconds.
    Coalesce,
    /// Ethernet flow control (`ethtool -a`, `-A`).
    Pause,
}

/// One parameter's value; switches are 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// What it is set to.
    pub value: u32,
    /// The largest value that the driver takes, where it says so.
    pub maximum: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Bits8,
    Bits32,
}

/// How a parameter is called (as ethtool(8) calls it) and where it stands.
struct Field {
    name: &'static str,
    attribute: u16,
    maximum: Option<u16>,
    width: Width,
}

const fn number(name: &'static str, attribute: u16) -> Field {
    Field { name, attribute, maximum: None, width: Width::Bits32 }
}

const fn limited(name: &'static str, attribute: u16, maximum: u16) -> Field {
    Field { name, attribute, maximum: Some(maximum), width: Width::Bits32 }
}

const fn switch(name: &'static str, attribute: u16) -> Field {
    Field { name, attribute, maximum: None, width: Width::Bits8 }
}

const RINGS: &[Field] = &[
    limited("rx", 6, 2),
    limited("rx-mini", 7, 3),
    limited("rx-jumbo", 8, 4),
    limited("tx", 9, 5),
    number("rx-buf-len", 10),
    switch("tcp-data-split", 11),
    number("cqe-size", 12),
    switch("tx-push", 13),
    switch("rx-push", 14),
    limited("tx-push-buf-len", 15, 16),
];

const CHANNELS: &[Field] =
    &[limited("rx", 6, 2), limited("tx", 7, 3), limited("other", 8, 4), limited("combined", 9, 5)];

const COALESCE: &[Field] = &[
    number("rx-usecs", 2),
    number("rx-frames", 3),
    number("rx-usecs-irq", 4),
    number("rx-frames-irq", 5),
    number("tx-usecs", 6),
    number("tx-frames", 7),
    number("tx-usecs-irq", 8),
    number("tx-frames-irq", 9),
    number("stats-block-usecs", 10),
    switch("adaptive-rx", 11),
    switch("adaptive-tx", 12),
    number("pkt-rate-low", 13),
    number("rx-usecs-low", 14),
    number("rx-frames-low", 15),
    number("tx-usecs-low", 16),
    number("tx-frames-low", 17),
    number("pkt-rate-high", 18),
    number("rx-usecs-high", 19),
    number("rx-frames-high", 20),
    number("tx-usecs-high", 21),
    number("tx-frames-high", 22),
    number("sample-interval", 23),
    switch("cqe-mode-tx", 24),
    switch("cqe-mode-rx", 25),
    number("tx-aggr-max-bytes", 26),
    number("tx-aggr-max-frames", 27),
    number("tx-aggr-time-usecs", 28),
];

const PAUSE: &[Field] = &[switch("autoneg", 2), switch("rx", 3), switch("tx", 4)];

impl Group {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::Rings, Self::Channels, Self::Coalesce, Self::Pause];

    /// Its name in settings and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rings => "rings",
            Self::Channels => "channels",
            Self::Coalesce => "coalesce",
            Self::Pause => "pause",
        }
    }

    /// The names of its parameters.
    pub fn parameters(self) -> impl Iterator<Item = &'static str> {
        self.fields().iter().map(|field| field.name)
    }

    const fn fields(self) -> &'static [Field] {
        match self {
            Self::Rings => RINGS,
            Self::Channels => CHANNELS,
            Self::Coalesce => COALESCE,
            Self::Pause => PAUSE,
        }
    }

    const fn commands(self) -> (Command, Command) {
        match self {
            Self::Rings => (Command::RingsGet, Command::RingsSet),
            Self::Channels => (Command::ChannelsGet, Command::ChannelsSet),
            Self::Coalesce => (Command::CoalesceGet, Command::CoalesceSet),
            Self::Pause => (Command::PauseGet, Command::PauseSet),
        }
    }
}

impl Ethtool {
    /// The parameters of a group that the driver has.
    ///
    /// # Errors
    /// EOPNOTSUPP where the driver has none of the group.
    pub fn parameters(&mut self, link: &str, group: Group) -> Result<BTreeMap<String, Parameter>> {
        let operation = format!("read {} of {link}", group.name());
        self.ask(&operation, group.commands().0, link, Vec::new(), |reply| decode(group, reply))
    }

    /// Sets parameters of a group, all or none; those not named stay.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] for a name that the group does not have or a value too large for it, else the kernel's
    /// refusal.
    pub fn set_parameters(&mut self, link: &str, group: Group, values: &BTreeMap<String, u32>) -> Result<()> {
        let list: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let operation = format!("set {} {} on {link}", group.name(), list.join(" "));
        let attributes =
            values.iter().map(|(name, value)| encode(group, name, *value)).collect::<Result<_>>()?;
        self.send(&operation, group.commands().1, link, attributes).map(|_| ())
    }
}

fn encode(group: Group, name: &str, value: u32) -> Result<Attribute> {
    let invalid = |why| LinkError::Invalid { what: format!("{} {name}={value}", group.name()), why };
    let Some(field) = group.fields().iter().find(|field| field.name == name) else {
        let known: Vec<_> = group.parameters().collect();
        return Err(invalid(format!("{} has {}", group.name(), known.join(", "))));
    };
    match field.width {
        Width::Bits32 => Ok(Attribute::u32(field.attribute, value)),
        Width::Bits8 => match u8::try_from(value) {
            Ok(value) => Ok(Attribute::u8(field.attribute, value)),
            Err(_) => Err(invalid("at most 255".to_owned())),
        },
    }
}

pub(super) fn decode(
    group: Group,
    reply: &Attributes<'_>,
) -> std::result::Result<BTreeMap<String, Parameter>, DecodeError> {
    let mut parameters = BTreeMap::new();
    for field in group.fields() {
        let Some(value) = reply.u32(field.attribute)? else { continue };
        let maximum = field.maximum.map(|kind| reply.u32(kind)).transpose()?.flatten();
        parameters.insert(field.name.to_owned(), Parameter { value, maximum });
    }
    Ok(parameters)
}

/// Every attribute's name in linux/ethtool_netlink.h as `GROUP#NAME`, with its number, for the test against it.
#[cfg(test)]
pub(crate) fn header_names() -> Vec<(String, u16)> {
    let name = |group: Group, name: &str| match group {
        Group::Channels => format!("CHANNELS#{name}-count"),
        Group::Coalesce if name.contains("aggr") => format!("COALESCE#{name}"),
        Group::Coalesce => format!("COALESCE#{name}")
            .replace("frames", "max-frames")
            .replace("adaptive", "use-adaptive")
            .replace("cqe-mode", "use-cqe-mode")
            .replace("sample", "rate-sample"),
        Group::Rings | Group::Pause => format!("{}#{name}", group.name()),
    };
    let named = |group: Group| {
        let fields = group.fields().iter();
        fields.map(move |field| (name(group, field.name).to_uppercase().replace('-', "_"), field.attribute))
    };
    Group::ALL.into_iter().flat_map(named).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unknown_names_and_values_that_do_not_fit_are_refused_before_the_kernel_is_asked() {
        let error = encode(Group::Pause, "speed", 1).unwrap_err().to_string();
        assert_eq!(error, "pause speed=1: pause has autoneg, rx, tx");
        let error = encode(Group::Pause, "rx", 256).unwrap_err().to_string();
        assert_eq!(error, "pause rx=256: at most 255");
        assert!(encode(Group::Rings, "rx", 4096).is_ok());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            if let Ok(reply) = Attributes::parse(&bytes) {
                for group in Group::ALL {
                    let _ = decode(group, &reply);
                }
            }
        }
    }
}
