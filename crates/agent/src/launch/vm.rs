//! Guests: linerate boots one in QEMU, with the NIC of a profile, and an agent at each end of that NIC's wire.
//!
//! A guest has no disk and no program but linerate. Its only ways out are the wire and the virtio-serial ports of its
//! agents. It ends with the last node that is in it, and with this process however that ends.

mod acceleration;
mod archive;
mod console;
mod elf;
mod error;
pub mod fetch;
mod guest;
pub mod kernel;
mod machine;
mod modules;
mod monitor;
mod profile;
mod program;
mod qemu;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use linerate_model::NodeUrl;
use linerate_model::trial::Side;

use super::{Carrier, LaunchOptions, unreachable};
use crate::node::{Node, NodeError, NodeFailure};
use crate::protocol::Refusal;

pub use error::{Result, VmError};
pub use guest::{Guest, Guests, Order, boot};
pub use kernel::Kernel;
pub use machine::{Machine, MachineFacts};
pub use profile::{Profile, WantedAcceleration, shipped};
pub use qemu::Acceleration;
pub(super) use wire::connect_pair;

/// How long a guest may take from its start to its agent's greeting: 5 to 10 s by software on an idle machine.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// Connects to the agent at one end of a guest's wire; boots the guest unless it runs already for its other end.
///
/// # Errors
/// Why there is no guest; where there is one, its last console lines.
pub(super) fn connect(
    url: &NodeUrl,
    profile: &str,
    side: Side,
    options: &LaunchOptions,
) -> std::result::Result<Node, NodeError> {
    let guest = options.guests.with_free_port(profile, side, || guest::boot(&Order::hub(profile, options)));
    reach(url, &guest.map_err(|error| failed(url, &error))?, side)
}

/// Greets the agent of one end.
fn reach(url: &NodeUrl, guest: &Arc<Guest>, side: Side) -> std::result::Result<Node, NodeError> {
    let stream = guest.take_port(side).map_err(|error| failed(url, &error))?;
    let reader = stream.try_clone().map_err(|e| unreachable(url, "use its port", e.to_string()))?;
    Node::greet(url.clone(), reader, stream, Carrier::guest(Arc::clone(guest)), None, BOOT_LIMIT)
}

/// Asks a QEMU whether it can emulate the NIC of a profile.
///
/// # Errors
/// There is no QEMU.
pub fn can_emulate(profile: &Profile) -> Result<bool> {
    qemu::has_device(&qemu::program()?, &profile.nic)
}

fn failed(url: &NodeUrl, error: &VmError) -> NodeError {
    let cause = match error {
        VmError::NoProfile { .. } | VmError::BadProfile { .. } => {
            NodeFailure::Refused { reason: error.to_string(), kind: Refusal::Usage }
        }
        other => NodeFailure::Unreachable(other.to_string()),
    };
    NodeError { node: url.to_string(), operation: "boot a guest", cause }
}
