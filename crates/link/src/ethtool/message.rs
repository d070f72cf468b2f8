//! Messages of the generic netlink family `ethtool`, on the traits of netlink-packet-generic.
//!
//! Requests and replies are numbered apart: command 11 asks for features one way and carries them the other. The
//! numbers here are those of requests, tested against linux/ethtool_netlink.h.

use netlink_packet_core::{DecodeError, Emitable, ParseableParametrized};
use netlink_packet_generic::{GenlFamily, GenlHeader};

use super::attribute::{Attribute, Attributes};

const FAMILY: &str = "ethtool";
const VERSION: u8 = 1;
/// Every request has its header in attribute 1 (but for STATS_GET, which is not used here).
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;

/// A request's command (`ETHTOOL_MSG_*`, userspace to kernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Command {
    StrsetGet = 1,
    LinkinfoGet = 2,
    LinkmodesGet = 4,
    LinkmodesSet = 5,
    LinkstateGet = 6,
    FeaturesGet = 11,
    FeaturesSet = 12,
    PrivflagsGet = 13,
    PrivflagsSet = 14,
    RingsGet = 15,
    RingsSet = 16,
    ChannelsGet = 17,
    ChannelsSet = 18,
    CoalesceGet = 19,
    CoalesceSet = 20,
    PauseGet = 21,
    PauseSet = 22,
    /// Kernel 6.2 and later.
    RssGet = 38,
}

/// A request to the kernel, or what it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EthtoolMessage {
    /// To the kernel.
    Request { command: Command, attributes: Vec<Attribute> },
    /// From the kernel: attributes as they came, checked to be whole.
    Reply(Vec<u8>),
}

impl EthtoolMessage {
    /// A request about the link `name`.
    pub(crate) fn about(command: Command, name: &str, mut rest: Vec<Attribute>) -> Self {
        let mut attributes = vec![Attribute::nest(HEADER, vec![Attribute::text(HEADER_DEV_NAME, name)])];
        attributes.append(&mut rest);
        Self::Request { command, attributes }
    }
}

impl GenlFamily for EthtoolMessage {
    fn family_name() -> &'static str {
        FAMILY
    }

    fn command(&self) -> u8 {
        match self {
            Self::Request { command, .. } => *command as u8,
            Self::Reply(_) => 0,
        }
    }

    fn version(&self) -> u8 {
        VERSION
    }
}

impl Emitable for EthtoolMessage {
    fn buffer_len(&self) -> usize {
        match self {
            Self::Request { attributes, .. } => attributes.as_slice().buffer_len(),
            Self::Reply(bytes) => bytes.len(),
        }
    }

    fn emit(&self, buffer: &mut [u8]) {
        match self {
            Self::Request { attributes, .. } => attributes.as_slice().emit(buffer),
            Self::Reply(bytes) => buffer[..bytes.len()].copy_from_slice(bytes),
        }
    }
}

impl ParseableParametrized<[u8], GenlHeader> for EthtoolMessage {
    fn parse_with_param(payload: &[u8], _: GenlHeader) -> Result<Self, DecodeError> {
        Attributes::parse(payload)?;
        Ok(Self::Reply(payload.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use linerate_testkit::{Skip, need};

    use super::*;

    /// The values of an enum of a C header, by the order in which its names stand.
    fn enumerators(header: &str, first: &str) -> Vec<String> {
        let from = header.find(first).expect("the enum is there");
        let names = header[from..].lines().map(str::trim).take_while(|line| !line.starts_with("__"));
        let name = |line: &str| line.split([',', ' ', '\t', '/']).next().unwrap_or_default().to_owned();
        names.map(name).filter(|name| name.starts_with("ETHTOOL_")).collect()
    }

    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        let read = std::fs::read_to_string("/usr/include/linux/ethtool_netlink.h");
        need!(with read.as_ref().map_err(|_| Skip::new("needs linux/ethtool_netlink.h (linux-libc-dev)")));
        let header = read.unwrap();
        let messages = enumerators(&header, "ETHTOOL_MSG_USER_NONE");
        for (command, name) in [
            (Command::StrsetGet, "STRSET_GET"),
            (Command::LinkinfoGet, "LINKINFO_GET"),
            (Command::LinkmodesGet, "LINKMODES_GET"),
            (Command::LinkmodesSet, "LINKMODES_SET"),
            (Command::LinkstateGet, "LINKSTATE_GET"),
            (Command::FeaturesGet, "FEATURES_GET"),
            (Command::FeaturesSet, "FEATURES_SET"),
            (Command::PrivflagsGet, "PRIVFLAGS_GET"),
            (Command::PrivflagsSet, "PRIVFLAGS_SET"),
            (Command::RingsGet, "RINGS_GET"),
            (Command::RingsSet, "RINGS_SET"),
            (Command::ChannelsGet, "CHANNELS_GET"),
            (Command::ChannelsSet, "CHANNELS_SET"),
            (Command::CoalesceGet, "COALESCE_GET"),
            (Command::CoalesceSet, "COALESCE_SET"),
            (Command::PauseGet, "PAUSE_GET"),
            (Command::PauseSet, "PAUSE_SET"),
            (Command::RssGet, "RSS_GET"),
        ] {
            let position = messages.iter().position(|message| message == &format!("ETHTOOL_MSG_{name}"));
            match position {
                Some(position) => assert_eq!(position, command as usize, "{name}"),
                // A header from before 6.2 ends before it.
                None => assert_eq!((name, messages.len()), ("RSS_GET", command as usize)),
            }
        }
        for (attribute, number) in crate::ethtool::parameters::header_names() {
            let group = attribute.rsplit_once('#').expect("group#name").0;
            let names = enumerators(&header, &format!("ETHTOOL_A_{group}_UNSPEC"));
            let name = attribute.replace('#', "_");
            if let Some(position) = names.iter().position(|other| other == &format!("ETHTOOL_A_{name}")) {
                assert_eq!(position, usize::from(number), "{name}");
            } else {
                assert!(usize::from(number) >= names.len(), "{name} is newer than this header");
            }
        }
    }
}
