//! `cargo +nightly fuzz run traffic`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_traffic::fuzz::fuzz_decode(bytes));
