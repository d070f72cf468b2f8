//! `cargo +nightly fuzz run netlink`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_link::ethtool::fuzz_decode(bytes));
