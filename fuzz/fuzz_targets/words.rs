//! `cargo +nightly fuzz run words`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_model::fuzz::fuzz_parse(bytes));
