//! Which objects of the inputs take part: `--include`, `--exclude`, and which datasets are carried once: `--keep`.
//!
//! A selection prunes an input's tree before anything else looks at it, so that what is left out is neither scanned nor
//! found by references. Which patterns had an effect is remembered, so that a misspelt one is told.
//! Invariant: a pruned tree still has every object that it had; those left out have no link.

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::schema::{PROVENANCE_GROUP, child_path};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use raddle_core::communicator::Communicator;
use raddle_core::progress::{Event, Severity};
use raddle_hdf5::model::{FileTree, Link, LinkTarget, Object, ObjectIndex, ObjectKind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Patterns for paths of objects. A pattern with a slash counts from the root, one without matches a name at any depth;
/// `*` stays inside a name, `**` crosses groups. A group that matches stands for all that is in it.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Objects that take part, with the groups that lead to them; everything where `None`.
    include: Option<Patterns>,
    /// Objects that do not.
    exclude: Patterns,
    /// Datasets that are carried once and must be equal in all inputs.
    keep: Patterns,
    /// A file of which all objects take part.
    whole: Option<PathBuf>,
}

/// Patterns and which of them matched a path, in this selection or a copy of it.
#[derive(Debug, Clone, Default)]
struct Patterns {
    set: GlobSet,
    given: Vec<String>,
    matched: Arc<[AtomicBool]>,
}

impl Selection {
    /// The selection of these patterns; no `include` stands for everything.
    ///
    /// # Errors
    /// [`MergeError::Pattern`] for what is no pattern.
    pub fn new(include: &[String], exclude: &[String], keep: &[String]) -> Result<Self> {
        Ok(Self {
            include: if include.is_empty() { None } else { Some(Patterns::new(include)?) },
            exclude: Patterns::new(exclude)?,
            keep: Patterns::new(keep)?,
            whole: None,
        })
    }

    /// The patterns as given: `--include`, `--exclude`, `--keep`.
    pub fn patterns(&self) -> [&[String]; 3] {
        let include = self.include.as_ref().map_or(&[][..], |include| &include.given);
        [include, &self.exclude.given, &self.keep.given]
    }

    /// The selection of these patterns. Which of them matched stays known for lists that do not change.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_patterns(&self, include: &[String], exclude: &[String], keep: &[String]) -> Result<Self> {
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

    /// The same selection, but with all objects of the file at `path`: those that grow were selected when it was made.
    #[must_use]
    pub fn with_whole(self, path: &Path) -> Self {
        Self { whole: Some(path.to_path_buf()), ..self }
    }

    /// Collective. Warns of patterns that matched nothing in the inputs that the `ranks` scanned with this selection.
    ///
    /// # Errors
    /// [`MergeError::NothingIncluded`] where no object is included: nothing would be merged.
    pub fn check_matched(&self, ranks: &dyn Communicator, watch: &Watch<'_>) -> Result<()> {
        let all = [
            ("--include", self.include.as_ref(), "takes nothing"),
            ("--exclude", Some(&self.exclude), "leaves nothing out"),
            ("--keep", Some(&self.keep), "keeps no dataset"),
        ];
        for (option, patterns, effect) in all {
            let Some(patterns) = patterns.filter(|patterns| !patterns.given.is_empty()) else { continue };
            let unmatched = patterns.unmatched(ranks)?;
            if option == "--include" && unmatched.len() == patterns.given.len() {
                return Err(MergeError::NothingIncluded { patterns: unmatched.join(", ") });
            }
            for pattern in unmatched.iter().filter(|_| ranks.rank() == 0) {
                let text = format!("{option} {pattern}: {effect}; is it a path of the inputs?");
                watch.observer.event(&Event::Message { severity: Severity::Warning, text });
            }
        }
        Ok(())
    }

    /// Whether the dataset at `path` is carried once.
    pub fn keeps(&self, path: &[u8]) -> bool {
        self.keep.matches(path)
    }

    /// Takes the links to objects that do not take part out of `tree`, which is of the file at `path`.
    pub fn prune(&self, tree: &mut FileTree, path: &Path) {
        if self.include.is_none() && self.exclude.given.is_empty() || self.whole.as_deref() == Some(path) {
            return;
        }
        let all = std::mem::take(&mut tree.objects);
        let mut pruning = Pruning { selection: self, kept: vec![None; all.len()], all: &all };
        pruning.visit(0, b"/", self.include.is_none());
        let kept = pruning.kept;
        let pruned = |(object, links): (&Object, Option<Vec<Link>>)| {
            let mut object = object.clone();
            if let ObjectKind::Group(group) = &mut object.kind {
                group.links = links.unwrap_or_default();
            }
            object
        };
        tree.objects = all.iter().zip(kept).map(pruned).collect();
    }
}

impl Patterns {
    fn new(given: &[String]) -> Result<Self> {
        let matched = given.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { set: set(given)?, given: given.to_vec(), matched })
    }

    /// Whether any of them matches `path`; those that do are remembered.
    fn matches(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let is_match = self.set.is_match(path);
        if is_match && self.matched.iter().any(|matched| !matched.load(Ordering::Relaxed)) {
            self.set.matches(path).into_iter().for_each(|at| self.matched[at].store(true, Ordering::Relaxed));
        }
        is_match
    }

    /// Collective. Those that matched on no rank.
    fn unmatched(&self, ranks: &dyn Communicator) -> Result<Vec<String>> {
        let own: Vec<u8> = self.matched.iter().map(|matched| u8::from(matched.load(Ordering::Relaxed))).collect();
        let all = ranks.all_gather_bytes(&own)?;
        let is_matched = |at: usize| all.iter().any(|of_rank| of_rank.get(at) == Some(&1));
        let unmatched = self.given.iter().enumerate().filter(|(at, _)| !is_matched(*at));
        Ok(unmatched.map(|(_, pattern)| pattern.clone()).collect())
    }
}

fn set(patterns: &[String]) -> Result<GlobSet> {
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

/// A walk in link order that decides about every link under the first path that leads to its object, as the scan does.
struct Pruning<'a> {
    selection: &'a Selection,
    all: &'a [Object],
    /// The links that a group keeps, once it takes part; an empty list for other objects.
    kept: Vec<Option<Vec<Link>>>,
}

impl Pruning<'_> {
    /// Decides about the object at `path`; `is_inside`: it is in something that was included. Whether it takes part.
    fn visit(&mut self, index: ObjectIndex, path: &[u8], is_inside: bool) -> bool {
        let Some(object) = self.all.get(index as usize) else { return false };
        let ObjectKind::Group(group) = &object.kind else {
            if is_inside {
                self.kept[index as usize] = Some(Vec::new());
            }
            return is_inside;
        };
        // Known while it is walked: a link back to it is a link to what takes part.
        self.kept[index as usize] = Some(Vec::new());
        let mut links = Vec::new();
        for link in &group.links {
            if path == b"/" && link.name == PROVENANCE_GROUP {
                links.push(link.clone());
                self.keep_whole(link);
                continue;
            }
            let path = child_path(path, &link.name);
            if self.selection.exclude.matches(&path) {
                continue;
            }
            // Asked also inside of what is included: a pattern that says the same twice is no mistake.
            let is_included =
                self.selection.include.as_ref().is_some_and(|include| include.matches(&path)) || is_inside;
            let takes_part = match link.target {
                LinkTarget::Hard(target) if self.is_undecided(target) => self.visit(target, &path, is_included),
                _ => is_included,
            };
            if takes_part {
                links.push(link.clone());
            }
        }
        let takes_part = is_inside || path == b"/" || !links.is_empty();
        self.kept[index as usize] = takes_part.then_some(links);
        takes_part
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

    /// Not met yet, or only under paths that do not take part.
    fn is_undecided(&self, index: ObjectIndex) -> bool {
        self.kept.get(index as usize).is_some_and(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::cancel::CancelToken;
    use raddle_core::communicator::SingleProcess;
    use raddle_core::progress::Observer;
    use raddle_hdf5::model::{CreationOrder, Group};
    use std::sync::Mutex;

    /// Keeps the texts of messages.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Observer for Recorder {
        fn event(&self, event: &Event) {
            if let Event::Message { text, .. } = event {
                self.0.lock().unwrap().push(text.clone());
            }
        }
    }

    /// A tree of groups by their links; an object without links stands for a dataset.
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

    /// Paths that are left, depth first; an object met again is marked.
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

    /// `/a/x`, `/a/y`, `/b/x` and `/z`.
    fn small() -> FileTree {
        tree(&[&[("a", 1), ("b", 2), ("z", 6)], &[("x", 3), ("y", 4)], &[("x", 5)], &[], &[], &[], &[]])
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
    fn patterns_without_effect_are_told() {
        let told = |include: &[&str], exclude: &[&str]| {
            let strings = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
            let selection = Selection::new(&strings(include), &strings(exclude), &[]).unwrap();
            selection.clone().prune(&mut small(), Path::new("a.h5"));
            let recorder = Recorder::default();
            let outcome =
                selection.check_matched(&SingleProcess, &Watch { observer: &recorder, cancel: &CancelToken::new() });
            outcome.map(|()| recorder.0.into_inner().unwrap())
        };
        assert_eq!(told(&["a", "/a/x"], &["y"]).unwrap(), Vec::<String>::new());
        let typo = "--include typo: takes nothing; is it a path of the inputs?";
        assert_eq!(told(&["a", "typo"], &[]).unwrap(), [typo]);
        let typo = "--exclude /a/typo: leaves nothing out; is it a path of the inputs?";
        assert_eq!(told(&[], &["/a/typo"]).unwrap(), [typo]);
        assert!(matches!(told(&["typo", "other"], &[]), Err(MergeError::NothingIncluded { .. })));
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        assert!(matches!(Selection::new(&["/a[".to_owned()], &[], &[]), Err(MergeError::Pattern { .. })));
    }
}
