//! Every parser of bytes as a function of bytes: what fuzzers call, and `cargo test` with mutated seeds.
//!
//! A [`Target`] reads bytes as one of raddle's parsers would and panics where a promise is broken: that nothing panics,
//! that a judge who reads the same bytes agrees, that what is accepted can be written and read again. Errors are what most
//! bytes must give and are no failure.
//!
//! - `make fuzz` runs the targets under libFuzzer (`fuzz/`, nightly compiler), which seeks bytes that reach new code.
//! - `tests/mutated.rs` runs them on mutated seeds with the stable compiler, and bounds time and memory.
//!
//! A crate of its own because it links all others, of which some use [`raddle_testing`] in their own tests.
//! Invariant: seeds are made by the project itself and are the same in every run.
#![forbid(unsafe_code)]

mod codec;
mod edits;
mod events;
mod files;
mod idx;
mod journal;
mod library;
pub mod mutate;
mod protocol;
mod scratch;
mod seeds;
mod texts;
mod zarr;

use raddle_hdf5::child;

/// A parser of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name, also of the fuzz target.
    pub name: &'static str,
    /// Reads the bytes; panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Mutated seeds that the quick test tries.
    pub quick_cases: u32,
}

/// All targets.
pub const TARGETS: [Target; 17] = [
    Target { name: "pipeline", run: codec::pipeline, seeds: codec::pipeline_seeds, quick_cases: 20_000 },
    Target { name: "deflate", run: codec::deflate, seeds: codec::deflate_seeds, quick_cases: 20_000 },
    Target { name: "encode", run: codec::encode, seeds: codec::encode_seeds, quick_cases: 2000 },
    Target { name: "file", run: files::file, seeds: seeds::files, quick_cases: 1000 },
    Target { name: "edited_file", run: files::edited_file, seeds: edits::seeds, quick_cases: 3000 },
    Target { name: "library", run: library::library, seeds: edits::seeds, quick_cases: 100 },
    Target { name: "merge", run: files::merge, seeds: edits::seeds, quick_cases: 150 },
    Target { name: "digests", run: files::digests, seeds: edits::seeds, quick_cases: 300 },
    Target { name: "journal", run: journal::journal, seeds: journal::seeds, quick_cases: 20_000 },
    Target { name: "protocol", run: protocol::protocol, seeds: protocol::seeds, quick_cases: 3000 },
    Target { name: "idx_header", run: idx::header, seeds: idx::header_seeds, quick_cases: 20_000 },
    Target { name: "idx_blocks", run: idx::blocks, seeds: idx::block_seeds, quick_cases: 2000 },
    Target { name: "zarr_folder", run: zarr::folder, seeds: zarr::seeds, quick_cases: 2000 },
    Target { name: "tree", run: events::tree, seeds: events::tree_seeds, quick_cases: 500 },
    Target { name: "stream", run: events::stream, seeds: events::stream_seeds, quick_cases: 5000 },
    Target { name: "event_file", run: events::event_file, seeds: events::event_file_seeds, quick_cases: 2000 },
    Target { name: "texts", run: texts::texts, seeds: texts::seeds, quick_cases: 20_000 },
];

/// Reads a file with libhdf5 for the process that started this one, where it was started for that, and then ends: the first
/// thing that a fuzzer's own executable does.
///
/// # Panics
/// If the conversation breaks off.
pub fn serve_if_asked() {
    if std::env::args().nth(1).as_deref() == Some(child::READER_ARGUMENT) {
        child::serve().expect("the process that asks is there");
        std::process::exit(0);
    }
}

/// Runs the target of this name.
///
/// # Panics
/// If there is none, and where the target does.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target {name}")).run)(bytes);
}
