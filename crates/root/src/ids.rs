//! Run, subrun and event of each entry, read from branches with the names that experiments and the framework use.
//!
//! Values are not guessed: only branches of whole numbers with these names count. Invariant: a tree has ids for all
//! entries or for none.

use super::item::Item;
use super::layout;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use raddle_columns::block::{Buffer, Column};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Number};

/// Branches that hold the ids of a tree.
#[derive(Debug)]
pub(super) struct IdBranches {
    /// For each branch: its number, the contents of its entries, and the form of its column.
    parts: Vec<(usize, Item, Form)>,
    /// For run, subrun and event: number of the part, number of the buffer, and number type.
    places: [(usize, usize, Number); 3],
}

/// Name of the framework's branch of three leaves.
const WHOLE: &str = "EventID";

/// Names of the branches of run, subrun and event.
const RUNS: [&str; 3] = ["run", "runNumber", "Run"];
const LUMIS: [&str; 6] = ["luminosityBlock", "lumi", "lumiBlock", "subrun", "subRun", "SubRun"];
const EVENTS: [&str; 5] = ["event", "evt", "eventNumber", "Event", "Evt"];

impl IdBranches {
    /// Finds the branches of ids in a tree.
    pub fn find(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        Self::of_one(tree, infos).or_else(|| Self::of_three(tree, infos))
    }

    fn of_one(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        let number = tree.branches.iter().position(|branch| is_readable(branch, tree) && branch.path == WHOLE)?;
        let layout = layout::of_branch(&tree.branches[number], infos).ok()?;
        let Form::Record(fields) = &layout.form else { return None };
        let place = |names: &[&str]| {
            let field = fields.iter().position(|field| names.contains(&field.name.as_str()))?;
            // Every preceding field has exactly one buffer, provided that all are numbers.
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

    /// Returns the branch that holds all three numbers, if there is one.
    pub fn whole_branch(&self) -> Option<usize> {
        match self.parts.as_slice() {
            [(branch, ..)] => Some(*branch),
            _ => None,
        }
    }

    /// Returns the branches to be read.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.parts.iter().map(|(branch, item, _)| (*branch, item))
    }

    /// Creates empty columns for the branches.
    pub fn columns(&self) -> Vec<Column> {
        self.parts.iter().map(|(_, _, form)| Column::new(form)).collect()
    }

    /// Assembles the ids of `entries` entries from columns.
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

/// Returns the number type of a form of whole numbers with at least 32 bits.
fn whole_number(form: &Form) -> Option<Number> {
    match form {
        Form::Number(number @ (Number::Int32 | Number::Int64 | Number::Uint32 | Number::Uint64)) => Some(*number),
        _ => None,
    }
}

/// Returns number `entry` of an array of little-endian numbers.
fn whole(bytes: &[u8], number: Number, entry: usize) -> u64 {
    let len = number.len_bytes();
    let mut value = [0; 8];
    if let Some(stored) = bytes.get(entry * len..(entry + 1) * len) {
        value[..len].copy_from_slice(stored);
    }
    u64::from_le_bytes(value)
}
