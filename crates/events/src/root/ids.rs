//! Run, subrun and event of each entry, from branches that are named as experiments and the framework name them.
//!
//! Not a guess at values: only branches of these names and of whole numbers count. Invariant: a tree has ids for all entries
//! or for none.

use super::item::Item;
use super::layout;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use crate::block::{Buffer, Column};
use crate::schema::{Form, Number};
use crate::source::EventId;

/// Where the ids of a tree are.
#[derive(Debug)]
pub(super) struct IdBranches {
    /// Number of the branch, what its entries are, and the form of its column.
    parts: Vec<(usize, Item, Form)>,
    /// Run, subrun and event: of which part, and which buffer of that.
    places: [(usize, usize, Number); 3],
}

/// The framework's branch of three leaves.
const WHOLE: &str = "EventID";

/// Names of the three.
const RUNS: [&str; 3] = ["run", "runNumber", "Run"];
const LUMIS: [&str; 6] = ["luminosityBlock", "lumi", "lumiBlock", "subrun", "subRun", "SubRun"];
const EVENTS: [&str; 5] = ["event", "evt", "eventNumber", "Event", "Evt"];

impl IdBranches {
    /// Looks for them.
    pub fn find(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        Self::of_one(tree, infos).or_else(|| Self::of_three(tree, infos))
    }

    fn of_one(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        let number = tree.branches.iter().position(|branch| is_readable(branch, tree) && branch.path == WHOLE)?;
        let layout = layout::of_branch(&tree.branches[number], infos).ok()?;
        let Form::Record(fields) = &layout.form else { return None };
        let place = |names: &[&str]| {
            let field = fields.iter().position(|field| names.contains(&field.name.as_str()))?;
            // All fields before it have one buffer, if they are numbers.
            let is_flat = fields.iter().all(|field| matches!(field.form, Form::Number(_)));
            Some((0, field, whole_number(&fields[field].form).filter(|_| is_flat)?))
        };
        let places = [place(&RUNS)?, place(&LUMIS)?, place(&EVENTS)?];
        Some(Self { parts: vec![(number, layout.item, layout.form)], places })
    }

    fn of_three(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        let mut parts = Vec::new();
        let mut place = |names: &[&str]| {
            let named =
                |name: &&str| tree.branches.iter().position(|branch| is_readable(branch, tree) && branch.path == *name);
            let number = names.iter().find_map(named)?;
            let layout = layout::of_branch(&tree.branches[number], infos).ok()?;
            let kind = whole_number(&layout.form)?;
            parts.push((number, layout.item, layout.form));
            Some((parts.len() - 1, 0, kind))
        };
        let places = [place(&RUNS)?, place(&LUMIS)?, place(&EVENTS)?];
        Some(Self { parts, places })
    }

    /// The branch that has all three, if one has.
    pub fn whole_branch(&self) -> Option<usize> {
        match self.parts.as_slice() {
            [(branch, ..)] => Some(*branch),
            _ => None,
        }
    }

    /// The branches to be read.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.parts.iter().map(|(branch, item, _)| (*branch, item))
    }

    /// Empty columns of them.
    pub fn columns(&self) -> Vec<Column> {
        self.parts.iter().map(|(_, _, form)| Column::new(form)).collect()
    }

    /// The ids in columns of so many entries.
    pub fn collect(&self, columns: &[Column], entries: u64) -> Vec<EventId> {
        let value = |which: usize, entry: usize| {
            let (part, buffer, number) = self.places[which];
            match columns.get(part).and_then(|column| column.buffers.get(buffer)) {
                Some(Buffer::Values(bytes)) => whole(bytes, number, entry),
                _ => 0,
            }
        };
        let id = |entry| EventId { run: value(0, entry) as u32, lumi: value(1, entry) as u32, event: value(2, entry) };
        (0..entries as usize).map(id).collect()
    }
}

fn is_readable(branch: &Branch, tree: &Tree) -> bool {
    branch.len_entries == tree.len_entries && !branch.baskets.is_empty()
}

/// The type of whole numbers of at least 32 bits.
fn whole_number(form: &Form) -> Option<Number> {
    match form {
        Form::Number(number @ (Number::Int32 | Number::Int64 | Number::Uint32 | Number::Uint64)) => Some(*number),
        _ => None,
    }
}

/// Number `entry` of some little-endian ones.
fn whole(bytes: &[u8], number: Number, entry: usize) -> u64 {
    let len = number.len_bytes();
    let mut value = [0; 8];
    if let Some(stored) = bytes.get(entry * len..(entry + 1) * len) {
        value[..len].copy_from_slice(stored);
    }
    u64::from_le_bytes(value)
}
