//! All objects and links of a file by their paths.
//!
//! Invariant: parents come before children, and each object is visited at its first path only.

use crate::paths::Paths;
use crate::schema::PROVENANCE_GROUP;
use raddle_hdf5::model::{FileTree, Link, LinkTarget, ObjectIndex, ObjectKind};

/// All paths of a file.
pub(super) struct Visits<'t> {
    /// Depth first in link order.
    pub paths: Paths,
    /// What is at each path.
    pub found: Vec<Visit<'t>>,
    /// The first path of each object.
    pub of_objects: Vec<usize>,
}

/// What the walk found at a path.
pub(super) struct Visit<'t> {
    pub utf8: bool,
    pub what: Visited<'t>,
}

pub(super) enum Visited<'t> {
    Object(ObjectIndex),
    Alias(ObjectIndex),
    Link(&'t LinkTarget),
}

/// In place of the first path of an object that has none yet.
pub(super) const UNSEEN: usize = usize::MAX;

/// Most bytes of paths that a file of `objects` may have. Every object has a path in memory and one in the output's
/// provenance, so that groups inside groups take the square of their depth: 64 MiB are 8,000 groups with names of one
/// letter.
pub(super) fn paths_limit_bytes(objects: usize) -> u64 {
    const FEW_BYTES: u64 = 64 << 20;
    const MEAN_PATH_BYTES: u64 = 256;
    FEW_BYTES.max(MEAN_PATH_BYTES * objects as u64)
}

/// Lists all paths depth first in link order, without following a link to an object twice. The provenance group that
/// raddle left in an input is not an object of the experiment and is left out. `None` where the paths are too long.
pub(super) fn walk(tree: &FileTree) -> Option<Visits<'_>> {
    let count = tree.objects.len();
    let limit_bytes = paths_limit_bytes(count);
    let (mut paths, mut found) = (Paths::with_capacity(count), Vec::with_capacity(count));
    let mut of_objects = vec![UNSEEN; count];
    // Links to follow, each with the number of its group's path.
    let mut stack: Vec<(usize, &Link)> = Vec::new();
    let mut visit = Visit { utf8: false, what: Visited::Object(0) };
    paths.push_root();
    loop {
        let at = found.len();
        if let Visited::Object(index) = visit.what {
            let first = &mut of_objects[index as usize];
            if *first != UNSEEN {
                visit.what = Visited::Alias(index);
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
            LinkTarget::Hard(index) => Visited::Object(*index),
            other => Visited::Link(other),
        };
        visit = Visit { utf8: link.utf8, what };
    }
    Some(Visits { paths, found, of_objects })
}
