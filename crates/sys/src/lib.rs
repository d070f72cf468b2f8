//! Every unsafe block of linerate: thin, safe wrappers over Linux system calls.
//!
//! No policy lives here. Each call reports a refusal as a [`SysError`] that names the operation and its object.

pub mod affinity;
pub mod boot;
pub mod bpf;
pub mod clock;
pub mod error;
pub mod ethtool_ioctl;
pub mod ethtool_memory;
pub mod ethtool_test;
mod guarded;
pub mod memfd;
pub mod mmsg;
pub mod module;
mod mounts;
pub mod multicast;
pub mod netlink;
pub mod netlink_raw;
pub mod netns;
pub mod netns_identity;
pub mod packet;
pub mod poll;
pub mod process;
pub mod process_times;
pub mod sockopt;
pub mod splice;
pub mod tcp_info;
pub mod tun;
pub mod zerocopy;

pub use error::{Result, SysError};
