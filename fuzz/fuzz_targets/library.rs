//! See `raddle_fuzzing::TARGETS`. The executable is its own reader process.
#![no_main]

libfuzzer_sys::fuzz_target!(init: raddle_fuzzing::serve_if_asked(), |bytes: &[u8]| raddle_fuzzing::run("library", bytes));
