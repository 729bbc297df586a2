//! Regrouping in bounded memory: tiles whose chunks extend over many of them are assembled in groups, so that each
//! chunk is decoded once.
//!
//! In a transposing layout, every tile needs a part of every chunk. If tiles were assembled one by one, each chunk
//! would be decoded once per tile. Instead, a [`groups::TileGroups`] divides the tiles of an array into boxes of
//! consecutive tiles, and a [`store::GroupStore`] holds the tiles of a group while they are assembled from one pass
//! over its chunks. If the memory holds too few tiles at once, the values first go through a scratch file in
//! [`slabs::Slabs`]: boxes of whole chunks, whose values are stored tile by tile. The threads that need tiles do this
//! together, in [`phases::Phases`]. [`choice`] chooses between these ways.
//!
//! Invariants: tiles stay in plan order, so that the output does not depend on the memory. A chunk is decoded at most
//! twice along its own grid; where inputs are joined at rows that are not a multiple of the chunk length, borders of
//! slabs may add one decode.

pub mod blocks;
pub mod boxes;
pub mod choice;
pub mod groups;
pub mod phases;
pub mod slabs;
pub mod slots;
pub mod store;

pub use choice::{Chunks, MAX_DECODES, Regrouping, TileMemory, choose};
