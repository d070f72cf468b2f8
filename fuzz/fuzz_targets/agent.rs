//! `cargo +nightly fuzz run agent`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_agent::fuzz::fuzz_decode(bytes));
