//! The `raddle` command; all functionality is in the library.

use std::process::ExitCode;

/// Global allocator. A scan allocates and frees millions of small values per second, many of them on a different thread
/// than the one that allocated them; the C library's allocator took a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    raddle_cli::run(std::env::args_os()).into()
}
