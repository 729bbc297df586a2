//! The output file of a merge: paths that must not be written, and the journal next to the temporary file.
//!
//! `raddle_core::output::publish` publishes the file. Invariant: a journal is removed before the tiles that it
//! describes.

use crate::error::{MergeError, Result};
use raddle_core::output::check::UnusableOutput;
use raddle_core::output::hidden_sibling;
use raddle_core::output::publish::{AtomicFile, IfExists, clear_file};
use std::path::{Path, PathBuf};

pub use raddle_core::output::publish::{hidden_path as temporary_path, published_path};

/// Takes the lock on `output`, which must not be one of the `inputs` under any name. An existing output is refused
/// unless `replace` is set. Files of an interrupted run remain: resume from them, or [`AtomicFile::clear`] them.
pub fn begin_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<AtomicFile> {
    check_output(output, inputs, replace)?;
    let existing = if replace { IfExists::Replace } else { IfExists::Fail };
    // Another process may have published before the lock was taken, so check again under the lock.
    let file = AtomicFile::begin(output, existing, || check_output(output, inputs, replace))?;
    Ok(file.recorded_in(journal_path(output)))
}

/// Removes a file of placed tiles and its journal, if they exist.
pub fn remove_recorded(data: &Path, journal: &Path) -> Result<()> {
    clear_file(journal)?;
    Ok(clear_file(data)?)
}

/// Removes what a run that was killed after it had published `output` left next to it. Nothing is done if another run
/// writes the output.
pub fn clear_leftovers(output: &Path) {
    let hidden = [journal_path(output), temporary_path(output), hidden_sibling(output, ".raddle-lock")];
    if hidden.iter().any(|path| path.exists()) {
        // Files that are not kept are removed when the lock is released.
        let unpublished = AtomicFile::begin(output, IfExists::Replace, || Ok::<(), MergeError>(()));
        drop(unpublished.map(|file| file.recorded_in(journal_path(output))));
    }
}

/// Returns the path of the journal of a run that writes `output`.
pub fn journal_path(output: &Path) -> PathBuf {
    hidden_sibling(output, ".raddle-journal")
}

/// Refuses an output that cannot be written: it is an input, a folder or a special file, it exists and must not be
/// replaced, or its folder is missing or not writable. Nothing is opened or changed, so a run may call this before
/// reading its inputs.
///
/// # Errors
/// [`MergeError::Output`] with the reason and what to do.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<()> {
    raddle_core::output::check::check_output(output, inputs, replace).map_err(refused)
}

/// Refuses a file that cannot be replaced by a new one of the same name without a loss. Nothing is opened or changed.
///
/// # Errors
/// [`MergeError::Output`] with the reason and what to do.
pub(crate) fn check_replaceable(file: &Path) -> Result<()> {
    raddle_core::output::check::check_replaceable(file).map_err(refused)
}

fn refused(UnusableOutput { path, reason }: UnusableOutput) -> MergeError {
    MergeError::Output { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_reports_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let _first = begin_output(&output, &[], false).unwrap();
        assert!(matches!(begin_output(&output, &[], false), Err(MergeError::Locked { .. })));
    }

    #[test]
    fn an_output_that_appears_before_it_is_published_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let publication = begin_output(&output, &[], false).unwrap();
        std::fs::write(publication.path(), b"new").unwrap();
        std::fs::write(&output, b"old").unwrap();
        let refused = MergeError::from(publication.publish().unwrap_err());
        assert!(
            matches!(&refused, MergeError::Write { operation: "rename", path, .. } if *path == output),
            "{refused}"
        );
        assert_eq!(std::fs::read(&output).unwrap(), b"old");
        assert!(matches!(begin_output(&output, &[], false), Err(MergeError::Output { .. })));
    }

    #[test]
    fn an_output_that_is_an_input_is_refused_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let (input, link, hard) =
            (folder.path().join("in.h5"), folder.path().join("link.h5"), folder.path().join("hard.h5"));
        std::fs::write(&input, b"data").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        std::fs::hard_link(&input, &hard).unwrap();
        for output in [&input, &link, &hard] {
            let refused = begin_output(output, std::slice::from_ref(&input), true);
            assert!(refused.unwrap_err().to_string().contains("is also an input"), "{}", output.display());
        }
        assert!(begin_output(Path::new("/dev/full"), &[], true).is_err());
        assert!(begin_output(folder.path(), &[], true).is_err());
        assert!(begin_output(&folder.path().join("none/out.h5"), &[], true).is_err());
    }
}
