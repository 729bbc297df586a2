//! Conformance of [`AtomicFile`] and [`AtomicDir`]: every test runs with both.

use super::*;
use crate::output::folder_of;
use std::sync::Barrier;

/// An output of either kind.
trait Output: Sized {
    /// Returns the text that the output at `path` contains.
    fn read(path: &Path) -> String;

    /// Creates a complete output, or leftovers of one, without publishing.
    fn make(path: &Path, text: &str);

    /// Begins an output that contains `text`.
    fn begin(path: &Path, existing: IfExists, text: &str) -> Result<Self, PublishError>;

    fn hidden(&self) -> &Path;

    fn publish(&self) -> Result<(), PublishError>;
}

impl Output for AtomicFile {
    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    fn make(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    fn begin(path: &Path, existing: IfExists, text: &str) -> Result<Self, PublishError> {
        let begun = AtomicFile::begin(path, existing, || existing.check(path))?;
        begun.create()?;
        Self::make(begun.path(), text);
        Ok(begun)
    }

    fn hidden(&self) -> &Path {
        self.path()
    }

    fn publish(&self) -> Result<(), PublishError> {
        self.publish()
    }
}

impl Output for AtomicDir {
    fn read(path: &Path) -> String {
        let names: Vec<_> = path.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["inner"], "nothing of another output is mixed in");
        std::fs::read_to_string(path.join("inner/text")).unwrap()
    }

    fn make(path: &Path, text: &str) {
        std::fs::create_dir_all(path.join("inner")).unwrap();
        std::fs::write(path.join("inner/text"), text).unwrap();
    }

    fn begin(path: &Path, existing: IfExists, text: &str) -> Result<Self, PublishError> {
        let begun = AtomicDir::begin(path, (existing, Durability::Synced), || existing.check(path))?;
        Self::make(begun.path(), text);
        Ok(begun)
    }

    fn hidden(&self) -> &Path {
        self.path()
    }

    fn publish(&self) -> Result<(), PublishError> {
        self.publish(|_| Ok(()))
    }
}

/// Makes a test of each kind from functions that are generic over [`Output`] and take an empty folder.
macro_rules! conformance {
    ($($name:ident)*) => {
        mod a_file {
            $(#[test] fn $name() { super::$name::<super::AtomicFile>(tempfile::tempdir().unwrap().path()); })*
        }
        mod a_folder {
            $(#[test] fn $name() { super::$name::<super::AtomicDir>(tempfile::tempdir().unwrap().path()); })*
        }
    };
}

conformance! {
    is_visible_only_once_published
    is_refused_if_it_exists
    is_replaced_if_asked
    is_untouched_after_a_drop
    is_untouched_after_a_failed_publication
    is_not_replaced_if_it_appears_before_publication
    has_one_writer_at_a_time
    has_one_winner_of_a_race
    is_published_where_its_link_leads
    is_refused_as_a_broken_link
    clears_what_an_interrupted_run_left
    names_the_path_in_a_folder_without_permission
    is_not_begun_after_a_failed_check
}

fn names(folder: &Path) -> Vec<String> {
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn is_visible_only_once_published<O: Output>(folder: &Path) {
    let path = folder.join("out");
    let begun = O::begin(&path, IfExists::Fail, "new").unwrap();
    assert_eq!(names(folder), [".out.raddle-lock", ".out.raddle-part"]);
    begun.publish().unwrap();
    assert_eq!(O::read(&path), "new");
    drop(begun);
    assert_eq!(names(folder), ["out"]);
}

fn is_refused_if_it_exists<O: Output>(folder: &Path) {
    let path = folder.join("out");
    O::make(&path, "old");
    let refused = O::begin(&path, IfExists::Fail, "new").map(drop).unwrap_err();
    assert!(matches!(&refused, PublishError::Exists { path: named, .. } if *named == path), "{refused}");
    assert_eq!((O::read(&path), names(folder)), ("old".to_owned(), vec!["out".to_owned()]));
}

fn is_replaced_if_asked<O: Output>(folder: &Path) {
    let path = folder.join("out");
    O::make(&path, "old");
    let begun = O::begin(&path, IfExists::Replace, "new").unwrap();
    assert_eq!(O::read(&path), "old");
    begun.publish().unwrap();
    drop(begun);
    assert_eq!((O::read(&path), names(folder)), ("new".to_owned(), vec!["out".to_owned()]));
}

fn is_untouched_after_a_drop<O: Output>(folder: &Path) {
    let path = folder.join("out");
    drop(O::begin(&path, IfExists::Replace, "new").unwrap());
    assert_eq!(names(folder), [""; 0]);
    O::make(&path, "old");
    drop(O::begin(&path, IfExists::Replace, "new").unwrap());
    assert_eq!((O::read(&path), names(folder)), ("old".to_owned(), vec!["out".to_owned()]));
}

fn is_untouched_after_a_failed_publication<O: Output>(folder: &Path) {
    let path = folder.join("out");
    O::make(&path, "old");
    let begun = O::begin(&path, IfExists::Replace, "new").unwrap();
    remove_any(begun.hidden()).unwrap();
    let failed = begun.publish().unwrap_err();
    assert!(matches!(&failed, PublishError::Io { path, .. } if path == begun.hidden()), "{failed}");
    drop(begun);
    assert_eq!((O::read(&path), names(folder)), ("old".to_owned(), vec!["out".to_owned()]));
}

fn is_not_replaced_if_it_appears_before_publication<O: Output>(folder: &Path) {
    let path = folder.join("out");
    let begun = O::begin(&path, IfExists::Fail, "new").unwrap();
    O::make(&path, "of another program");
    let lost = begun.publish().unwrap_err();
    assert!(matches!(&lost, PublishError::Exists { path: named, .. } if *named == path), "{lost}");
    drop(begun);
    assert_eq!((O::read(&path), names(folder)), ("of another program".to_owned(), vec!["out".to_owned()]));
}

fn has_one_writer_at_a_time<O: Output>(folder: &Path) {
    let path = folder.join("out");
    let first = O::begin(&path, IfExists::Fail, "first").unwrap();
    let second = O::begin(&path, IfExists::Fail, "second").map(drop).unwrap_err();
    assert!(matches!(second, PublishError::Lock(LockError::Held { .. })), "{second}");
    first.publish().unwrap();
    drop(first);
    assert_eq!(O::read(&path), "first");
}

fn has_one_winner_of_a_race<O: Output>(folder: &Path) {
    let path = folder.join("out");
    for round in 0..20 {
        let barrier = Barrier::new(4);
        let run = |number: usize| {
            barrier.wait();
            loop {
                match O::begin(&path, IfExists::Fail, &number.to_string()) {
                    Err(PublishError::Lock(LockError::Held { .. })) => std::thread::yield_now(),
                    Err(PublishError::Exists { .. }) => return None,
                    begun => return begun.unwrap().publish().map(|()| number).ok(),
                }
            }
        };
        let winners: Vec<_> = std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|number| scope.spawn(move || run(number)));
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert_eq!((O::read(&path), names(folder)), (winners[0].to_string(), vec!["out".to_owned()]));
        remove_any(&path).unwrap();
    }
}

fn is_published_where_its_link_leads<O: Output>(folder: &Path) {
    let (target, link) = (folder.join("target"), folder.join("link"));
    std::os::unix::fs::symlink("target", &link).unwrap();
    assert_eq!(published_path(&link), link, "one that leads nowhere is refused under its own name");
    O::make(&target, "old");
    assert_eq!(published_path(&target), target);
    let begun = O::begin(&published_path(&link), IfExists::Replace, "new").unwrap();
    begun.publish().unwrap();
    drop(begun);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!((O::read(&target), O::read(&link)), ("new".to_owned(), "new".to_owned()));
    assert_eq!(names(folder), ["link", "target"]);
}

fn is_refused_as_a_broken_link<O: Output>(folder: &Path) {
    let link = folder.join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    assert!(matches!(O::begin(&link, IfExists::Fail, "new"), Err(PublishError::Exists { .. })));
    assert_eq!(names(folder), ["link"]);
}

fn clears_what_an_interrupted_run_left<O: Output>(folder: &Path) {
    let path = folder.join("out");
    O::make(&hidden_path(&path), "a longer text than the new one");
    std::fs::write(hidden_sibling(&path, ".raddle-lock"), "").unwrap();
    if hidden_path(&path).is_dir() {
        std::fs::write(hidden_path(&path).join("other"), "").unwrap();
    }
    let begun = O::begin(&path, IfExists::Fail, "new").unwrap();
    begun.publish().unwrap();
    drop(begun);
    assert_eq!((O::read(&path), names(folder)), ("new".to_owned(), vec!["out".to_owned()]));
}

/// Uses a folder of the kernel as well, because root may write to every folder on a disk.
fn names_the_path_in_a_folder_without_permission<O: Output>(folder: &Path) {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for path in [folder.join("out"), PathBuf::from("/proc/self/out"), folder.join("none/out")] {
        if is_root && folder_of(&path) == folder {
            continue;
        }
        let refused = O::begin(&path, IfExists::Replace, "new").map(drop).unwrap_err().to_string();
        assert!(refused.starts_with(&hidden_sibling(&path, ".raddle-lock").display().to_string()), "{refused}");
    }
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn is_not_begun_after_a_failed_check<O: Output>(folder: &Path) {
    let path = folder.join("out");
    O::make(&hidden_path(&path), "left");
    O::make(&path, "old");
    assert!(O::begin(&path, IfExists::Fail, "new").is_err());
    assert_eq!(O::read(&hidden_path(&path)), "left", "a refused run does not remove what another one may resume");
}

#[test]
fn a_kept_file_is_found_by_the_next_run_with_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = (folder.path().join("out"), folder.path().join(".out.record"));
    let begin = || AtomicFile::begin(&path, IfExists::Fail, || Ok::<_, PublishError>(())).unwrap();
    let begin = || begin().recorded_in(record.clone());
    let half = |begun: &AtomicFile| {
        std::fs::write(begun.path(), "half").unwrap();
        std::fs::write(&record, "a record").unwrap();
    };
    let begun = begin();
    half(&begun);
    begun.keep();
    assert_eq!(names(folder.path()), [".out.raddle-part", ".out.record"]);
    let begun = begin();
    assert_eq!(std::fs::read_to_string(begun.path()).unwrap(), "half");
    begun.clear().unwrap();
    assert_eq!(names(folder.path()), [".out.raddle-lock"]);
    half(&begun);
    drop(begun);
    assert_eq!(names(folder.path()), [""; 0], "a dropped file takes its record along");
    let begun = begin();
    half(&begun);
    begun.publish().unwrap();
    assert_eq!(names(folder.path()), [".out.raddle-lock", "out"], "a published file has no record");
}

#[test]
fn a_replaced_folder_may_be_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    AtomicDir::make(&path, "old");
    let begun = <AtomicDir as Output>::begin(&path, IfExists::Replace, "new").unwrap();
    let refused = begun.publish(|path| Err(PublishError::exists(path)));
    assert!(matches!(refused, Err(PublishError::Exists { .. })));
    assert_eq!(AtomicDir::read(&path), "old");
}

#[test]
fn entries_of_a_folder_are_published_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, free, taken) = (folder.path().join("out"), folder.path().join("free"), folder.path().join("taken"));
    std::fs::write(&taken, "old").unwrap();
    let begun = <AtomicDir as Output>::begin(&path, IfExists::Replace, "new").unwrap();
    std::fs::write(begun.path().join("file"), "file").unwrap();
    for (from, to) in [("inner", &free), ("file", &taken)] {
        let from = begun.path().join(from);
        begun.sync(&from).unwrap();
        begun.rename(&from, to, |_| Ok::<_, PublishError>(())).unwrap();
    }
    drop(begun);
    assert_eq!(names(folder.path()), ["free", "taken"]);
    assert_eq!(std::fs::read_to_string(free.join("text")).unwrap(), "new");
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "file");
}

#[test]
fn a_link_is_like_a_rename_to_a_free_name() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, "new").unwrap();
    std::fs::write(&to, "old").unwrap();
    assert!(matches!(link_new(&from, &to), Err(PublishError::Exists { .. })));
    assert_eq!((std::fs::read_to_string(&to).unwrap(), names(folder.path()).len()), ("old".to_owned(), 2));
    std::fs::remove_file(&to).unwrap();
    link_new(&from, &to).unwrap();
    assert_eq!((std::fs::read_to_string(&to).unwrap(), names(folder.path())), ("new".into(), vec!["to".into()]));
    let gone = link_new(&from, &to).unwrap_err();
    assert!(matches!(gone, PublishError::Io { step: PublishStep::Link, .. }), "{gone}");
}
