//! List of all objects and links of a file by path.
//!
//! Invariant: parents come before children, and each object is visited only at its first path.

use crate::inputs::paths::Paths;
use crate::schema::PROVENANCE_GROUP;
use raddle_hdf5::model::{FileTree, Link, LinkTarget, ObjectIndex, ObjectKind};

/// All paths of a file.
pub(super) struct Visits<'t> {
    /// Paths, depth first in link order.
    pub paths: Paths,
    /// Object or link at each path.
    pub found: Vec<Visit<'t>>,
    /// Number of the first path of each object.
    pub of_objects: Vec<usize>,
}

/// Object or link found at a path.
pub(super) struct Visit<'t> {
    pub utf8: bool,
    pub what: VisitedObject<'t>,
}

pub(super) enum VisitedObject<'t> {
    Object(ObjectIndex),
    Alias(ObjectIndex),
    Link(&'t LinkTarget),
}

/// Marker for an object for which no path has been found yet.
pub(super) const UNSEEN: usize = usize::MAX;

/// Returns the maximum number of bytes of all paths in a file of `objects`. Every object has a path in memory and one
/// in the output's provenance, so nested groups take space quadratic in their depth: 64 MiB allow 8,000 nested groups
/// with names of one letter.
pub(super) fn paths_limit_bytes(objects: usize) -> u64 {
    const FEW_BYTES: u64 = 64 << 20;
    const MEAN_PATH_BYTES: u64 = 256;
    FEW_BYTES.max(MEAN_PATH_BYTES * objects as u64)
}

/// Lists all paths depth first in link order, following only one link to each object. The provenance group that raddle
/// wrote to an input is not user data and is left out. Returns `None` if the paths are too long.
pub(super) fn walk(tree: &FileTree) -> Option<Visits<'_>> {
    let count = tree.objects.len();
    let limit_bytes = paths_limit_bytes(count);
    let (mut paths, mut found) = (Paths::with_capacity(count), Vec::with_capacity(count));
    let mut of_objects = vec![UNSEEN; count];
    // Links to follow, each with the number of its group's path.
    let mut stack: Vec<(usize, &Link)> = Vec::new();
    let mut visit = Visit { utf8: false, what: VisitedObject::Object(0) };
    paths.push_root();
    loop {
        let at = found.len();
        if let VisitedObject::Object(index) = visit.what {
            let first = &mut of_objects[index as usize];
            if *first != UNSEEN {
                visit.what = VisitedObject::Alias(index);
            } else {
                *first = at;
                if let ObjectKind::Group(group) = &tree.objects[index as usize].kind {
                    let at_root = paths.get(at) == b"/";
                    let inside = group.links.iter().rev().filter(|link| !(at_root && link.name == PROVENANCE_GROUP));
                    stack.extend(inside.map(|link| (at, link)));
                }
            }
        }
        found.push(visit);
        let Some((group, link)) = stack.pop() else { break };
        paths.push_child(group, &link.name);
        if paths.len_bytes() > limit_bytes {
            return None;
        }
        let what = match &link.target {
            LinkTarget::Hard(index) => VisitedObject::Object(*index),
            other => VisitedObject::Link(other),
        };
        visit = Visit { utf8: link.utf8, what };
    }
    Some(Visits { paths, found, of_objects })
}
