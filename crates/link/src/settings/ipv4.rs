//! A link's IPv4 routes: going down takes them away, and coming up brings back only those of its addresses.

use super::ipv6;
use super::part::Values;
use crate::error::Result;
use crate::links;
use crate::rtnl::Rtnl;

const AF_INET: u8 = nix::libc::AF_INET as u8;

/// The routes through a link that someone made (`route BYTES`).
pub(crate) fn routes(link: &str) -> Result<Values> {
    let mut rtnl = Rtnl::open()?;
    let index = links::index_of(&mut rtnl, link)?;
    ipv6::routes(&mut rtnl, AF_INET, index)
}

/// Adds what is missing; nothing is taken away.
pub(crate) fn put_back_routes(link: &str, before: &Values, now: &Values) -> Result<()> {
    let missing = before.keys().filter(|item| !now.contains_key(*item));
    ipv6::put_back_routes(link, missing.map(String::as_str))
}
