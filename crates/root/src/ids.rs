//! Run, subrun and event of each entry, read from branches or fields with the names that experiments and the framework
//! use.
//!
//! Values are not guessed: only branches of whole numbers with these names count. Invariant: a tree has ids for all
//! entries or for none.

use super::item::Item;
use super::layout;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use raddle_columns::block::{Buffer, Column};
use raddle_columns::error::UnlocatedError;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Field, Form, Number};

/// Name of the framework's branch or record of three numbers.
pub(super) const WHOLE: &str = "EventID";

/// Names of the branches and fields of runs.
const RUNS: [&str; 3] = ["run", "runNumber", "Run"];
/// Names of the branches and fields of subruns.
const LUMIS: [&str; 6] = ["luminosityBlock", "lumi", "lumiBlock", "subrun", "subRun", "SubRun"];
/// Names of the branches and fields of events.
const EVENTS: [&str; 5] = ["event", "evt", "eventNumber", "Event", "Evt"];

/// Names of the branches and fields of run, subrun and event. Where several exist, the first is used.
pub(super) const NAMES: [&[&str]; 3] = [&RUNS, &LUMIS, &EVENTS];

/// Names of run, subrun and event in messages.
const TITLES: [&str; 3] = ["run", "subrun", "event"];

/// Maximum run, subrun and event.
const MAX: [u64; 3] = [u32::MAX as u64, u32::MAX as u64, u64::MAX];

/// Location of run, subrun or event in columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdColumn {
    /// Number of the column.
    pub(super) column: usize,
    /// Number of the buffer in the column.
    pub(super) buffer: usize,
    pub(super) number: Number,
}

/// Number that does not fit an id.
#[derive(Debug)]
pub(super) struct IdFault {
    /// Number of the column.
    pub(super) column: usize,
    /// Number of the entry in the columns.
    pub(super) entry: u64,
    pub(super) fault: UnlocatedError,
}

impl IdColumn {
    /// Returns the numbers of all entries.
    pub(super) fn values(self, columns: &[Column]) -> impl Iterator<Item = i128> {
        let bytes = match columns.get(self.column).and_then(|column| column.buffers.get(self.buffer)) {
            Some(Buffer::Values(bytes)) => bytes.as_slice(),
            _ => &[],
        };
        bytes.chunks_exact(self.number.len_bytes()).map(move |stored| whole(stored, self.number))
    }
}

/// Assembles the ids of `entries` entries from columns.
///
/// # Errors
/// If a number does not fit an id. The error locates the first one.
pub(super) fn collect(places: &[IdColumn; 3], columns: &[Column], entries: u64) -> Result<Vec<EventId>, IdFault> {
    let mut ids = vec![EventId::default(); entries as usize];
    for (part, place) in places.iter().enumerate() {
        for ((id, value), entry) in ids.iter_mut().zip(place.values(columns)).zip(0..) {
            let fitting = u64::try_from(value).ok().filter(|value| *value <= MAX[part]);
            let Some(fitting) = fitting else {
                let fault = UnlocatedError::IdRange { what: TITLES[part], value, max: MAX[part] };
                return Err(IdFault { column: place.column, entry, fault });
            };
            match part {
                0 => id.run = fitting as u32,
                1 => id.lumi = fitting as u32,
                _ => id.event = fitting,
            }
        }
    }
    Ok(ids)
}

/// Finds run, subrun and event among the fields of a record, which is number `column` of the columns.
pub(super) fn of_record(fields: &[Field], column: usize) -> Option<[IdColumn; 3]> {
    // Every preceding field has exactly one buffer, provided that all are numbers.
    if !fields.iter().all(|field| matches!(field.form, Form::Number(_))) {
        return None;
    }
    let place = |names: &[&str]| {
        let buffer = fields.iter().position(|field| names.contains(&field.name.as_str()))?;
        Some(IdColumn { column, buffer, number: whole_number(&fields[buffer].form)? })
    };
    let [runs, lumis, events] = NAMES;
    Some([place(runs)?, place(lumis)?, place(events)?])
}

/// Branches that hold the ids of a tree.
#[derive(Debug)]
pub(super) struct IdBranches {
    /// For each branch: its number, the contents of its entries, and the form of its column.
    parts: Vec<(usize, Item, Form)>,
    /// Locations of run, subrun and event in the columns of the branches.
    places: [IdColumn; 3],
}

impl IdBranches {
    /// Finds the branches of ids in a tree.
    pub fn find(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        Self::of_one(tree, infos).or_else(|| Self::of_three(tree, infos))
    }

    fn of_one(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        let number = tree.branches.iter().position(|branch| is_readable(branch, tree) && branch.path == WHOLE)?;
        let layout = layout::of_branch(&tree.branches[number], infos).ok()?;
        let Form::Record(fields) = &layout.form else { return None };
        let places = of_record(fields, 0)?;
        Some(Self { parts: vec![(number, layout.item, layout.form)], places })
    }

    fn of_three(tree: &Tree, infos: &StreamerInfos) -> Option<Self> {
        let mut parts = Vec::new();
        let mut place = |names: &[&str]| {
            let named =
                |name: &&str| tree.branches.iter().position(|branch| is_readable(branch, tree) && branch.path == *name);
            let branch = names.iter().find_map(named)?;
            let layout = layout::of_branch(&tree.branches[branch], infos).ok()?;
            let number = whole_number(&layout.form)?;
            parts.push((branch, layout.item, layout.form));
            Some(IdColumn { column: parts.len() - 1, buffer: 0, number })
        };
        let [runs, lumis, events] = NAMES;
        let places = [place(runs)?, place(lumis)?, place(events)?];
        Some(Self { parts, places })
    }

    /// Returns the branch that holds all three numbers; `None` if there is none.
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

    /// Returns the branch of a column.
    pub fn branch_of(&self, column: usize) -> Option<usize> {
        self.parts.get(column).map(|(branch, ..)| *branch)
    }

    /// Creates empty columns for the branches.
    pub fn columns(&self) -> Vec<Column> {
        self.parts.iter().map(|(_, _, form)| Column::new(form)).collect()
    }

    /// Assembles the ids of `entries` entries from columns.
    ///
    /// # Errors
    /// If a number does not fit an id. The error locates the first one.
    pub fn collect(&self, columns: &[Column], entries: u64) -> Result<Vec<EventId>, IdFault> {
        collect(&self.places, columns, entries)
    }
}

fn is_readable(branch: &Branch, tree: &Tree) -> bool {
    branch.len_entries == tree.len_entries && !branch.baskets.is_empty()
}

/// Returns the number type of a form of whole numbers with at least 32 bits.
pub(super) fn whole_number(form: &Form) -> Option<Number> {
    match form {
        Form::Number(number @ (Number::Int32 | Number::Int64 | Number::Uint32 | Number::Uint64)) => Some(*number),
        _ => None,
    }
}

/// Returns the value of a little-endian whole number.
fn whole(stored: &[u8], number: Number) -> i128 {
    let mut word = [0; 8];
    word[..stored.len()].copy_from_slice(stored);
    let word = u64::from_le_bytes(word);
    match number {
        Number::Int32 => i128::from(word as i32),
        Number::Int64 => i128::from(word as i64),
        _ => i128::from(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_an_id_are_refused() {
        let place = |number| [0, 1, 2].map(|column| IdColumn { column, buffer: 0, number });
        let column = |values: &[i64]| Column {
            buffers: vec![Buffer::Values(values.iter().flat_map(|value| value.to_le_bytes()).collect())],
        };
        let collected = |run: i64, lumi: i64, event: i64, number| {
            let columns = [[7, run], [8, lumi], [9, event]].map(|values| column(&values));
            collect(&place(number), &columns, 2).map(|ids| ids[1])
        };
        let largest = i64::from(u32::MAX);
        let id = EventId { run: u32::MAX, lumi: 0, event: i64::MAX as u64 };
        assert_eq!(collected(largest, 0, i64::MAX, Number::Int64).unwrap(), id);
        assert_eq!(collected(1, 1, -1, Number::Uint64).unwrap().event, u64::MAX);
        for (run, lumi, event, column) in [(largest + 1, 0, 0, 0), (0, -1, 0, 1), (0, 0, -1, 2)] {
            let fault = collected(run, lumi, event, Number::Int64).unwrap_err();
            assert_eq!((fault.column, fault.entry), (column, 1));
        }
        assert_eq!(whole(&(-5_i32).to_le_bytes(), Number::Int32), -5);
        assert_eq!(whole(&u32::MAX.to_le_bytes(), Number::Uint32), i128::from(u32::MAX));
    }
}
