//! What linerate's own tests share: skips that are counted, namespaces and children that go away, time limits, and
//! a look at what was left behind.
//!
//! Only for tests (`[dev-dependencies]`), so every helper panics with a message that tells what could not be done:
//! in a test a panic is the report.
//!
//! ```no_run
//! use std::time::Duration;
//! use linerate_testkit::{LeakCheck, Wire, need, run_within};
//!
//! # fn moves_bytes_between_two_namespaces() {
//! need!(netns(), tool("iperf3"));
//! let leaks = LeakCheck::start();
//! let wire = Wire::new();
//! let mut ping = wire.left.command("ping");
//! ping.args(["-c1", &wire.right_ipv4().to_string()]);
//! assert!(run_within(ping, Duration::from_secs(5)).success());
//! drop(wire);
//! leaks.assert_none();
//! # }
//! ```

mod child;
mod deadline;
mod leak;
mod netns;
mod port;
mod program;
mod relay;
pub mod skip;

pub use child::{ChildGuard, Finished, run_within, wait_until_gone};
pub use deadline::{eventually, within};
pub use leak::{LeakCheck, Leaks};
pub use netns::{Netns, Wire};
pub use port::{free_tcp_port, free_udp_port};
pub use program::{ORDINARY_USER, Program, PublicProgram, as_ordinary_user, records};
pub use relay::Relay;
pub use skip::Skip;
