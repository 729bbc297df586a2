//! Members of groups that are left out, and the attributes of the group that name them.
//!
//! Readers look for every member that is named. Invariant: the remaining members keep their order in the file.

use crate::conventions::Refusal;
use crate::inputs::paths::Paths;
use crate::scan::ScannedEntry;
use crate::schema::attribute::{named, replaced, strings, text, with_strings};
use crate::schema::{child_path, display_path};
use std::collections::HashSet;

/// Attributes that list members of a group, each with an attribute by which readers know the kind of group: columns of
/// data frames of AnnData and of tables of HDMF, and further signals of NeXus.
const LISTS: [(&str, &str); 3] =
    [("column-order", "encoding-type"), ("colnames", "namespace"), ("auxiliary_signals", "NX_class")];

/// Returns the reason to refuse a file if the signal of a group of NeXus is not among its objects.
pub(super) fn lacks_signal(paths: &Paths, entries: &[ScannedEntry]) -> Option<Refusal> {
    let signal_of =
        |entry: &ScannedEntry| named(&entry.attributes, "NX_class").and_then(|_| text(&entry.attributes, "signal"));
    let signals: Vec<(usize, String)> =
        (0..).zip(entries).filter_map(|(at, entry)| Some((at, signal_of(entry)?))).collect();
    if signals.is_empty() {
        return None;
    }
    let known: HashSet<&[u8]> = paths.iter().collect();
    let (at, signal) =
        signals.into_iter().find(|(at, signal)| !known.contains(&*child_path(paths.get(*at), signal.as_bytes())))?;
    let reason = format!(
        "its signal {signal:?} is left out, without which NeXus cannot read the group: leave out the group, too"
    );
    Some(Refusal { object: display_path(paths.get(at)), reason })
}

/// Returns the reason to refuse a file if the object at `path` is left out of a group to which the output links.
pub(super) fn linked_as_whole(path: &[u8]) -> Refusal {
    let reason = "an object of a group to which the output has a link, and a link leads to all objects of the group; leave \
                  out only whole groups";
    Refusal { object: display_path(path), reason: reason.to_owned() }
}

/// Removes the members that are not among the objects of a file from the lists of its groups.
pub(super) fn shorten_lists(paths: &Paths, entries: &mut [ScannedEntry]) {
    let groups: Vec<(usize, &str)> =
        (0..).zip(&*entries).filter_map(|(at, entry)| Some((at, list_of(entry)?))).collect();
    if groups.is_empty() {
        return;
    }
    let known: HashSet<&[u8]> = paths.iter().collect();
    for (at, name) in groups {
        let entry = &mut entries[at];
        let Some(list) = named(&entry.attributes, name) else { continue };
        let Some(mut members) = strings(list) else { continue };
        let count = members.len();
        members.retain(|member| known.contains(&*child_path(paths.get(at), member.as_bytes())));
        if members.len() < count {
            entry.attributes = replaced(&entry.attributes, with_strings(list, &members));
        }
    }
}

/// Returns the name of the attribute that lists members of a group.
fn list_of(entry: &ScannedEntry) -> Option<&'static str> {
    let has = |name: &str| named(&entry.attributes, name).is_some();
    LISTS.into_iter().find(|(list, kind)| has(list) && has(kind)).map(|(list, _)| list)
}
