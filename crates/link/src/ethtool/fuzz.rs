//! For fuzzers: the kernel's answers about links, features, parameters, modes, hashing and strings, over any bytes.

use linerate_sys::netlink;
use netlink_packet_route::RouteNetlinkMessage;

use super::attribute::Attributes;
use super::parameters::Group;
use super::{features, parameters, physical, rss, strings};

/// Feeds any bytes to the reader of netlink's answers about links, and to each decoder of the ethtool family: none may panic.
///
/// Answers about families are left out: netlink-packet-generic 0.5.0 panics on a policy attribute that is cut short, which
/// the kernel does not send.
pub fn fuzz_decode(bytes: &[u8]) {
    netlink::fuzz_decode::<RouteNetlinkMessage>(bytes);
    let Ok(reply) = Attributes::parse(bytes) else { return };
    let _ = features::decode(&reply);
    let _ = physical::decode_modes(&reply);
    let _ = rss::decode(&reply);
    let _ = strings::decode(&reply);
    for group in [Group::Rings, Group::Channels, Group::Coalesce, Group::Pause] {
        let _ = parameters::decode(group, &reply);
    }
}
