//! What is made of a merge's values as they pass, and appears with its output.
//!
//! Not for what it is: previews of arrays are a matter of others, whom this crate does not know. Invariant: a companion is
//! shown every element of tiled datasets that it wants, once, by one rank, whatever is moved as stored or kept of an
//! interrupted run; and it never lies beside an output that it is not of.

use crate::schema::ColumnIndex;
use raddle_core::communicator::Communicator;
use raddle_core::extent::{BoxSource, Extent};
use raddle_core::progress::Watch;

/// Why a companion failed; it names file and cause. A [`raddle_core::CoreError`] keeps its meaning: memory, ranks, cancellation.
pub type CompanionError = Box<dyn std::error::Error + Send + Sync>;

/// Something that is made beside an output, in the same pass.
pub trait Companion: Sync {
    /// Memory that it comes to hold on a rank while values pass; a permit is taken before the first does.
    fn len_bytes(&self) -> u64;

    /// Whether it wants any element of this box of a column: of no other is it shown the values.
    fn wants(&self, column: ColumnIndex, extent: &Extent) -> bool;

    /// Looks at `values`, which are this box of a column. Called by many threads at once.
    ///
    /// # Errors
    /// Any ends the merge.
    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), CompanionError>;

    /// Collective. Brings what the ranks have seen to the first, when all values have passed.
    ///
    /// # Errors
    /// Any ends the merge, and is one on every rank.
    fn bring(&self, ranks: &dyn Communicator) -> Result<(), CompanionError>;

    /// Makes everything but its name, with this much memory beside what it holds. On the first rank.
    ///
    /// # Errors
    /// Any ends the merge.
    fn complete(&self, memory_limit_bytes: u64, watch: &Watch<'_>) -> Result<(), CompanionError>;

    /// Takes an older one away, which comes back if [`Companion::publish`] is not called. On the first rank, before the output
    /// gets its name.
    ///
    /// # Errors
    /// Any ends the merge.
    fn withdraw(&self) -> Result<(), CompanionError>;

    /// Gives it its name, when the output has its own. On the first rank.
    ///
    /// # Errors
    /// The output stays, without a companion.
    fn publish(&self) -> Result<(), CompanionError>;
}
