//! Which ranks read which inputs: each rank what its own tiles need, or one rank of each group for the whole group.
//!
//! A tile of a small dataset holds rows of every input. So by tiles nearly every rank opens nearly every input, which a file system
//! of many clients serves slowly; by files a rank opens its share of them and sends the others their values.
//! Invariant: the output has the same bytes either way.

mod arrangement;
mod choice;
mod files;
mod groups;

pub(crate) use arrangement::arrange;
pub(crate) use choice::{MEMORY_BYTES_PER_S, choose_with, ways};
pub use choice::{PredictedReading, ReadBy, Reading, ReadingReport, Strategy};
pub(crate) use files::{FileReading, is_sent};
pub(crate) use groups::ReadingGroups;
