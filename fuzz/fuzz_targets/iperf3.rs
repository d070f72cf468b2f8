//! `cargo +nightly fuzz run iperf3`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_compat::iperf3::server_control::fuzz_decode(bytes));
