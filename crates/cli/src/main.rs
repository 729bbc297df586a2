//! The `raddle` command; everything it does is in the library beside it.

use std::process::ExitCode;

/// A scan makes and drops some million small values per second, many of them on another thread than the one that made
/// them; the C library's allocator took a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    raddle_cli::run(std::env::args_os()).into()
}
