//! `cargo +nightly fuzz run uperf`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_compat::uperf::wire::fuzz_decode(bytes));
