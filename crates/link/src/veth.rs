//! Pairs of virtual Ethernet links across namespaces.

use std::os::fd::AsRawFd;

use linerate_sys::netns;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage};

use crate::error::Result;
use crate::rtnl::Rtnl;

/// One end of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Namespace, by its registered name.
    pub netns: String,
    /// Name of the link there.
    pub link: String,
}

/// Creates a pair of veth links, each end straight in its namespace, both down and without address (veth(4)).
///
/// `queues` is the number of transmit and of receive queues of each end; `None` leaves it to the kernel.
///
/// # Errors
/// A namespace that is not there, or the kernel's refusal (`EEXIST` for a name that is taken).
pub fn create(one: &End, other: &End, queues: Option<u32>) -> Result<()> {
    let (here, there) = (netns::open(&one.netns)?, netns::open(&other.netns)?);
    let end = |end: &End, fd: i32| {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(end.link.clone()));
        message.attributes.push(LinkAttribute::NetNsFd(fd));
        if let Some(queues) = queues {
            message.attributes.push(LinkAttribute::NumTxQueues(queues));
            message.attributes.push(LinkAttribute::NumRxQueues(queues));
        }
        message
    };
    let mut message = end(one, here.as_raw_fd());
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end(other, there.as_raw_fd())))),
    ]));
    let operation = format!(
        "create veth {} in netns {} with {} in netns {}",
        one.link, one.netns, other.link, other.netns
    );
    Rtnl::open()?.request(&operation, Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)?;
    Ok(())
}
