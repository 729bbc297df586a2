//! Definition of an IDX dataset: its hierarchy of samples, blocks and files, its header and compressions.

pub mod bitmask;
pub mod compression;
pub mod grid;
pub mod header;
pub(crate) mod layout;
pub mod region;
pub mod sample;
pub mod template;
pub mod time_steps;
pub mod vectors;
pub(crate) mod zfp;
