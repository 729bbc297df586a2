//! Assignment of inputs to the ranks that read them: each rank reads the inputs of its own tiles, or one rank of each
//! group reads for the whole group.
//!
//! A tile of a small dataset holds rows of every input. When reading by tiles, nearly every rank therefore opens nearly
//! every input, which a file system with many clients serves slowly; when reading by files, a rank opens its share of
//! the inputs and sends their values to the others. Invariant: the output has the same bytes either way.

mod arrangement;
mod choice;
mod files;
mod groups;

pub(crate) use arrangement::arrange;
pub(crate) use choice::{MEMORY_BYTES_PER_S, choose_with, ways};
pub use choice::{PredictedReading, ReadBy, Reading, ReadingReport, Strategy};
pub(crate) use files::{FileReading, is_sent};
pub(crate) use groups::ReadingGroups;
