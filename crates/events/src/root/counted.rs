//! Branches whose baskets do not say how long their entries are: another branch has the counts.
//!
//! ROOT leaves offsets out where a leaf counts the values of another (`TIOFeatures`), as it does in NanoAOD. Invariant: lengths are
//! those of whole values.

use super::item::Item;
use super::layout;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use crate::block::Buffer;
use crate::error::Fault;
use crate::schema::{Form, Number};

/// How the lengths of a branch's entries are known.
#[derive(Debug, Clone, Default)]
pub(super) enum Lengths {
    /// They are stored with it, or are all the same.
    #[default]
    Stored,
    /// By another branch, where they are not stored.
    Counted(Counter),
    /// They differ, and if they are not stored they are not known.
    Unknown,
}

/// What the counts of a branch are in.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    /// Number of that branch.
    pub(super) branch: usize,
    /// What its entries are.
    pub(super) item: Item,
    pub(super) form: Form,
    number: Number,
    /// Length of what is before the values.
    front_len_bytes: u64,
    /// Length of each counted value.
    each_len_bytes: u64,
}

impl Lengths {
    /// How those of a branch, whose entries are `item`, are known.
    pub(super) fn of_branch(tree: &Tree, branch: &Branch, item: Option<&Item>, infos: &StreamerInfos) -> Self {
        if !matches!(branch.leaves.as_slice(), [leaf] if leaf.is_counted) {
            return Self::Stored;
        }
        Self::counted(tree, branch, item, infos).map_or(Self::Unknown, Self::Counted)
    }

    fn counted(tree: &Tree, branch: &Branch, item: Option<&Item>, infos: &StreamerInfos) -> Option<Counter> {
        let (content, front_len_bytes) = match item? {
            Item::Rest { content, .. } => (content, 0),
            // The byte that says whether there are values.
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

    /// Whether entries may differ in length.
    pub(super) fn vary(&self) -> bool {
        !matches!(self, Self::Stored)
    }
}

impl Counter {
    /// The lengths of as many entries as `counts`, a column of the branch, has.
    pub(super) fn lengths(&self, counts: &Buffer, entries: u64) -> Result<Vec<u64>, Fault> {
        let damaged = |what: String| Fault::Damaged { address: 0, structure: "counts of a basket", what };
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
