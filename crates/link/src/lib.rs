//! The NIC and what it stands in: inventory, settings, namespaces, veth pairs, and the private lab.
//!
//! Everything here acts on the calling thread's network namespace; [`netns::in_netns`] runs a closure in another one.
//! Links, addresses and routes are read and changed over rtnetlink, offloads and driver parameters over the ethtool
//! family of generic netlink ([`ethtool`]). A refusal comes back as an error with the kernel's own words.

pub mod acts;
pub mod address;
pub mod changes;
pub mod device;
pub mod error;
pub mod ethtool;
pub mod inventory;
pub mod journal;
pub mod lab;
mod lab_lock;
pub mod links;
mod make;
pub mod module;
mod neighbour;
pub mod netns;
mod raw;
pub mod receive_filter;
pub mod restore;
pub mod route;
mod rtnl;
pub mod settings;
pub mod sysctl;
pub mod sysfs;
pub mod veth;

pub use error::{LinkError, Result};
pub use lab::{LabEnd, LabOptions, PrivateLab};
pub use netns::in_netns;
pub use route::{Route, route_to};
