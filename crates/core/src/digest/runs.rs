//! Fragments of blocks, combined before they are added to the digests of an array.

use super::blocks::{BlockPart, RowBlockDigests};
use super::linear::{Factor, Shift, fragment, shift};
use crate::error::{CoreError, Result};
use crate::plan::lines::copy_runs;

/// Longest run that is joined with its neighbours.
const SHORT_LEN_BYTES: usize = 64;

/// Longest gap between joined runs.
const MAX_GAP_LEN_BYTES: u64 = 256;

/// Longest gap between joined runs if a table can shift the CRC across them instead.
const MAX_GAP_LEN_BYTES_WITH_TABLE: u64 = 64;

/// Length up to which runs are joined.
const JOINED_LEN_BYTES: u64 = 16 << 10;

/// Number of shifts by the same length after which a table for it pays.
const MIN_SHIFTS_PER_TABLE: u64 = 64;

/// Runs of equal length, at equal distances in the content and in a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs<'a> {
    /// Offset of the first run in the content.
    pub offset_bytes: u64,
    /// Distance between the starts of neighbouring runs in the content.
    pub stride: u64,
    /// Buffer that begins with the first run.
    pub bytes: &'a [u8],
    /// Distance between the starts of neighbouring runs in the buffer.
    pub stride_in_bytes: usize,
    /// Length of each run.
    pub len_bytes: usize,
    /// Number of runs.
    pub count: u64,
}

impl<'a> Runs<'a> {
    /// Creates a single run.
    pub(super) fn one(offset_bytes: u64, bytes: &'a [u8]) -> Self {
        let len_bytes = bytes.len();
        Self { offset_bytes, stride: len_bytes as u64, bytes, stride_in_bytes: len_bytes, len_bytes, count: 1 }
    }

    /// Returns the end offset of the last run in the content; `None` beyond 64 bits.
    fn end(&self) -> Option<u64> {
        let before_last = self.stride.checked_mul(self.count.saturating_sub(1))?;
        self.offset_bytes.checked_add(before_last)?.checked_add(self.len_bytes as u64)
    }

    /// Divides the runs into the first `count` and the others.
    fn split_at(self, count: u64) -> (Self, Self) {
        let rest = Self {
            offset_bytes: self.offset_bytes + self.stride * count,
            bytes: self.bytes.get(self.stride_in_bytes * count as usize..).unwrap_or_default(),
            count: self.count - count,
            ..self
        };
        (Self { count, ..self }, rest)
    }

    /// Returns the bytes of each run.
    fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.count as usize).map(move |run| &self.bytes[run * self.stride_in_bytes..][..self.len_bytes])
    }
}

/// Fragments of one block in ascending order, combined before being shifted to the end of the block. Runs at a fixed
/// stride, such as the rows of a tile, then cost one multiplication each. Short ones near each other are joined, with
/// zeros in the gaps: zeros do not contribute to a linear CRC.
pub(super) struct Fragments<'a> {
    digests: &'a RowBlockDigests,
    block: u64,
    linear: u64,
    /// End offset of the bytes covered by `linear`.
    end: u64,
    steps: Steps,
    /// Number of bytes added to the block.
    len_bytes: u64,
    added_bytes: u64,
    /// Joined runs, which lie in one block, and the offset of the first.
    joined: Vec<u8>,
    joined_offset_bytes: u64,
    /// Number of bytes of the joined runs, without gaps.
    joined_len_bytes: u64,
    note: &'a mut dyn FnMut(BlockPart),
}

impl<'a> Fragments<'a> {
    pub(super) fn new(digests: &'a RowBlockDigests, note: &'a mut dyn FnMut(BlockPart)) -> Self {
        Self {
            digests,
            block: 0,
            linear: 0,
            end: 0,
            steps: Steps::default(),
            len_bytes: 0,
            added_bytes: 0,
            joined: Vec::new(),
            joined_offset_bytes: 0,
            joined_len_bytes: 0,
            note,
        }
    }

    /// Adds runs. Runs of one block should be in ascending order.
    ///
    /// # Errors
    /// If a run extends past the end of the content.
    pub(super) fn add(&mut self, runs: Runs<'_>) -> Result<()> {
        let total_bytes = self.digests.total_len_bytes();
        if runs.end().is_none_or(|end| end > total_bytes) {
            let (offset_bytes, len_bytes) = (runs.offset_bytes, runs.len_bytes as u64);
            return Err(CoreError::FragmentOutside { offset_bytes, len_bytes, total_bytes });
        }
        self.added_bytes += runs.len_bytes as u64 * runs.count;
        let mut rest = runs;
        while rest.count > 0 {
            let part_end = self.digests.part_end(self.digests.part_of(rest.offset_bytes));
            let room = part_end - rest.offset_bytes;
            let inside = match room.checked_sub(rest.len_bytes as u64) {
                None => 0,
                Some(_) if rest.count == 1 => 1,
                Some(room) => (room / rest.stride + 1).min(rest.count),
            };
            let here;
            (here, rest) = rest.split_at(inside.max(1));
            if inside > 0 {
                self.add_within_block(here);
                continue;
            }
            // A run across the ends of blocks.
            let (mut offset, mut bytes) = (here.offset_bytes, &here.bytes[..here.len_bytes]);
            while !bytes.is_empty() {
                let room = self.digests.part_end(self.digests.part_of(offset)) - offset;
                let (piece, behind) = bytes.split_at(usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len()));
                self.add_within_block(Runs::one(offset, piece));
                (offset, bytes) = (offset + piece.len() as u64, behind);
            }
        }
        Ok(())
    }

    /// Adds runs that lie in one block.
    fn add_within_block(&mut self, runs: Runs<'_>) {
        let gap_len_bytes = runs.stride.saturating_sub(runs.len_bytes as u64);
        let max_gap_len_bytes = match runs.count {
            MIN_SHIFTS_PER_TABLE.. => MAX_GAP_LEN_BYTES_WITH_TABLE,
            _ => MAX_GAP_LEN_BYTES,
        };
        if runs.len_bytes > SHORT_LEN_BYTES || (runs.count > 1 && gap_len_bytes > max_gap_len_bytes) {
            self.flush_joined();
            self.append(runs);
            return;
        }
        let mut rest = runs;
        while rest.count > 0 {
            let here;
            (here, rest) = rest.split_at((JOINED_LEN_BYTES / rest.stride.max(1)).clamp(1, rest.count));
            self.join(here);
        }
    }

    /// Joins short runs of one block to the joined runs, or begins new joined runs with them.
    fn join(&mut self, runs: Runs<'_>) {
        let end = runs.offset_bytes + runs.stride * (runs.count - 1) + runs.len_bytes as u64;
        let joined_end = self.joined_offset_bytes + self.joined.len() as u64;
        let part_end = self.digests.part_end(self.digests.part_of(self.joined_offset_bytes));
        let follows = !self.joined.is_empty()
            && end <= part_end
            && runs.offset_bytes.checked_sub(joined_end).is_some_and(|gap| gap <= MAX_GAP_LEN_BYTES)
            && (self.joined.len() as u64) < JOINED_LEN_BYTES;
        if !follows {
            self.flush_joined();
            (self.joined_offset_bytes, self.joined_len_bytes) = (runs.offset_bytes, 0);
        }
        let at = (runs.offset_bytes - self.joined_offset_bytes) as usize;
        self.joined.resize((end - self.joined_offset_bytes) as usize, 0);
        let target = (&mut self.joined[at..], runs.stride as usize);
        copy_runs(target, (runs.bytes, runs.stride_in_bytes), runs.len_bytes, runs.count as usize);
        self.joined_len_bytes += runs.len_bytes as u64 * runs.count;
    }

    fn flush_joined(&mut self) {
        let joined = std::mem::take(&mut self.joined);
        if !joined.is_empty() {
            self.append(Runs::one(self.joined_offset_bytes, &joined));
            // The gaps are not content.
            self.len_bytes -= joined.len() as u64 - self.joined_len_bytes;
        }
        self.joined = joined;
        self.joined.clear();
    }

    /// Appends runs that lie in one block.
    fn append(&mut self, runs: Runs<'_>) {
        let block = self.digests.part_of(runs.offset_bytes);
        let end = runs.offset_bytes + runs.len_bytes as u64;
        if block != self.block || end < self.end {
            self.flush_block();
            (self.block, self.end) = (block, end);
        }
        let mut each = runs.iter();
        if let Some(first) = each.next() {
            let carried = if self.linear == 0 { 0 } else { self.steps.over(end - self.end, 1).apply(self.linear) };
            self.linear = carried ^ fragment(first);
        }
        if runs.count > 1 {
            let step = self.steps.over(runs.stride, runs.count - 1);
            self.linear = each.fold(self.linear, |linear, run| step.apply(linear) ^ fragment(run));
        }
        self.len_bytes += runs.len_bytes as u64 * runs.count;
        self.end = end + runs.stride * (runs.count - 1);
    }

    fn flush_block(&mut self) {
        if self.len_bytes == 0 {
            return;
        }
        let behind = self.digests.part_end(self.block) - self.end;
        let linear = shift(self.linear, behind);
        self.digests.add_linear(self.block, linear);
        (self.note)(BlockPart { block: self.block, linear, len_bytes: self.len_bytes });
        (self.linear, self.len_bytes) = (0, 0);
    }

    /// Adds what has been combined to the digests.
    pub(super) fn flush(mut self) {
        self.flush_joined();
        self.flush_block();
        self.digests.count_bytes(self.added_bytes);
    }
}

/// Cache of the two most recent shifts. Gaps between runs and gaps between lines alternate, and both then find their
/// shift in the cache.
#[derive(Default)]
struct Steps {
    recent: [Step; 2],
}

impl Steps {
    /// Returns a shift by `len_bytes`, which will be applied `count` times.
    fn over(&mut self, len_bytes: u64, count: u64) -> &Step {
        if self.recent[0].len_bytes != len_bytes {
            self.recent.swap(0, 1);
        }
        let step = &mut self.recent[0];
        if step.len_bytes != len_bytes {
            *step = Step { len_bytes, shift: Shift::over(len_bytes), count: 0, factor: None };
        }
        step.count = step.count.saturating_add(count);
        if step.factor.is_none() && step.count >= MIN_SHIFTS_PER_TABLE {
            step.factor = Some(Box::new(Factor::of(step.shift)));
        }
        step
    }
}

/// Shift by one length, with a table once it has been applied often.
struct Step {
    len_bytes: u64,
    shift: Shift,
    count: u64,
    factor: Option<Box<Factor>>,
}

impl Default for Step {
    fn default() -> Self {
        Self { len_bytes: 0, shift: Shift::over(0), count: 0, factor: None }
    }
}

impl Step {
    fn apply(&self, linear: u64) -> u64 {
        match &self.factor {
            Some(factor) => factor.apply(linear),
            None => self.shift.apply(linear),
        }
    }
}
