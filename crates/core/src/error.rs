//! What can go wrong in plans, collectives and budgets; errors of the work itself are [`crate::engine::EngineError`].

use crate::communicator::Rank;

/// Result of this crate.
pub type Result<T, E = CoreError> = std::result::Result<T, E>;

/// An error of the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A box does not lie in the buffer it belongs to.
    #[error(
        "the {side} box does not lie in its buffer \
         (start {start:?}, count {count:?}, shape {shape:?}, {len_bytes} bytes)"
    )]
    BoxOutside {
        /// `source` or `target`.
        side: &'static str,
        /// Origin of the box.
        start: Vec<u64>,
        /// Elements per axis.
        count: Vec<u64>,
        /// Shape of the buffer.
        shape: Vec<u64>,
        /// Length of the buffer.
        len_bytes: usize,
    },
    /// More axes than [`crate::extent::MAX_RANK`].
    #[error("{rank} axes are more than the {} that are supported", crate::extent::MAX_RANK)]
    RankTooLarge {
        /// Number of axes.
        rank: usize,
    },
    /// A plan that contradicts itself.
    #[error("array {array} of the plan: {fault}")]
    Plan {
        /// Number of the array in the plan.
        array: usize,
        /// What is wrong.
        fault: PlanFault,
    },
    /// A rank gave up; all ranks return this, the rank itself returns its own error.
    #[error("{operation}: rank {rank} failed: {message}")]
    RankFailed {
        /// Collective operation or stage.
        operation: &'static str,
        /// The rank.
        rank: Rank,
        /// Its error, in words.
        message: String,
    },
    /// A rank left before a collective operation that the others are in.
    #[error("{operation}: a rank left early")]
    RankLeft {
        /// Collective operation.
        operation: &'static str,
    },
    /// Ranks were started with different plans or options.
    #[error("rank {rank} has another plan or other options than rank 0")]
    PlansDiffer {
        /// The rank.
        rank: Rank,
    },
    /// A message has another length than its kind has.
    #[error("{operation}: message of {got_bytes} bytes, expected {expected_bytes}")]
    MessageLength {
        /// Collective operation.
        operation: &'static str,
        /// Length received or given.
        got_bytes: usize,
        /// Length expected.
        expected_bytes: usize,
    },
    /// A message that contradicts what its kind says, so that the ranks cannot be of one build.
    #[error("{operation}: the message of rank {rank} makes no sense; start all ranks from the same raddle")]
    MessageContent {
        /// Collective operation.
        operation: &'static str,
        /// The rank that sent it, or cannot make it.
        rank: Rank,
    },
    /// One message per rank was expected.
    #[error("{operation}: {got} messages for {size} ranks")]
    MessageCount {
        /// Collective operation.
        operation: &'static str,
        /// Messages given.
        got: usize,
        /// Ranks.
        size: usize,
    },
    /// A rank beyond the communicator's size.
    #[error("{operation}: there is no rank {rank} among {size}")]
    NoSuchRank {
        /// Collective operation.
        operation: &'static str,
        /// The rank named.
        rank: Rank,
        /// Ranks.
        size: usize,
    },
    /// The memory budget cannot hold what is needed at the least.
    #[error(
        "{purpose} needs {needed_bytes} bytes of memory, {available_bytes} of the budget of {limit_bytes} are free; \
         raise --memory"
    )]
    Memory {
        /// What needs it.
        purpose: &'static str,
        /// Bytes needed at the least.
        needed_bytes: u64,
        /// Bytes free.
        available_bytes: u64,
        /// The whole budget.
        limit_bytes: u64,
    },
    /// A digest was asked for before all bytes had been added.
    #[error("digest of {expected_bytes} bytes asked for after {got_bytes} bytes")]
    DigestIncomplete {
        /// Bytes added.
        got_bytes: u64,
        /// Bytes that there are.
        expected_bytes: u64,
    },
    /// A fragment beyond the end of what is digested.
    #[error("fragment of {len_bytes} bytes at {offset_bytes} does not lie in {total_bytes} bytes")]
    FragmentOutside {
        /// Offset of the fragment.
        offset_bytes: u64,
        /// Its length.
        len_bytes: u64,
        /// Length of the whole.
        total_bytes: u64,
    },
    /// No worker thread could be started.
    #[error("no thread could be started: {source}")]
    Threads {
        /// Cause.
        source: std::io::Error,
    },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// How a plan contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// No axis.
    #[error("it has no axis; values without axes are not tiled")]
    NoAxis,
    /// Shape and tile shape differ in their number of axes.
    #[error("its shape has {shape} axes, its tiles have {tile}")]
    RankDiffers {
        /// Axes of the array.
        shape: usize,
        /// Axes of the tiles.
        tile: usize,
    },
    /// More axes than supported.
    #[error("it has {0} axes")]
    RankTooLarge(usize),
    /// Inputs follow one another along an axis that the array lacks.
    #[error("its inputs are joined along axis {axis}, it has {rank} axes")]
    AxisOutOfRange {
        /// The axis.
        axis: usize,
        /// Axes of the array.
        rank: usize,
    },
    /// A tile without extent, or an element without length.
    #[error("its tiles or elements have no extent")]
    ZeroTile,
    /// Lengths beyond 64 bits.
    #[error("its length does not fit 64 bits")]
    Overflow,
    /// The segments leave a gap, overlap or end elsewhere than the array.
    #[error("segment {segment} starts at row {start}, expected row {expected}")]
    Segment {
        /// Number of the segment; one past the last stands for the end of the array.
        segment: usize,
        /// Its start, or the array's rows.
        start: u64,
        /// Where it should start.
        expected: u64,
    },
    /// A segment of no rows; inputs without rows are left out.
    #[error("segment {0} has no rows")]
    EmptySegment(usize),
    /// More arrays than 32 bits can number.
    #[error("there are too many arrays")]
    TooManyArrays,
}
