//! Which wire joins two nodes of which at least one is a guest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_link::{in_netns, lab, links};
use linerate_model::NodeUrl;
use linerate_model::trial::Side;

use super::error::{Result, VmError};
use super::guest::{self, Guest, Order};
use super::machine::SocketFolder;
use super::qemu::Wire;
use super::{LaunchOptions, failed, reach};
use crate::launch;
use crate::node::{Node, NodeError, NodeFailure};
use crate::protocol::Refusal;

/// The tap that leads to a guest, in the other node's namespace. It goes with the guest.
const TAP: &str = "lr-tap";
/// How long QEMU may take to make its end of a wire.
const WIRE_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

/// Connects to both nodes of a test; `None` where neither is a guest.
pub(crate) fn connect_pair(
    dut: &NodeUrl,
    peer: &NodeUrl,
    options: &LaunchOptions,
) -> std::result::Result<Option<(Node, Node)>, NodeError> {
    let pair = match (dut, peer) {
        (NodeUrl::Vm { profile: a, seat: one }, NodeUrl::Vm { profile: b, seat: other })
            if a == b && one != other =>
        {
            (launch::connect(dut, options)?, launch::connect(peer, options)?)
        }
        (NodeUrl::Vm { profile: a, .. }, NodeUrl::Vm { profile: b, .. }) => {
            let [one, other] = two_guests(a, b, options).map_err(|error| failed(dut, &error))?;
            (reach(dut, &one, Side::Dut)?, reach(peer, &other, Side::Peer)?)
        }
        (NodeUrl::Vm { profile, .. }, NodeUrl::Netns(netns)) => {
            let guest = behind_tap(profile, netns, Side::Dut, options).map_err(|e| failed(dut, &e))?;
            (reach(dut, &guest, Side::Dut)?, launch::connect(peer, options)?)
        }
        (NodeUrl::Netns(netns), NodeUrl::Vm { profile, .. }) => {
            let guest = behind_tap(profile, netns, Side::Peer, options).map_err(|e| failed(peer, &e))?;
            (launch::connect(dut, options)?, reach(peer, &guest, Side::Peer)?)
        }
        (vm @ NodeUrl::Vm { .. }, other) | (other, vm @ NodeUrl::Vm { .. }) => {
            return Err(no_wire(vm, other));
        }
        _ => return Ok(None),
    };
    Ok(Some(pair))
}

fn no_wire(vm: &NodeUrl, other: &NodeUrl) -> NodeError {
    let own_peer = vm.other_seat().map(|url| url.to_string()).unwrap_or_default();
    let reason = format!(
        "no wire leads from a guest to {other}: the other node can be {own_peer} (in the same guest), another vm:, or a netns:"
    );
    let cause = NodeFailure::Refused { reason, kind: Refusal::Usage };
    NodeError { node: vm.to_string(), operation: "lay a wire", cause }
}

/// Two guests, whose NICs see each other through a socket.
fn two_guests(dut: &str, peer: &str, options: &LaunchOptions) -> Result<[Arc<Guest>; 2]> {
    let folder = SocketFolder::create()?;
    let path = folder.path().join("wire");
    let order = |profile: &str, side, wire| Order { side, wire, ..Order::hub(profile, options) };
    let one = guest::boot(&order(dut, Side::Dut, Wire::Listen(path.clone())))?;
    wait_for("QEMU's end of the wire", || Ok(path.exists()))?;
    let other = guest::boot(&order(peer, Side::Peer, Wire::Connect(path)))?;
    Ok([one, other])
}

/// A guest behind a tap in a namespace, where the other end of the wire has its addresses.
fn behind_tap(profile: &str, netns: &str, side: Side, options: &LaunchOptions) -> Result<Arc<Guest>> {
    let order = Order {
        side,
        wire: Wire::Tap(TAP.to_owned()),
        netns: Some(netns.to_owned()),
        ..Order::hub(profile, options)
    };
    let guest = guest::boot(&order)?;
    let there = match side {
        Side::Dut => Side::Peer,
        Side::Peer => Side::Dut,
    };
    let set_up = || {
        lab::set_up_end(TAP, lab::EndAddresses::of(there), None)?;
        links::wait_for_carrier(TAP, WIRE_LIMIT)
    };
    in_netns(netns, set_up).map_err(|error| VmError::Guest(error.to_string()))?;
    Ok(guest)
}

fn wait_for(what: &str, look: impl Fn() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + WIRE_LIMIT;
    while !look()? {
        if Instant::now() > end {
            return Err(VmError::Guest(format!("{what} did not show within {WIRE_LIMIT:?}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
