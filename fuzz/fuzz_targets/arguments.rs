//! See `raddle_fuzzing::TARGETS`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| raddle_fuzzing::run("arguments", bytes));
