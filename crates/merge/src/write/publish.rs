//! Publication of an output with a lock, a temporary file in the target folder, fsync and rename.
//!
//! The journal for resuming lies next to the temporary file; both are removed with the run unless they are kept.
//! Invariant: the final name refers to the previous file or to the whole new file, never to a partial one.

use crate::error::{MergeError, Result};
use raddle_core::output::{OutputLock, beside, folder_of, sync_folder};
use rustix::fs::{Access, RenameFlags};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The exclusive right to write one output, held until it is published or dropped.
#[derive(Debug)]
pub struct Publication {
    output: PathBuf,
    temporary: PathBuf,
    journal: PathBuf,
    /// Lock that is released last.
    _lock: OutputLock,
    replace: bool,
    /// Whether temporary file and journal remain when this is dropped.
    is_kept: bool,
}

impl Publication {
    /// Takes the lock on `output`, which must not be one of the `inputs` under any name. An existing output is refused
    /// unless `replace` is set. Files of an interrupted run remain: resume from them, or [`Publication::clear`] them.
    pub fn begin(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<Self> {
        check_output(output, inputs, replace)?;
        let lock = OutputLock::take(output)?;
        let mut publication = Self {
            output: output.to_path_buf(),
            temporary: temporary_path(output),
            journal: journal_path(output),
            _lock: lock,
            replace,
            is_kept: true,
        };
        // Another process may have published before the lock was taken, so check again under the lock.
        check_output(output, inputs, replace)?;
        publication.is_kept = false;
        Ok(publication)
    }

    /// Returns the path of the temporary file, which the writer creates.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Returns the path of the journal, which the writer creates.
    pub fn journal(&self) -> &Path {
        &self.journal
    }

    /// Removes the files of an interrupted run.
    pub fn clear(&self) -> Result<()> {
        remove_recorded(&self.temporary, &self.journal)
    }

    /// Releases the output without publishing it; temporary file and journal remain for the next run.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Makes the temporary file durable and renames it to the output. On an error the output's name is unchanged,
    /// except if syncing the folder failed.
    pub fn publish(&self) -> Result<()> {
        let write = |path: &Path, operation: &'static str| {
            let path = path.to_path_buf();
            move |source: std::io::Error| MergeError::Write { path, operation, source }
        };
        let file = File::open(&self.temporary).map_err(write(&self.temporary, "open"))?;
        file.sync_all().map_err(write(&self.temporary, "fsync"))?;
        let flags = if self.replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let (from, to) = (&self.temporary, &self.output);
        match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
            Ok(()) => {}
            // On file systems without RENAME_NOREPLACE, a hard link fails in the same way if the name is taken.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !self.replace => {
                std::fs::hard_link(from, to).map_err(write(to, "link"))?;
                std::fs::remove_file(from).map_err(write(from, "remove"))?;
            }
            Err(error) => return Err(write(to, "rename")(error.into())),
        }
        // The temporary file no longer exists, so a journal that cannot be removed does no harm.
        let _ = std::fs::remove_file(&self.journal);
        sync_folder(&self.output).map_err(write(to, "the file is complete and published, but syncing its folder"))
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        if !self.is_kept {
            // A failure to clean up must not hide the original error; the next run clears again.
            let _ = self.clear();
        }
    }
}

/// Removes a file of placed tiles and its journal, if they exist.
pub fn remove_recorded(data: &Path, journal: &Path) -> Result<()> {
    // The journal is removed first: without it the tiles are not used.
    for path in [journal, data] {
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(MergeError::Write { path: path.to_path_buf(), operation: "remove an old part", source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the path of the temporary file of a run that writes `output`.
pub fn temporary_path(output: &Path) -> PathBuf {
    beside(output, ".raddle-part")
}

/// Returns the path of the journal of a run that writes `output`.
pub fn journal_path(output: &Path) -> PathBuf {
    beside(output, ".raddle-journal")
}

/// Returns the path under which `output` is published: its target, if it is a symbolic link to a file. A rename would
/// replace the link and leave the target unchanged.
pub fn published_path(output: &Path) -> PathBuf {
    match std::fs::symlink_metadata(output) {
        Ok(metadata) if metadata.is_symlink() => std::fs::canonicalize(output).unwrap_or_else(|_| output.to_path_buf()),
        _ => output.to_path_buf(),
    }
}

/// Refuses an output that cannot be written: it is an input, a folder or a special file, it exists and must not be
/// replaced, or its folder is missing or not writable. Nothing is opened or changed, so a run may call this before
/// reading its inputs.
///
/// # Errors
/// [`MergeError::Output`] with the reason and what to do.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<()> {
    let refuse = |reason: String| Err(MergeError::Output { path: output.to_path_buf(), reason });
    if output.file_name().is_none() {
        return refuse("is not a file name; give -o FILE".to_owned());
    }
    let folder = folder_of(output);
    if !folder.is_dir() {
        return refuse(format!("folder {} does not exist; create it first", folder.display()));
    }
    if rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return refuse(format!("folder {} cannot be written to; name another output", folder.display()));
    }
    let Ok(metadata) = std::fs::metadata(output) else {
        return match std::fs::symlink_metadata(output) {
            Ok(_) => refuse("is a broken symbolic link; remove it or name another output".to_owned()),
            Err(_) => Ok(()),
        };
    };
    if metadata.is_dir() {
        return refuse("is a folder; give the name of a file".to_owned());
    }
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        return refuse("is not a regular file; name another output".to_owned());
    }
    for input in inputs {
        if let Ok(input_metadata) = std::fs::metadata(input)
            && (input_metadata.dev(), input_metadata.ino()) == (metadata.dev(), metadata.ino())
        {
            return refuse(format!("is also an input ({}); name another output", input.display()));
        }
    }
    if !replace {
        return refuse("exists; use --force to replace it, or name another output".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishes_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let publication = Publication::begin(&output, &[], false).unwrap();
        std::fs::write(publication.temporary(), b"half").unwrap();
        drop(publication);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a dropped publication leaves nothing");
        let publication = Publication::begin(&output, &[], false).unwrap();
        std::fs::write(publication.temporary(), b"whole").unwrap();
        std::fs::write(publication.journal(), b"a record").unwrap();
        publication.publish().unwrap();
        drop(publication);
        assert_eq!(std::fs::read(&output).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock and no part remain");
    }

    #[test]
    fn what_is_kept_is_found_by_the_next_run_alone() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let publication = Publication::begin(&output, &[], false).unwrap();
        std::fs::write(publication.temporary(), b"half").unwrap();
        std::fs::write(publication.journal(), b"a record").unwrap();
        publication.keep();
        let publication = Publication::begin(&output, &[], false).unwrap();
        assert_eq!(std::fs::read(publication.temporary()).unwrap(), b"half");
        assert_eq!(std::fs::read(publication.journal()).unwrap(), b"a record");
        publication.clear().unwrap();
        assert!(!publication.temporary().exists() && !publication.journal().exists());
    }

    #[test]
    fn a_second_writer_reports_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let _first = Publication::begin(&output, &[], false).unwrap();
        assert!(matches!(Publication::begin(&output, &[], false), Err(MergeError::Locked { .. })));
    }

    #[test]
    fn an_existing_output_is_replaced_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        std::fs::write(&output, b"old").unwrap();
        assert!(matches!(Publication::begin(&output, &[], false), Err(MergeError::Output { .. })));
        let publication = Publication::begin(&output, &[], true).unwrap();
        std::fs::write(publication.temporary(), b"new").unwrap();
        publication.publish().unwrap();
        assert_eq!(std::fs::read(&output).unwrap(), b"new");
    }

    #[test]
    fn an_output_is_published_where_its_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target.h5"), folder.path().join("link.h5"));
        std::os::unix::fs::symlink("target.h5", &link).unwrap();
        assert_eq!(published_path(&link), link, "one that leads nowhere is refused under its own name");
        std::fs::write(&target, b"old").unwrap();
        assert_eq!(published_path(&link), std::fs::canonicalize(&target).unwrap());
        assert_eq!(published_path(&target), target);
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
            let refused = Publication::begin(output, std::slice::from_ref(&input), true);
            assert!(refused.unwrap_err().to_string().contains("is also an input"), "{}", output.display());
        }
        assert!(Publication::begin(Path::new("/dev/full"), &[], true).is_err());
        assert!(Publication::begin(folder.path(), &[], true).is_err());
        assert!(Publication::begin(&folder.path().join("none/out.h5"), &[], true).is_err());
    }
}
