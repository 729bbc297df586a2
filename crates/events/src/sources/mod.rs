//! Sources that hold, generate, join or transform the entries of others.

pub mod baskets;
pub mod collect;
pub(crate) mod compressed;
pub mod concat;
pub mod decoding;
pub mod generated;
pub mod map;
pub mod memory;
pub mod readable;
pub mod serializing;
