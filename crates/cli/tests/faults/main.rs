//! Runs of the real command that are interrupted, or whose disk, memory or inputs fail.
//!
//! What must hold every time: the output's name has what it had before, or the whole right file; the exit code and the
//! message say what happened; what is left behind is said, and the same command goes on from it to the same bytes.
//!
//! The tests that are ignored are the long versions of the others: `make soak`.

mod appending;
mod datasets;
mod events;
mod full_disk;
mod inputs;
mod killing;
mod limits;
mod parts;
mod power;
mod preview;
mod rounds;
mod stale;
mod workload;
mod writing;
