//! Splitting of a file into several that share only groups, which a union must reassemble.
//!
//! Objects that refer to one another (hard links, committed types, references) stay in one file, because references to
//! other files would be invalid. Invariant: the parts contain every object of the whole once, and groups wherever they
//! are needed.

use crate::spec::{FileSpec, ObjectSpec, What};
use raddle_hdf5::model::CreationOrder;
use std::collections::HashSet;

/// Splits `whole` into `parts` files. Objects that belong together go to the file given by `part_of` for the first of
/// them, modulo the number of files. A group's attributes go to one file; other files that need the group have it
/// without attributes. The creation order of the root is not kept.
pub fn split(whole: &FileSpec, parts: usize, part_of: &[usize]) -> Vec<FileSpec> {
    let together = components(&whole.objects);
    let part = |object: usize| part_of.get(together[object] % part_of.len().max(1)).map_or(0, |part| part % parts);
    let file = |number: usize| {
        let assigned: Vec<usize> = (0..whole.objects.len()).filter(|&object| part(object) == number).collect();
        let needed: HashSet<&[u8]> =
            assigned.iter().flat_map(|&object| ancestors(&whole.objects[object].path)).collect();
        let objects = whole.objects.iter().enumerate().filter_map(|(index, object)| match &object.what {
            _ if part(index) == number => Some(object.clone()),
            What::Group(order) if object.path != b"/" && needed.contains(object.path.as_slice()) => {
                Some(ObjectSpec { path: object.path.clone(), what: What::Group(*order), attributes: Vec::new() })
            }
            _ => None,
        });
        FileSpec { objects: objects.collect(), root_order: CreationOrder::default(), ..whole.clone() }
    };
    (0..parts).map(file).collect()
}

/// Returns the paths of the groups above `path`, without the root.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    (1..path.len()).filter(|&end| path[end] == b'/').map(|end| &path[..end])
}

/// Returns for each object the first object that it must stay with.
fn components(objects: &[ObjectSpec]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..objects.len()).collect();
    for (from, object) in objects.iter().enumerate() {
        for (to, target) in objects.iter().enumerate() {
            if leads_to(object, target) {
                let (kept, gone) = (first[from].min(first[to]), first[from].max(first[to]));
                first.iter_mut().filter(|first| **first == gone).for_each(|first| *first = kept);
            }
        }
    }
    first
}

fn leads_to(object: &ObjectSpec, target: &ObjectSpec) -> bool {
    let in_values = |values: &[u8]| {
        // The canonical form of references: the length of the path, then the path.
        let reference = [&(target.path.len() as u64).to_le_bytes(), target.path.as_slice()].concat();
        values.windows(reference.len()).any(|window| window == reference)
    };
    let by_itself = match &object.what {
        What::HardLink(path) => *path == target.path,
        What::Dataset(dataset) => {
            dataset.committed.as_ref() == Some(&target.path)
                || in_values(&dataset.values)
                || dataset.fill.as_ref().is_some_and(|fill| in_values(fill))
        }
        _ => false,
    };
    by_itself || object.attributes.iter().any(|attribute| in_values(&attribute.values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::numbers;
    use crate::spec::DatasetSpec;

    #[test]
    fn what_leads_to_an_object_stays_with_it() {
        let dataset = |path: &str| DatasetSpec::plain(numbers::u8(), &[1], vec![7]).at(path);
        let alias = ObjectSpec::link("/h/alias", What::HardLink(b"/g/a".to_vec()));
        let objects = vec![ObjectSpec::group("/g"), ObjectSpec::group("/h"), dataset("/g/a"), dataset("/g/b"), alias];
        let whole = FileSpec { objects, ..FileSpec::default() };
        let paths = |file: &FileSpec| -> Vec<String> {
            file.objects.iter().map(|object| String::from_utf8_lossy(&object.path).into_owned()).collect()
        };
        let parts = split(&whole, 2, &[0, 1, 0, 1, 0]);
        assert_eq!(paths(&parts[0]), ["/g", "/h", "/g/a", "/h/alias"]);
        assert_eq!(paths(&parts[1]), ["/g", "/h", "/g/b"]);
    }
}
