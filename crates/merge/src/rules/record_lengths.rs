//! Numbers of records of the inputs.

use super::Rule;
use crate::schema::{ABSENT, EntryIndex, Role, Schema};
use std::collections::HashMap;

/// Returns the number of records of each input, indexed by the path of their dimension: the length of the longest
/// dataset along it.
pub(super) fn record_lengths<'r>(
    schema: &Schema,
    rules: impl Iterator<Item = (EntryIndex, &'r Rule)>,
) -> HashMap<Vec<u8>, Vec<u64>> {
    let mut lengths: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
    for (entry, rule) in rules {
        let (Some(record), Role::Column(column)) = (&rule.record, &schema.entries[entry as usize].role) else {
            continue;
        };
        let facts = &schema.columns[*column as usize].facts;
        let known = lengths.entry(record.clone()).or_insert_with(|| vec![0; facts.len()]);
        // An input without the dataset does not affect the number of records.
        let rows = facts.iter().map(|fact| if fact.template == ABSENT { 0 } else { fact.rows });
        known.iter_mut().zip(rows).for_each(|(known, rows)| *known = (*known).max(rows));
    }
    lengths
}
