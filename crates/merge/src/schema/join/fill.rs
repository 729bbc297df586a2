//! Rows of fill values for columns that some inputs lack, so that the columns of a table stay aligned.
//!
//! A group may hold several tables, and datasets that belong to none, such as bins of histograms. Tables are recognised
//! by length: datasets of a group belong to one table if they have equal numbers of rows in every input that has both,
//! and have rows in at least one such input. Invariant: an absent column gets the number of rows that its table has in
//! that input; if the table has several lengths there, this is reported rather than guessed. Datasets that are stored
//! once are not columns.

use super::joined_entry::JoinedEntry;
use crate::schema::parent_path;
use crate::schema::{ABSENT, InputExtent};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A column whose number of rows in an input cannot be determined.
pub(super) struct AmbiguousFill {
    pub path: Vec<u8>,
    pub input: u32,
    /// Numbers of rows in that input of the datasets that could belong to the same table.
    pub lengths: BTreeSet<u64>,
}

/// Numbers of rows in the inputs that have a dataset, in the order of the inputs.
type Lengths = Vec<(u32, u64)>;

/// Gives absent columns the number of rows that their table has in the same input. Returns the columns for which this
/// number is unclear, which get no rows.
pub(super) fn fill_absent_rows(entries: &mut [JoinedEntry], inputs: u32) -> Vec<AmbiguousFill> {
    let mut groups: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (index, joined) in entries.iter().enumerate() {
        // The number of records is known from the convention.
        let has_record = joined.declared.as_ref().is_some_and(|declared| declared.rule.record.is_some());
        if joined.column.is_some() && joined.kept.is_none() && !has_record && !joined.is_widest() {
            groups.entry(parent_path(&joined.entry.path).to_vec()).or_default().push(index);
        }
    }
    let mut unclear = Vec::new();
    for members in groups.into_values() {
        if members.iter().any(|&index| entries[index].holders() < inputs) {
            fill_group(entries, &members, inputs, &mut unclear);
        }
    }
    unclear.sort_by(|a, b| (&a.path, a.input).cmp(&(&b.path, b.input)));
    unclear
}

/// Fills the absent columns of one group.
fn fill_group(entries: &mut [JoinedEntry], members: &[usize], inputs: u32, unclear: &mut Vec<AmbiguousFill>) {
    // Most datasets of a group have the same lengths as another one.
    let mut of_lengths: BTreeMap<Lengths, Vec<usize>> = BTreeMap::new();
    for &index in members {
        of_lengths.entry(entries[index].lengths()).or_default().push(index);
    }
    let (known, datasets): (Vec<Lengths>, Vec<Vec<usize>>) = of_lengths.into_iter().unzip();
    for table in tables(&known) {
        let lengths = lengths_of(&table, &known, inputs);
        for &index in table.iter().flat_map(|&number| &datasets[number]) {
            fill_dataset(&mut entries[index], &lengths, unclear);
        }
    }
}

/// Fills one dataset, whose table has these numbers of rows in each input.
fn fill_dataset(joined: &mut JoinedEntry, lengths: &HashMap<u32, BTreeSet<u64>>, unclear: &mut Vec<AmbiguousFill>) {
    let path = &joined.entry.path;
    let Some(column) = joined.column.as_mut().filter(|column| column.facts.iter().any(is_absent)) else { return };
    let filled = (0..).zip(column.facts.iter()).map(|(input, fact)| {
        let lengths = lengths.get(&input).filter(|_| is_absent(fact));
        let Some(&rows) = lengths.and_then(BTreeSet::first) else { return *fact };
        match lengths.filter(|lengths| lengths.len() > 1) {
            None => InputExtent::absent(rows),
            Some(several) => {
                unclear.push(AmbiguousFill { path: path.clone(), input, lengths: several.clone() });
                *fact
            }
        }
    });
    column.facts = filled.collect();
}

fn is_absent(fact: &InputExtent) -> bool {
    fact.template == ABSENT
}

/// Groups datasets, given by their lengths, into tables. Each dataset has the same lengths as another one of its table
/// in every input that has both, and both have rows in at least one such input.
fn tables(known: &[Lengths]) -> Vec<Vec<usize>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    for number in 0..known.len() {
        let is_tied = |other: &usize| tie(&known[number], &known[*other]) == LengthRelation::Same;
        let (tied, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut tables).into_iter().partition(|table| table.iter().any(is_tied));
        tables = others;
        tables.push(tied.into_iter().flatten().chain([number]).collect());
    }
    tables
}

/// Returns the lengths of `table` in each of the `inputs` or, where the table is absent, the length of the datasets that
/// could belong to it. Inputs for which nothing determines a length are left out.
fn lengths_of(table: &[usize], known: &[Lengths], inputs: u32) -> HashMap<u32, BTreeSet<u64>> {
    let mut lengths = by_input(table.iter().map(|&number| &known[number]));
    if lengths.len() < inputs as usize {
        let fits = |other: &&Lengths| table.iter().all(|&number| tie(&known[number], other) != LengthRelation::Other);
        for (input, near) in by_input(known.iter().filter(fits)) {
            // With several candidates, nothing determines which one it belongs to, so none is used.
            if near.len() == 1 {
                lengths.entry(input).or_insert(near);
            }
        }
    }
    lengths
}

fn by_input<'a>(all: impl Iterator<Item = &'a Lengths>) -> HashMap<u32, BTreeSet<u64>> {
    let mut lengths: HashMap<u32, BTreeSet<u64>> = HashMap::new();
    for &(input, rows) in all.flatten() {
        lengths.entry(input).or_default().insert(rows);
    }
    lengths
}

/// Relation of two datasets of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LengthRelation {
    /// The datasets have different lengths in some input.
    Other,
    /// The lengths do not show whether the datasets belong to one table.
    Open,
    /// The datasets have equal lengths in all inputs, and rows in at least one.
    Same,
}

fn tie(left: &Lengths, right: &Lengths) -> LengthRelation {
    let mut tie = LengthRelation::Open;
    let mut right = right.iter().peekable();
    for &(input, rows) in left {
        while right.next_if(|(other, _)| *other < input).is_some() {}
        match right.next_if(|(other, _)| *other == input) {
            Some(&(_, other_rows)) if other_rows != rows => return LengthRelation::Other,
            Some(_) if rows > 0 => tie = LengthRelation::Same,
            _ => {}
        }
    }
    tie
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lengths: &[&[i64]]) -> Vec<Lengths> {
        let present = |(input, &rows): (u32, &i64)| Some((input, u64::try_from(rows).ok()?));
        lengths.iter().map(|one| (0..).zip(*one).filter_map(present).collect()).collect()
    }

    fn found(input: u32, number: usize, known: &[Lengths]) -> Vec<u64> {
        let tables = tables(known);
        let table = tables.iter().find(|table| table.contains(&number)).unwrap();
        let mut lengths = lengths_of(table, known, u32::MAX);
        lengths.remove(&input).unwrap_or_default().into_iter().collect()
    }

    /// In these cases -1 stands for an absent dataset; the first dataset is tested.
    #[test]
    fn a_column_has_the_rows_of_its_table() {
        // Next to another column, and bins of a different length.
        assert_eq!(found(1, 0, &known(&[&[3, -1, 4], &[3, 2, 4], &[7, 7, 7]])), [2]);
        // Bins that happen to have the same length in one input.
        assert_eq!(found(1, 0, &known(&[&[7, -1, 4], &[7, 2, 4], &[7, 7, 7]])), [2]);
        // Only the bins are present.
        assert_eq!(found(1, 0, &known(&[&[3, -1, 4], &[3, -1, 4], &[7, 7, 7]])), Vec::<u64>::new());
        // The table has different columns in each input.
        assert_eq!(found(2, 0, &known(&[&[3, 2, -1], &[3, -1, 5], &[-1, 2, 5]])), [5]);
        assert_eq!(found(0, 0, &known(&[&[-1, 2], &[3, -1]])), [3]);
        // Without any rows, the lengths in the group are used.
        assert_eq!(found(1, 0, &known(&[&[0, -1], &[0, 2]])), [2]);
        assert_eq!(found(1, 0, &known(&[&[0, -1], &[0, 2], &[0, 5]])), Vec::<u64>::new());
    }

    #[test]
    fn what_could_be_of_two_tables_is_unclear() {
        assert_eq!(found(1, 0, &known(&[&[7, -1], &[7, 2], &[7, 5]])), [2, 5]);
        // The third input decides.
        assert_eq!(found(1, 0, &known(&[&[7, -1, 1], &[7, 2, 1], &[7, 5, 9]])), [2]);
    }
    /// Comparing all datasets again for each dataset and input would take minutes.
    #[test]
    fn each_input_may_have_its_own_datasets() {
        let known: Vec<Lengths> = (0..600).map(|input| vec![(input, 5)]).collect();
        let tables = tables(&known);
        assert_eq!(tables.len(), 600);
        for table in tables {
            let lengths = lengths_of(&table, &known, 600);
            assert!(lengths.len() == 600 && lengths.values().all(|lengths| lengths.iter().eq([&5])));
        }
    }
}
