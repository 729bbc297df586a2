//! Selection of objects of the inputs: `--include` and `--exclude`, and `--keep` for datasets that are stored once.
//!
//! A selection prunes the tree of an input before anything else uses it, so that excluded objects are neither scanned
//! nor found through references. It records which patterns matched, so that misspelt ones can be reported. Invariant: a
//! pruned tree still has all its objects; excluded ones merely have no link.

use super::left_out_coordinates::LeftOutCoordinate;
use super::left_out_scales;
use crate::error::{MergeError, Result};
use crate::schema::{PROVENANCE_GROUP, child_path};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use raddle_hdf5::model::{FileTree, Link, LinkTarget, Object, ObjectIndex, ObjectKind};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Patterns for object paths. A pattern with a slash is matched from the root, one without matches a name at any depth;
/// `*` does not cross a slash, but `**` does. A matching group selects everything in it.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Objects to merge, together with their parent groups; everything if `None`.
    include: Option<Patterns>,
    /// Objects to leave out.
    exclude: Patterns,
    /// Datasets that are stored once and must be equal in all inputs.
    keep: Patterns,
    /// A file that is exempt from `include` and `exclude`.
    whole: Option<PathBuf>,
}

/// What a selection leaves out of a file.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Coordinates with bounds.
    pub coordinates: Vec<LeftOutCoordinate>,
    /// Path of an object in a group that is not left out as a whole.
    pub in_group: Option<Vec<u8>>,
}

/// Patterns, and which of them matched a path, in this selection or a clone of it.
#[derive(Clone, Default)]
struct Patterns {
    set: GlobSet,
    texts: Vec<String>,
    matched: Arc<[AtomicBool]>,
}

// Later runs and other processes recognise a merge by this text of its options, so it must depend neither on the
// matches nor on the thread: sets of patterns have a cache for each thread.
impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Patterns").field(&self.texts).finish()
    }
}

impl Selection {
    /// Creates a selection from patterns; an empty `include` stands for everything.
    ///
    /// # Errors
    /// [`MergeError::Pattern`] for an invalid pattern.
    pub fn new(include: &[String], exclude: &[String], keep: &[String]) -> Result<Self> {
        Ok(Self {
            include: if include.is_empty() { None } else { Some(Patterns::new(include)?) },
            exclude: Patterns::new(exclude)?,
            keep: Patterns::new(keep)?,
            whole: None,
        })
    }

    /// Returns the patterns of `--include`, `--exclude` and `--keep`.
    pub fn patterns(&self) -> [&[String]; 3] {
        let include = self.include.as_ref().map_or(&[][..], |include| &include.texts);
        [include, &self.exclude.texts, &self.keep.texts]
    }

    /// Returns a selection with these patterns. Pattern lists that do not change keep the record of their matches.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(crate) fn with_patterns(&self, include: &[String], exclude: &[String], keep: &[String]) -> Result<Self> {
        let mut changed = Self::new(include, exclude, keep)?;
        let [known_include, known_exclude, known_keep] = self.patterns();
        if known_include == include {
            changed.include.clone_from(&self.include);
        }
        if known_exclude == exclude {
            changed.exclude.clone_from(&self.exclude);
        }
        if known_keep == keep {
            changed.keep.clone_from(&self.keep);
        }
        changed.whole.clone_from(&self.whole);
        Ok(changed)
    }

    /// Returns this selection with all objects of the file at `path`, whose objects were already selected when it was
    /// written.
    #[must_use]
    pub(crate) fn with_whole(self, path: &Path) -> Self {
        Self { whole: Some(path.to_path_buf()), ..self }
    }

    /// Collective. Warns about patterns that matched nothing in the inputs that the `ranks` scanned with this
    /// selection.
    ///
    /// # Errors
    /// [`MergeError::NothingIncluded`] if no object is included, so that nothing would be merged.
    pub fn check_matched(&self, ranks: &dyn Communicator, watch: &Watch<'_>) -> Result<()> {
        let all = [
            ("--include", self.include.as_ref(), "matches nothing"),
            ("--exclude", Some(&self.exclude), "excludes nothing"),
            ("--keep", Some(&self.keep), "matches no dataset"),
        ];
        for (option, patterns, effect) in all {
            let Some(patterns) = patterns.filter(|patterns| !patterns.texts.is_empty()) else { continue };
            let unmatched = patterns.unmatched(ranks)?;
            if option == "--include" && unmatched.len() == patterns.texts.len() {
                return Err(MergeError::NothingIncluded { patterns: unmatched.join(", ") });
            }
            for pattern in unmatched.iter().filter(|_| ranks.rank() == 0) {
                let text = format!("{option} {pattern}: {effect}; is it a path of the inputs?");
                watch.warn(text);
            }
        }
        Ok(())
    }

    /// Returns whether objects may be left out.
    pub fn is_partial(&self) -> bool {
        self.include.is_some() || !self.exclude.texts.is_empty()
    }

    /// Returns whether the dataset at `path` is stored once.
    pub fn keeps(&self, path: &[u8]) -> bool {
        self.keep.matches(path)
    }

    /// Returns whether a pattern excludes the object at `path` itself.
    pub(crate) fn excludes(&self, path: &[u8]) -> bool {
        self.exclude.matches(path)
    }

    /// Removes the links to excluded objects from `tree`, which belongs to the file at `path`. Returns what is left out.
    pub(crate) fn prune(&self, tree: &mut FileTree, path: &Path) -> LeftOut {
        if !self.is_partial() || self.whole.as_deref() == Some(path) {
            return LeftOut::default();
        }
        let walk = |needed: &HashSet<ObjectIndex>| {
            let kept = vec![None; tree.objects.len()];
            let (coordinates, in_group) = (Vec::new(), None);
            let mut pruning = PruningWalk { selection: self, needed, kept, coordinates, in_group, all: &tree.objects };
            pruning.visit(0, b"/", self.include.is_none());
            (pruning.kept, pruning.coordinates, pruning.in_group)
        };
        let (mut kept, mut coordinates, mut in_group) = walk(&HashSet::new());
        let needed = left_out_scales::needed(tree, |index| kept[index as usize].is_some());
        if !needed.is_empty() {
            (kept, coordinates, in_group) = walk(&needed);
        }
        coordinates.retain(|(index, _)| kept[*index as usize].is_none() || needed.contains(index));
        let is_kept = |index: ObjectIndex| kept[index as usize].is_some();
        let lens = left_out_scales::lens(tree, is_kept, |index| needed.contains(&index));
        let pruned = |(index, (object, links)): (ObjectIndex, (&Object, Option<Vec<Link>>))| {
            let len = lens.get(&index).copied();
            if needed.contains(&index) || len.is_some() {
                return left_out_scales::without_variable(object, len);
            }
            let mut object = object.clone();
            if let ObjectKind::Group(group) = &mut object.kind {
                group.links = links.unwrap_or_default();
            }
            object
        };
        tree.objects = (0..).zip(tree.objects.iter().zip(kept)).map(pruned).collect();
        LeftOut { coordinates: coordinates.into_iter().map(|(_, coordinate)| coordinate).collect(), in_group }
    }
}

impl Patterns {
    fn new(texts: &[String]) -> Result<Self> {
        let matched = texts.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { set: glob_set(texts)?, texts: texts.to_vec(), matched })
    }

    /// Returns whether any pattern matches `path`; records the patterns that do.
    fn matches(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let is_match = self.set.is_match(path);
        if is_match && self.matched.iter().any(|matched| !matched.load(Ordering::Relaxed)) {
            self.set.matches(path).into_iter().for_each(|at| self.matched[at].store(true, Ordering::Relaxed));
        }
        is_match
    }

    /// Collective. Returns the patterns that matched on no rank.
    fn unmatched(&self, ranks: &dyn Communicator) -> Result<Vec<String>> {
        let local_matches: Vec<u8> =
            self.matched.iter().map(|matched| u8::from(matched.load(Ordering::Relaxed))).collect();
        let all = ranks.all_gather_bytes(&local_matches)?;
        let is_matched = |at: usize| all.iter().any(|of_rank| of_rank.get(at) == Some(&1));
        let unmatched = self.texts.iter().enumerate().filter(|(at, _)| !is_matched(*at));
        Ok(unmatched.map(|(_, pattern)| pattern.clone()).collect())
    }
}

/// Compiles patterns for object paths.
///
/// # Errors
/// [`MergeError::Pattern`] for an invalid pattern.
pub(crate) fn glob_set(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let anchored = match pattern.strip_prefix('/') {
            Some(_) => pattern.clone(),
            None if pattern.contains('/') => format!("/{pattern}"),
            None => format!("/**/{pattern}"),
        };
        let glob = GlobBuilder::new(anchored.trim_end_matches('/')).literal_separator(true).build();
        set.add(glob.map_err(|source| MergeError::Pattern { pattern: pattern.clone(), source })?);
    }
    set.build().map_err(|source| MergeError::Pattern { pattern: patterns.join(", "), source })
}

/// Walk over a tree in link order that decides on each object at its first path, as the scan does.
struct PruningWalk<'a> {
    selection: &'a Selection,
    /// Objects that take part whatever their paths.
    needed: &'a HashSet<ObjectIndex>,
    all: &'a [Object],
    /// Links that a group keeps if it is selected; an empty list for other selected objects.
    kept: Vec<Option<Vec<Link>>>,
    /// Coordinates with bounds, at paths that are not selected.
    coordinates: Vec<(ObjectIndex, LeftOutCoordinate)>,
    /// Path that is not selected in a selected group other than the root.
    in_group: Option<Vec<u8>>,
}

impl PruningWalk<'_> {
    /// Decides on the object at `path` and returns whether it is selected; `is_inside` states whether it lies inside an
    /// included group.
    fn visit(&mut self, index: ObjectIndex, path: &[u8], is_inside: bool) -> bool {
        let Some(object) = self.all.get(index as usize) else { return false };
        let ObjectKind::Group(group) = &object.kind else {
            if is_inside {
                self.kept[index as usize] = Some(Vec::new());
            }
            return is_inside;
        };
        // Marked as selected while it is being walked, so that links back to it are kept.
        self.kept[index as usize] = Some(Vec::new());
        let mut links = Vec::new();
        for link in &group.links {
            if path == b"/" && link.name == PROVENANCE_GROUP {
                links.push(link.clone());
                self.keep_whole(link);
                continue;
            }
            let path = child_path(path, &link.name);
            let is_excluded = self.selection.exclude.matches(&path);
            if let LinkTarget::Hard(target) = link.target
                && self.needed.contains(&target)
            {
                self.kept[target as usize] = Some(Vec::new());
                links.push(link.clone());
                self.leave_out(link, &path);
                continue;
            }
            if is_excluded {
                self.leave_out(link, &path);
                continue;
            }
            // Checked inside included groups too: a redundant pattern is not a mistake to warn about.
            let is_included =
                self.selection.include.as_ref().is_some_and(|include| include.matches(&path)) || is_inside;
            let takes_part = match link.target {
                LinkTarget::Hard(target) if self.is_undecided(target) => self.visit(target, &path, is_included),
                _ => is_included,
            };
            if takes_part {
                links.push(link.clone());
            } else {
                self.leave_out(link, &path);
            }
        }
        let takes_part = is_inside || path == b"/" || !links.is_empty();
        if takes_part && path != b"/" && links.len() < group.links.len() && self.in_group.is_none() {
            let is_missing = |link: &&Link| !links.iter().any(|kept| kept.name == link.name);
            self.in_group = group.links.iter().find(is_missing).map(|link| child_path(path, &link.name));
        }
        self.kept[index as usize] = takes_part.then_some(links);
        takes_part
    }

    /// Records the object to which `link` leads, if it is a coordinate with bounds.
    fn leave_out(&mut self, link: &Link, path: &[u8]) {
        let LinkTarget::Hard(target) = link.target else { return };
        let object = self.all.get(target as usize);
        self.coordinates.extend(object.and_then(|object| Some((target, LeftOutCoordinate::of(object, path)?))));
    }

    /// Keeps everything below `link`. `--include` and `--exclude` do not apply to `/_raddle`, which holds no user data.
    fn keep_whole(&mut self, link: &Link) {
        let mut stack = vec![link];
        while let Some(link) = stack.pop() {
            let LinkTarget::Hard(target) = link.target else { continue };
            if !self.is_undecided(target) {
                continue;
            }
            let all = self.all;
            let links = match &all[target as usize].kind {
                ObjectKind::Group(group) => group.links.as_slice(),
                _ => &[],
            };
            self.kept[target as usize] = Some(links.to_vec());
            stack.extend(links);
        }
    }

    /// Returns whether the object has not been visited yet, or only at paths that are not selected.
    fn is_undecided(&self, index: ObjectIndex) -> bool {
        self.kept.get(index as usize).is_some_and(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::cancel::CancelToken;
    use raddle_core::ranks::communicator::SingleProcess;
    use raddle_core::report::progress::{Event, Observer};
    use raddle_hdf5::model::{CreationOrder, Group};
    use std::sync::Mutex;

    /// Records the texts of messages.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Observer for Recorder {
        fn event(&self, event: &Event) {
            if let Event::Message { text, .. } = event {
                self.0.lock().unwrap().push(text.clone());
            }
        }
    }

    /// Builds a tree of groups from their links; an object without links stands for a dataset.
    fn tree(objects: &[&[(&str, ObjectIndex)]]) -> FileTree {
        let link = |&(name, target): &(&str, ObjectIndex)| Link {
            name: name.as_bytes().to_vec(),
            utf8: false,
            creation_order: None,
            target: LinkTarget::Hard(target),
        };
        let object = |links: &&[(&str, ObjectIndex)]| Object {
            address: 0,
            kind: match links {
                [] => ObjectKind::Unreadable { reason: String::new(), unsupported: true, foreign: None },
                links => ObjectKind::Group(Group {
                    links: links.iter().map(link).collect(),
                    link_order: CreationOrder::default(),
                }),
            },
            attributes: Vec::new(),
            attribute_order: CreationOrder::default(),
            comment: None,
        };
        let objects = objects.iter().map(object).collect();
        FileTree { superblock_version: 0, userblock_len_bytes: 0, address_len_bytes: 8, length_len_bytes: 8, objects }
    }

    /// Returns the remaining paths, depth first; repeated objects are marked with `=`.
    fn paths(include: &[&str], exclude: &[&str], mut tree: FileTree) -> Vec<String> {
        fn list(tree: &FileTree, index: ObjectIndex, path: &str, seen: &mut Vec<ObjectIndex>, out: &mut Vec<String>) {
            if seen.contains(&index) {
                out.push(format!("{path}="));
                return;
            }
            seen.push(index);
            out.push(path.to_owned());
            let ObjectKind::Group(group) = &tree.objects[index as usize].kind else { return };
            for link in &group.links {
                let LinkTarget::Hard(target) = link.target else { continue };
                let name = String::from_utf8(link.name.clone()).unwrap();
                list(tree, target, &format!("{}/{name}", path.trim_end_matches('/')), seen, out);
            }
        }
        let strings = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
        Selection::new(&strings(include), &strings(exclude), &[]).unwrap().prune(&mut tree, Path::new("a.h5"));
        let mut out = Vec::new();
        list(&tree, 0, "/", &mut Vec::new(), &mut out);
        out.split_off(1)
    }

    /// Returns a tree of `/a/x`, `/a/y`, `/b/x` and `/z`.
    fn small() -> FileTree {
        tree(&[&[("a", 1), ("b", 2), ("z", 6)], &[("x", 3), ("y", 4)], &[("x", 5)], &[], &[], &[], &[]])
    }

    #[test]
    fn the_text_of_a_selection_does_not_depend_on_matches() {
        let patterns = ["run*".to_owned()];
        let selection = Selection::new(&patterns, &[], &patterns).unwrap();
        let text = format!("{selection:?}");
        std::thread::scope(|scope| {
            scope.spawn(|| selection.keeps(b"/run1"));
            assert!(selection.keeps(b"/run2"));
        });
        assert_eq!(format!("{selection:?}"), text);
    }

    #[test]
    fn included_objects_bring_the_groups_that_lead_to_them() {
        assert_eq!(paths(&["/a/x"], &[], small()), ["/a", "/a/x"]);
        assert_eq!(paths(&["a"], &[], small()), ["/a", "/a/x", "/a/y"]);
        assert_eq!(paths(&["x"], &[], small()), ["/a", "/a/x", "/b", "/b/x"]);
        assert_eq!(paths(&["/*"], &["y"], small()), ["/a", "/a/x", "/b", "/b/x", "/z"]);
        assert_eq!(paths(&["/*/x"], &["/b"], small()), ["/a", "/a/x"]);
        assert_eq!(paths(&["/**/x", "/z"], &[], small()), ["/a", "/a/x", "/b", "/b/x", "/z"]);
        assert!(paths(&["nothing"], &[], small()).is_empty());
    }

    #[test]
    fn excluded_groups_take_their_content_along() {
        assert_eq!(paths(&[], &["/a"], small()), ["/b", "/b/x", "/z"]);
        assert_eq!(paths(&[], &["a/*"], small()), ["/a", "/b", "/b/x", "/z"]);
        assert_eq!(paths(&[], &["z", "/b/"], small()), ["/a", "/a/x", "/a/y"]);
    }

    #[test]
    fn an_object_left_out_under_one_path_is_there_under_another() {
        // `/a/x` and `/b/y` are one dataset; `/c` and `/d` one group with a link back to it.
        let linked = || tree(&[&[("a", 1), ("b", 2), ("c", 4), ("d", 4)], &[("x", 3)], &[("y", 3)], &[], &[("me", 4)]]);
        assert_eq!(paths(&["/b/*"], &[], linked()), ["/b", "/b/y"]);
        assert_eq!(paths(&[], &["x"], linked()), ["/a", "/b", "/b/y", "/c", "/c/me=", "/d="]);
        assert_eq!(paths(&["/d"], &[], linked()), ["/d", "/d/me="]);
    }

    #[test]
    fn patterns_without_effect_are_reported() {
        let reported = |include: &[&str], exclude: &[&str]| {
            let strings = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
            let selection = Selection::new(&strings(include), &strings(exclude), &[]).unwrap();
            selection.clone().prune(&mut small(), Path::new("a.h5"));
            let recorder = Recorder::default();
            let outcome =
                selection.check_matched(&SingleProcess, &Watch { observer: &recorder, cancel: &CancelToken::new() });
            outcome.map(|()| recorder.0.into_inner().unwrap())
        };
        assert_eq!(reported(&["a", "/a/x"], &["y"]).unwrap(), Vec::<String>::new());
        let typo = "--include typo: matches nothing; is it a path of the inputs?";
        assert_eq!(reported(&["a", "typo"], &[]).unwrap(), [typo]);
        let typo = "--exclude /a/typo: excludes nothing; is it a path of the inputs?";
        assert_eq!(reported(&[], &["/a/typo"]).unwrap(), [typo]);
        assert!(matches!(reported(&["typo", "other"], &[]), Err(MergeError::NothingIncluded { .. })));
    }

    #[test]
    fn anything_but_a_pattern_is_an_error() {
        assert!(matches!(Selection::new(&["/a[".to_owned()], &[], &[]), Err(MergeError::Pattern { .. })));
    }
}
