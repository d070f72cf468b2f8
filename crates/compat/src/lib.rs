//! Stands in for ttcp, netperf, uperf and iperf3: on the wire, on the command line, and in what they print.
//!
//! A folder each. Protocols are state machines without I/O or clock (bytes and time in, bytes and actions out), pumped
//! by a small blocking driver; front ends take those tools' command lines and print their layouts.

pub mod iperf3;
pub mod netperf;
pub mod observed;
pub mod ttcp;
pub mod uperf;
