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
use std::collections::{BTreeSet, HashMap};

/// A column whose number of rows in an input cannot be determined.
pub(super) struct AmbiguousFill {
    pub path: Vec<u8>,
    pub input: u32,
    /// Numbers of rows in that input of the datasets that could belong to the same table.
    pub lengths: BTreeSet<u64>,
}

/// Number of rows in each input, `None` if the dataset is absent.
type Lengths = Vec<Option<u64>>;

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
            fill_group(entries, &members, &mut unclear);
        }
    }
    unclear.sort_by(|a, b| (&a.path, a.input).cmp(&(&b.path, b.input)));
    unclear
}

/// Fills the absent columns of one group.
fn fill_group(entries: &mut [JoinedEntry], members: &[usize], unclear: &mut Vec<AmbiguousFill>) {
    // Most datasets of a group have the same lengths as another one.
    let mut numbers: HashMap<Lengths, usize> = HashMap::new();
    let mut of_members = Vec::with_capacity(members.len());
    for &index in members {
        let next = numbers.len();
        of_members.push(*numbers.entry(entries[index].lengths()).or_insert(next));
    }
    let mut known = vec![Lengths::new(); numbers.len()];
    numbers.into_iter().for_each(|(lengths, number)| known[number] = lengths);
    let tables = tables(&known);
    for (&index, number) in members.iter().zip(of_members) {
        let joined = &mut entries[index];
        if !known[number].contains(&None) {
            continue;
        }
        let table = &tables[tables.iter().position(|table| table.contains(&number)).unwrap_or(number)];
        let path = &joined.entry.path;
        let Some(column) = &mut joined.column else { continue };
        let filled = column.facts.iter().enumerate().map(|(input, fact)| {
            if fact.template != ABSENT {
                return *fact;
            }
            let lengths = lengths_in(input, table, &known);
            if lengths.len() > 1 {
                unclear.push(AmbiguousFill { path: path.clone(), input: input as u32, lengths });
                return *fact;
            }
            lengths.first().map_or(*fact, |&rows| InputExtent::absent(rows))
        });
        column.facts = filled.collect();
    }
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

/// Returns the lengths of `table` in `input` or, if the table is absent there, the lengths of the datasets that could
/// belong to it.
fn lengths_in(input: usize, table: &[usize], known: &[Lengths]) -> BTreeSet<u64> {
    let lengths: BTreeSet<u64> = table.iter().filter_map(|&number| known[number][input]).collect();
    if !lengths.is_empty() {
        return lengths;
    }
    let fits = |other: &Lengths| table.iter().all(|&number| tie(&known[number], other) != LengthRelation::Other);
    let near: BTreeSet<u64> = known.iter().filter(|other| fits(other)).filter_map(|other| other[input]).collect();
    // With several candidates, nothing determines which one it belongs to, so none is used.
    if near.len() == 1 { near } else { BTreeSet::new() }
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
    for (left, right) in left.iter().zip(right) {
        match (left, right) {
            (Some(left), Some(right)) if left != right => return LengthRelation::Other,
            (Some(1..), Some(_)) => tie = LengthRelation::Same,
            _ => {}
        }
    }
    tie
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lengths: &[&[i64]]) -> Vec<Lengths> {
        lengths.iter().map(|one| one.iter().map(|&rows| u64::try_from(rows).ok()).collect()).collect()
    }

    fn found(input: usize, number: usize, known: &[Lengths]) -> Vec<u64> {
        let tables = tables(known);
        let table = tables.iter().find(|table| table.contains(&number)).unwrap();
        lengths_in(input, table, known).into_iter().collect()
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
}
