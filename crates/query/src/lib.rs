//! Queries: the rows of a table of an HDF5 file that satisfy a condition, read without the blocks that cannot have such
//! rows.
//!
//! A [`Table`] is a group of datasets with equal numbers of rows. A [`Scan`] divides its rows into blocks, skips those
//! whose statistics exclude a match ([`index`]), reads the columns of the condition ([`Expression`]) in the others, and
//! reads the requested columns where rows remain. Invariant: a block is skipped only if none of its rows can match, so
//! a scan with an index returns the same rows as a scan without one.
#![forbid(unsafe_code)]

pub mod aggregate;
mod any_number;
pub mod builder;
mod column_name;
mod condition;
mod decoding;
mod distinct;
pub mod error;
pub mod events;
pub mod expression;
pub mod index;
mod limits;
mod lists;
mod matches;
mod numbers;
mod packing;
mod pair;
mod parse;
mod ranges;
pub mod scan;
pub mod search;
pub mod statistics;
pub mod strings;
pub mod sum;
pub mod table;
pub mod values;

pub use aggregate::{Aggregate, AggregateKind, Sum};
pub use builder::{IndexBuilder, NewDataset};
pub use error::{QueryError, Result};
pub use events::EventSet;
pub use expression::{Expression, Literal, Operator};
pub use index::Index;
pub use scan::{Explanation, FoundRows, Scan};
pub use search::{EventCondition, FoundEvents, Search, TableCondition};
pub use table::Table;
pub use values::{ValueType, Values};
