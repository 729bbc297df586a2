//! A hook that observes the values of a merge as they pass, to build a file that is published with the output.
//!
//! Other crates build the files, such as previews of arrays; this crate does not depend on them.
//! Invariant: a tile observer sees every requested element of tiled datasets, and of datasets that hold addresses
//! within their file, exactly once, on one rank, even if chunks are moved as stored or kept from an interrupted run.
//! Its file is never published next to an output that it does not describe.

use crate::schema::ColumnIndex;
use raddle_core::plan::extent::{BoxSource, Extent};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;

/// Error of a tile observer; it names file and cause. A [`raddle_core::CoreError`] keeps its meaning: memory, ranks,
/// cancellation.
pub type TileObserverError = Box<dyn std::error::Error + Send + Sync>;

/// Builder of a file next to an output, from the values of the same pass.
pub trait TileObserver: Sync {
    /// Returns the memory that the observer will hold on a rank while values pass; a permit is taken before the first
    /// value.
    fn len_bytes(&self) -> u64;

    /// Returns whether the observer needs any element of this box of a column. Values of other boxes are not passed to
    /// it.
    fn wants(&self, column: ColumnIndex, extent: &Extent) -> bool;

    /// Observes `values`, which are this box of a column. It is called by many threads at once.
    ///
    /// # Errors
    /// If the observer fails, which ends the merge.
    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), TileObserverError>;

    /// Observes rows from `first_row` of a column whose values hold addresses within their file, in canonical bytes. It
    /// is called on the rank that writes them, in order, whether or not the observer wants the column.
    ///
    /// # Errors
    /// If the observer fails, which ends the merge.
    fn take_canonical(&self, column: ColumnIndex, first_row: u64, canonical: &[u8]) -> Result<(), TileObserverError>;

    /// Collective. Gathers the data of all ranks on the first rank, once all values have passed.
    ///
    /// # Errors
    /// If the observer fails on any rank, which ends the merge. Every rank returns an error.
    fn gather(&self, ranks: &dyn Communicator) -> Result<(), TileObserverError>;

    /// Writes everything under a temporary name, with this much memory in addition to what it already holds. It is
    /// called on the first rank.
    ///
    /// # Errors
    /// If the observer fails, which ends the merge.
    fn complete(&self, memory_limit_bytes: u64, watch: &Watch<'_>) -> Result<(), TileObserverError>;

    /// Moves an older file of the observer away; it is restored if [`TileObserver::publish`] is not called. It is
    /// called on the first rank, before the output is published.
    ///
    /// # Errors
    /// If the observer fails, which ends the merge.
    fn withdraw(&self) -> Result<(), TileObserverError>;

    /// Publishes the observer's file after the output has been published. It is called on the first rank.
    ///
    /// # Errors
    /// If the file cannot be published. The output then remains, without the observer's file.
    fn publish(&self) -> Result<(), TileObserverError>;
}
