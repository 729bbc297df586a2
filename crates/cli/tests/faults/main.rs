//! Runs of the real command that are interrupted, or whose disk, memory or inputs fail.
//!
//! The following must hold every time: the output's name has its previous content or the complete right file; the exit
//! code and the message describe what happened; leftovers are reported, and the same command resumes from them and
//! produces the same bytes.
//!
//! The ignored tests are long versions of the others: `make soak`, in which every call is struck.

mod appending;
mod datasets;
mod events;
mod full_disk;
mod inputs;
mod killing;
mod limits;
mod many;
mod parts;
mod power;
mod preview;
mod rounds;
mod stale;
mod workload;
mod writing;

/// Returns the distance between the calls that are struck: `usual`, or 1 in `make soak`.
fn distance(usual: usize) -> usize {
    if std::env::var_os("RADDLE_SOAK").is_some() { 1 } else { usual }
}
