//! Columns of tables that are left out, and the attributes of the table that list its columns.
//!
//! Readers look for every column of the list. Invariant: the order of the remaining columns is that of the file.

use crate::inputs::paths::Paths;
use crate::scan::ScannedEntry;
use crate::schema::attribute::{named, replaced, texts, with_texts};
use crate::schema::child_path;
use std::collections::HashSet;

/// Attributes that list the columns of a group, each with an attribute by which readers know the kind of group: those of
/// data frames of AnnData and of tables of HDMF.
const LISTS: [(&str, &str); 2] = [("column-order", "encoding-type"), ("colnames", "namespace")];

/// Removes the columns that are not among the objects of a file from the lists of its tables.
pub(super) fn shorten_lists(paths: &Paths, entries: &mut [ScannedEntry]) {
    let tables: Vec<(usize, &str)> =
        (0..).zip(&*entries).filter_map(|(at, entry)| Some((at, list_of(entry)?))).collect();
    if tables.is_empty() {
        return;
    }
    let known: HashSet<&[u8]> = paths.iter().collect();
    for (at, name) in tables {
        let entry = &mut entries[at];
        let Some(list) = named(&entry.attributes, name) else { continue };
        let Some(mut columns) = texts(list) else { continue };
        let count = columns.len();
        columns.retain(|column| known.contains(&*child_path(paths.get(at), column.as_bytes())));
        if columns.len() < count {
            entry.attributes = replaced(&entry.attributes, with_texts(list, &columns));
        }
    }
}

/// Returns the name of the attribute that lists the columns of a group.
fn list_of(entry: &ScannedEntry) -> Option<&'static str> {
    let has = |name: &str| named(&entry.attributes, name).is_some();
    LISTS.into_iter().find(|(list, kind)| has(list) && has(kind)).map(|(list, _)| list)
}
