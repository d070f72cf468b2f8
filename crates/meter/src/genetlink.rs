//! Generic netlink as far as counters need it: a family's number, and questions to it (linux/genetlink.h).

use linerate_sys::netlink::{GENERIC, Netlink};
use linerate_sys::netlink_raw::RawMessage as Raw;

use crate::error::{MeterError, Result};
use crate::rtnetlink::{attribute, push_attribute};

/// `GENL_ID_CTRL`.
const CONTROL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`.
const HEADER: usize = 4;
const ENOENT: i32 = 2;

/// A family of generic netlink, by a socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Family {
    netlink: Netlink,
    id: u16,
}

impl Family {
    /// Finds a family; `None` where the kernel does not have it.
    pub(crate) fn open(name: &str) -> Result<Option<Self>> {
        let mut netlink = Netlink::open(GENERIC)?;
        let object = format!("find netlink family {name}");
        let mut attributes = Vec::new();
        push_attribute(&mut attributes, CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let request = message(CONTROL, CTRL_CMD_GETFAMILY, &attributes);
        let reply = match netlink.request::<Raw>(&object, request, 0) {
            Ok(reply) => reply,
            Err(error) if error.raw_os_error() == Some(ENOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let id = reply.messages.first().and_then(|reply| {
            let id = attribute(reply.payload.get(HEADER..)?, CTRL_ATTR_FAMILY_ID)?;
            Some(u16::from_ne_bytes(id.try_into().ok()?))
        });
        let id = id.ok_or_else(|| MeterError::malformed(object, "no number in the reply"))?;
        Ok(Some(Self { netlink, id }))
    }

    /// Asks, and gives the attributes of the first answer.
    pub(crate) fn ask(&mut self, object: &str, command: u8, attributes: &[u8]) -> Result<Vec<u8>> {
        let reply = self.netlink.request::<Raw>(object, message(self.id, command, attributes), 0)?;
        let first = reply.messages.into_iter().next();
        let answer = first.and_then(|reply| Some(reply.payload.get(HEADER..)?.to_vec()));
        answer.ok_or_else(|| MeterError::malformed(object, "no answer"))
    }

    /// Asks for a list, and gives the attributes of each entry.
    pub(crate) fn list(&mut self, object: &str, command: u8, attributes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let messages = self.netlink.dump::<Raw>(object, message(self.id, command, attributes))?;
        Ok(messages.into_iter().filter_map(|one| Some(one.payload.get(HEADER..)?.to_vec())).collect())
    }
}

fn message(kind: u16, command: u8, attributes: &[u8]) -> Raw {
    const VERSION: u8 = 1;
    let mut payload = vec![command, VERSION, 0, 0];
    payload.extend_from_slice(attributes);
    Raw { kind, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_or_not_there() {
        assert!(Family::open("nlctrl").unwrap().is_some());
        assert!(Family::open("lr-none").unwrap().is_none());
    }
}
