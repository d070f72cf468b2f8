//! `cargo +nightly fuzz run netperf`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_compat::netperf::wire::fuzz_decode(bytes));
