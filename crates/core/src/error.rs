//! Errors of plans, collectives and budgets; errors of the work itself are [`crate::engine::EngineError`].

use crate::ranks::Rank;

/// Result type of this crate.
pub type Result<T, E = CoreError> = std::result::Result<T, E>;

/// An error of the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A box extends past the buffer it belongs to.
    #[error(
        "the {side} box does not lie in its buffer \
         (start {start:?}, count {count:?}, shape {shape:?}, {len_bytes} bytes)"
    )]
    BoxOutside {
        /// Name of the buffer: `source` or `target`.
        side: &'static str,
        /// Origin of the box.
        start: Vec<u64>,
        /// Number of elements per axis.
        count: Vec<u64>,
        /// Shape of the buffer.
        shape: Vec<u64>,
        /// Length of the buffer.
        len_bytes: usize,
    },
    /// More axes than [`crate::plan::extent::MAX_RANK`].
    #[error("{rank} axes exceed the limit of {}", crate::plan::axes::MAX_RANK)]
    RankTooLarge {
        /// Number of axes.
        rank: usize,
    },
    /// A plan contradicts itself.
    #[error("array {array} of the plan: {fault}")]
    Plan {
        /// Number of the array in the plan.
        array: usize,
        /// Description of the contradiction.
        fault: PlanFault,
    },
    /// A rank failed. All other ranks return this; the failing rank returns its own error.
    #[error("{operation}: rank {rank} failed: {message}")]
    RankFailed {
        /// Collective operation or stage.
        operation: &'static str,
        /// Rank that failed.
        rank: Rank,
        /// Text of the other rank's error.
        message: String,
    },
    /// A rank left before a collective operation that other ranks have entered, or this rank has left the others behind.
    #[error("{operation}: a rank left early")]
    RankLeft {
        /// Collective operation.
        operation: &'static str,
    },
    /// Ranks were started with different plans or options.
    #[error("rank {rank} has a different plan or different options than rank 0")]
    PlansDiffer {
        /// Rank with a plan or options that differ from those of rank 0.
        rank: Rank,
    },
    /// A message has the wrong length for its kind.
    #[error("{operation}: message of {got_bytes} bytes, expected {expected_bytes}")]
    MessageLength {
        /// Collective operation.
        operation: &'static str,
        /// Actual length.
        got_bytes: usize,
        /// Expected length.
        expected_bytes: usize,
    },
    /// A message is malformed, so the ranks cannot run the same build.
    #[error("{operation}: invalid message from rank {rank}; make sure all ranks run the same raddle version")]
    MessageContent {
        /// Collective operation.
        operation: &'static str,
        /// Rank that sent the message or cannot encode it.
        rank: Rank,
    },
    /// The number of messages differs from the number of ranks.
    #[error("{operation}: {got} messages for {size} ranks")]
    MessageCount {
        /// Collective operation.
        operation: &'static str,
        /// Number of messages.
        got: usize,
        /// Number of ranks.
        size: usize,
    },
    /// A rank number exceeds the size of the communicator.
    #[error("{operation}: rank {rank} does not exist; there are {size} ranks")]
    NoSuchRank {
        /// Collective operation.
        operation: &'static str,
        /// Requested rank.
        rank: Rank,
        /// Number of ranks.
        size: usize,
    },
    /// The memory budget is below the minimum requirement.
    #[error(
        "{purpose} needs {needed_bytes} bytes of memory, {available_bytes} of the budget of {limit_bytes} are free; \
         raise --memory"
    )]
    Memory {
        /// Purpose of the memory.
        purpose: &'static str,
        /// Minimum number of bytes needed.
        needed_bytes: u64,
        /// Number of free bytes.
        available_bytes: u64,
        /// Size of the whole budget.
        limit_bytes: u64,
    },
    /// A digest was requested before all bytes had been added.
    #[error("digest requested after only {got_bytes} of {expected_bytes} bytes")]
    DigestIncomplete {
        /// Number of bytes added.
        got_bytes: u64,
        /// Total number of bytes.
        expected_bytes: u64,
    },
    /// A fragment extends past the end of the digested content.
    #[error("fragment of {len_bytes} bytes at {offset_bytes} extends past the end of {total_bytes} bytes")]
    FragmentOutside {
        /// Offset of the fragment.
        offset_bytes: u64,
        /// Length of the fragment.
        len_bytes: u64,
        /// Length of the content.
        total_bytes: u64,
    },
    /// No worker thread could be started.
    #[error("cannot start a thread: {source}")]
    Threads {
        /// Cause.
        source: std::io::Error,
    },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Contradiction in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// The array has no axis.
    #[error("it has no axis; values without axes are not tiled")]
    NoAxis,
    /// Shape and tile shape differ in their number of axes.
    #[error("its shape has {shape} axes, but its tiles have {tile}")]
    RankDiffers {
        /// Number of axes of the array.
        shape: usize,
        /// Number of axes of the tiles.
        tile: usize,
    },
    /// The array has more axes than supported.
    #[error("it has {0} axes")]
    RankTooLarge(usize),
    /// Inputs are concatenated along an axis that the array does not have.
    #[error("its inputs are joined along axis {axis}, but it has {rank} axes")]
    AxisOutOfRange {
        /// Axis with the fault.
        axis: usize,
        /// Number of axes of the array.
        rank: usize,
    },
    /// A tile has no extent, or an element has no length.
    #[error("its tiles or elements have no extent")]
    ZeroTile,
    /// A length exceeds 64 bits.
    #[error("its length does not fit 64 bits")]
    Overflow,
    /// The segments leave a gap, overlap, or do not end where the array ends.
    #[error("segment {segment} starts at row {start}, expected row {expected}")]
    Segment {
        /// Number of the segment; one past the last denotes the end of the array.
        segment: usize,
        /// Actual start, or the number of rows of the array.
        start: u64,
        /// Expected start.
        expected: u64,
    },
    /// A segment has no rows; inputs without rows must be omitted.
    #[error("segment {0} has no rows")]
    EmptySegment(usize),
    /// A box is empty, extends past the array, or has different axes.
    #[error("box {0} has no elements or lies outside of the array")]
    BoxOutside(usize),
    /// A box has elements in common with another.
    #[error("box {0} overlaps another box")]
    BoxesOverlap(usize),
    /// An array has both boxes and segments.
    #[error("it has boxes as well as segments")]
    BoxesAndSegments,
    /// There are more arrays than 32 bits can number.
    #[error("there are too many arrays")]
    TooManyArrays,
}
