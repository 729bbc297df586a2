//! Branches that need counts from another branch.
//!
//! Baskets may not record the lengths of their entries ([`Lengths`]): ROOT can omit offsets if another leaf counts the
//! values (`TIOFeatures`). Objects of a split collection may have arrays behind pointers ([`LengthsBranch`]).
//! Invariant: lengths are those of whole values.

use super::buffers::push_offset;
use super::item::Item;
use super::layout;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use super::walk;
use raddle_columns::block::{Buffer, Column};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Form, Number};

/// Source of the lengths of a branch's entries.
#[derive(Debug, Clone, Default)]
pub(super) enum Lengths {
    /// The basket stores them, or they are all the same.
    #[default]
    Stored,
    /// Another branch determines the lengths that are not stored.
    Counted(Counter),
    /// The lengths differ, and those that are not stored are unknown.
    Unknown,
}

/// Branch that holds the counts of another.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    /// Number of the counting branch.
    pub(super) branch: usize,
    /// Contents of the entries of the counting branch.
    pub(super) item: Item,
    pub(super) form: Form,
    number: Number,
    /// Number of bytes that precede the values.
    front_len_bytes: u64,
    /// Length of each counted value.
    each_len_bytes: u64,
}

impl Lengths {
    /// Determines the source of the lengths of a branch with entries `item`.
    pub(super) fn of_branch(tree: &Tree, branch: &Branch, item: Option<&Item>, infos: &StreamerInfos) -> Self {
        if !matches!(branch.leaves.as_slice(), [leaf] if leaf.is_counted) {
            return Self::Stored;
        }
        Self::counted(tree, branch, item, infos).map_or(Self::Unknown, Self::Counted)
    }

    fn counted(tree: &Tree, branch: &Branch, item: Option<&Item>, infos: &StreamerInfos) -> Option<Counter> {
        let (content, front_len_bytes) = match item? {
            Item::Rest { content, .. } => (content, 0),
            // One byte indicates whether there are values.
            Item::PointedRest { arrays: 1, content, .. } => (content, 1),
            _ => return None,
        };
        let each_len_bytes = content.fixed_len_bytes()? as u64;
        let number = tree.counter_of(branch)?;
        let layout = layout::of_branch(&tree.branches[number], infos).ok()?;
        match layout.form {
            Form::Number(Number::Bool | Number::Float32 | Number::Float64) => None,
            Form::Number(kind) => {
                let (item, form) = (layout.item, layout.form);
                Some(Counter { branch: number, item, form, number: kind, front_len_bytes, each_len_bytes })
            }
            _ => None,
        }
    }

    /// Returns whether entries may differ in length.
    pub(super) fn vary(&self) -> bool {
        !matches!(self, Self::Stored)
    }
}

impl Counter {
    /// Returns the length of each entry, from `counts`, a column of the counting branch.
    pub(super) fn lengths(&self, counts: &Buffer, entries: u64) -> Result<Vec<u64>, UnlocatedError> {
        let damaged = |what: String| UnlocatedError::Damaged { address: 0, structure: "counts of a basket", what };
        let Buffer::Values(counts) = counts else { return Ok(Vec::new()) };
        let counts = counts.chunks_exact(self.number.len_bytes());
        if counts.len() as u64 != entries {
            return Err(damaged(format!("{} counts of {entries} entries", counts.len())));
        }
        let is_signed = matches!(self.number, Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64);
        let lengths = counts.map(|count| {
            let is_negative = is_signed && count.last().is_some_and(|byte| byte & 0x80 != 0);
            let mut padded = [0; 8];
            padded[..count.len()].copy_from_slice(count);
            let len_bytes = u64::from_le_bytes(padded).checked_mul(self.each_len_bytes).filter(|_| !is_negative)?;
            len_bytes.checked_add(self.front_len_bytes)
        });
        lengths.collect::<Option<_>>().ok_or_else(|| damaged("a count that no basket could hold".to_owned()))
    }
}

/// Branch with the lengths of pointer members of a split collection's objects.
#[derive(Debug, Clone)]
pub(super) struct LengthsBranch {
    /// Number of the counting branch.
    pub(super) branch: usize,
    /// Contents of the entries of the counting branch.
    pub(super) item: Item,
    pub(super) form: Form,
    pub(super) lengths: Lengths,
}

impl LengthsBranch {
    /// Finds the counts for a branch in member `id` of the same objects.
    pub(super) fn of_branch(tree: &Tree, branch: &Branch, id: i64, infos: &StreamerInfos) -> Option<Self> {
        let number = tree.sibling(branch, id)?;
        let sibling = &tree.branches[number];
        let layout = layout::of_branch(sibling, infos).ok()?;
        let lists = [Number::Int32, Number::Uint32].map(|number| Form::list(Form::Number(number)));
        let is_list = lists.contains(&layout.form);
        let lengths = Lengths::of_branch(tree, sibling, Some(&layout.item), infos);
        is_list.then_some(Self { branch: number, item: layout.item, form: layout.form, lengths })
    }
}

/// Reads entries; `counts` determines the number of values of each object. An error contains the index of the entry.
pub(super) fn read_entries<'b>(
    item: &Item,
    entries: impl Iterator<Item = Bytes<'b>>,
    counts: &Column,
    buffers: &mut Vec<Buffer>,
) -> Result<(), (usize, UnlocatedError)> {
    let [Buffer::Offsets(offsets), Buffer::Values(values)] = counts.buffers.as_slice() else { return Ok(()) };
    let Item::Rest { buffer, content } = item else { return Ok(()) };
    let mut ends = offsets.windows(2);
    for (number, mut entry) in entries.enumerate() {
        let pair = ends.next().ok_or_else(|| (number, entry.damaged("the branch of its counts has fewer entries")))?;
        let (first, last) = (pair[0] as usize * size_of::<i32>(), pair[1] as usize * size_of::<i32>());
        buffers.push(Buffer::Values(values[first..last].to_vec()));
        let read = walk::read_exactly(content, pair[1] - pair[0], &mut entry, buffers);
        buffers.pop();
        read.map_err(|fault| (number, fault))?;
        push_offset(&mut buffers[*buffer], pair[1] - pair[0]);
    }
    Ok(())
}
