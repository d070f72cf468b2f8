//! iperf3.
