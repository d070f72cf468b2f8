//! `cargo +nightly fuzz run ttcp`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_compat::ttcp::fuzz_decode(bytes));
