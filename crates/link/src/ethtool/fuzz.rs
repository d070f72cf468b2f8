//! For fuzzers: the kernel's answers about links, features, parameters, modes, hashing and strings, over any bytes.

use linerate_sys::netlink;
use netlink_packet_generic::GenlMessage;
use netlink_packet_generic::ctrl::GenlCtrl;
use netlink_packet_route::RouteNetlinkMessage;

use super::attribute::Attributes;
use super::parameters::Group;
use super::{features, parameters, physical, rss, strings};

/// Feeds any bytes to the reader of netlink's answers, about links and about families, and to each decoder of the ethtool
/// family: none may panic.
pub fn fuzz_decode(bytes: &[u8]) {
    netlink::fuzz_decode::<RouteNetlinkMessage>(bytes);
    netlink::fuzz_decode::<GenlMessage<GenlCtrl>>(bytes);
    let Ok(reply) = Attributes::parse(bytes) else { return };
    let _ = features::decode(&reply);
    let _ = physical::decode_modes(&reply);
    let _ = rss::decode(&reply);
    let _ = strings::decode(&reply);
    for group in [Group::Rings, Group::Channels, Group::Coalesce, Group::Pause] {
        let _ = parameters::decode(group, &reply);
    }
}
