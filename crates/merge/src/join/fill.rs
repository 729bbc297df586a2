//! Rows of fill value for columns that some inputs lack, so that the columns of a table stay aligned.
//!
//! A group may hold more than one table, and datasets that are none: bins of histograms, say. What belongs together, lengths
//! tell: datasets of a group are of one table if they have equally many rows in every input that has both, and some in one.
//! Invariant: an absent column gets the rows that its table has in that input; where its table has several lengths there, that is
//! told and not guessed. Datasets that are kept once are no columns.

use super::{JoinedEntry, parent_path};
use crate::schema::{ABSENT, ColumnFact};
use std::collections::{BTreeSet, HashMap};

/// A column of whose rows in an input it cannot be said how many they are.
pub(super) struct Unclear {
    pub path: Vec<u8>,
    pub input: u32,
    /// What the datasets that it could belong to have there.
    pub lengths: BTreeSet<u64>,
}

/// Rows in each input, `None` where it is absent.
type Lengths = Vec<Option<u64>>;

/// Gives absent columns as many rows of fill value as their table has in the same input; what is unclear gets none.
pub(super) fn fill_absent_rows(entries: &mut [JoinedEntry], inputs: u32) -> Vec<Unclear> {
    let mut groups: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (index, joined) in entries.iter().enumerate() {
        // Of records that a convention counts, it says how many there are.
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

/// Fills the columns of one group.
fn fill_group(entries: &mut [JoinedEntry], members: &[usize], unclear: &mut Vec<Unclear>) {
    // Most datasets of a group have the lengths of another one.
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
                unclear.push(Unclear { path: path.clone(), input: input as u32, lengths });
                return *fact;
            }
            lengths.first().map_or(*fact, |&rows| ColumnFact::absent(rows))
        });
        column.facts = filled.collect();
    }
}

/// Lengths by table: those that are tied to each other by at least one pair that is of one table.
fn tables(known: &[Lengths]) -> Vec<Vec<usize>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    for number in 0..known.len() {
        let is_tied = |other: &usize| tie(&known[number], &known[*other]) == Tie::Same;
        let (tied, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut tables).into_iter().partition(|table| table.iter().any(is_tied));
        tables = others;
        tables.push(tied.into_iter().flatten().chain([number]).collect());
    }
    tables
}

/// The lengths in `input` of those that are of `table`; if it is not there at all, of what could be of it.
fn lengths_in(input: usize, table: &[usize], known: &[Lengths]) -> BTreeSet<u64> {
    let own: BTreeSet<u64> = table.iter().filter_map(|&number| known[number][input]).collect();
    if !own.is_empty() {
        return own;
    }
    let fits = |other: &Lengths| table.iter().all(|&number| tie(&known[number], other) != Tie::Other);
    let near: BTreeSet<u64> = known.iter().filter(|other| fits(other)).filter_map(|other| other[input]).collect();
    // Nothing says to which of several it belongs: then to none.
    if near.len() == 1 { near } else { BTreeSet::new() }
}

/// How two datasets of a group stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// They have different lengths in an input.
    Other,
    /// Nothing says.
    Open,
    /// They have equal lengths, and rows.
    Same,
}

fn tie(left: &Lengths, right: &Lengths) -> Tie {
    let mut tie = Tie::Open;
    for (left, right) in left.iter().zip(right) {
        match (left, right) {
            (Some(left), Some(right)) if left != right => return Tie::Other,
            (Some(1..), Some(_)) => tie = Tie::Same,
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

    /// -1 where a dataset is absent; asked is always for the first.
    #[test]
    fn a_column_has_the_rows_of_its_table() {
        // Beside another column, and bins of another length.
        assert_eq!(found(1, 0, &known(&[&[3, -1, 4], &[3, 2, 4], &[7, 7, 7]])), [2]);
        // Bins that are as long by chance in one input.
        assert_eq!(found(1, 0, &known(&[&[7, -1, 4], &[7, 2, 4], &[7, 7, 7]])), [2]);
        // Nothing but bins is there.
        assert_eq!(found(1, 0, &known(&[&[3, -1, 4], &[3, -1, 4], &[7, 7, 7]])), Vec::<u64>::new());
        // The table has other columns in each input.
        assert_eq!(found(2, 0, &known(&[&[3, 2, -1], &[3, -1, 5], &[-1, 2, 5]])), [5]);
        assert_eq!(found(0, 0, &known(&[&[-1, 2], &[3, -1]])), [3]);
        // Without any row, what there is in the group.
        assert_eq!(found(1, 0, &known(&[&[0, -1], &[0, 2]])), [2]);
        assert_eq!(found(1, 0, &known(&[&[0, -1], &[0, 2], &[0, 5]])), Vec::<u64>::new());
    }

    #[test]
    fn what_could_be_of_two_tables_is_unclear() {
        assert_eq!(found(1, 0, &known(&[&[7, -1], &[7, 2], &[7, 5]])), [2, 5]);
        // The third input tells.
        assert_eq!(found(1, 0, &known(&[&[7, -1, 1], &[7, 2, 1], &[7, 5, 9]])), [2]);
    }
}
