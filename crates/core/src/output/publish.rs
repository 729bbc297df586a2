//! Publication of an output: it is written under a hidden name next to the output and renamed once it is complete.
//!
//! Callers decide what an output contains, what it may replace, and how errors are worded. Invariants: the name of the
//! output refers to the previous file or folder, if any, or to the whole new one; only the process that holds the lock
//! on the output touches the hidden name.

use super::durability::Durability;
use super::{LockError, OutputLock, hidden_sibling, sync_folder};
use rustix::fs::RenameFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Treatment of an existing output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Fail and keep the existing output.
    Fail,
    /// Replace the existing output.
    Replace,
}

impl IfExists {
    /// Refuses an existing output, even if it is a broken link, unless it is to be replaced.
    ///
    /// # Errors
    /// [`PublishError::Exists`].
    pub fn check(self, output: &Path) -> Result<(), PublishError> {
        match self {
            Self::Fail if output.symlink_metadata().is_ok() => Err(PublishError::exists(output)),
            _ => Ok(()),
        }
    }
}

/// Step of a publication that the operating system may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishStep {
    /// Removing what an interrupted run left.
    Clear,
    /// Creating the hidden file.
    CreateFile,
    /// Creating the hidden folder.
    CreateFolder,
    /// Opening the hidden file to sync it.
    Open,
    /// Making the contents durable.
    Sync,
    /// Renaming a file to its final name, or a folder to a free name.
    Rename,
    /// Exchanging with an existing file or folder.
    Exchange,
    /// Linking to a name that is free, where the file system cannot rename to it.
    Link,
    /// Removing the hidden name after linking.
    Unlink,
    /// Making the new name durable. The output is published already.
    SyncName,
}

impl PublishStep {
    /// Returns the operation in a word or two, for errors.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::CreateFile => "create",
            Self::CreateFolder => "make",
            Self::Open => "open",
            Self::Sync => "fsync",
            Self::Rename => "rename",
            Self::Exchange => "replace",
            Self::Link => "link",
            Self::Unlink => "remove",
            Self::SyncName => "fsync the folder of",
        }
    }
}

/// Error of publishing an output.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The output cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The output exists and must not be replaced.
    #[error("{}: {source}", path.display())]
    Exists {
        /// Path of the output.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The operating system refused.
    #[error("{}: {} failed: {source}", path.display(), step.operation())]
    Io {
        /// Step that failed.
        step: PublishStep,
        /// Path of the output, or of the hidden file or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

impl PublishError {
    fn exists(path: &Path) -> Self {
        Self::Exists { path: path.to_path_buf(), source: Errno::EXIST.into() }
    }
}

fn failed<E: Into<std::io::Error>>(step: PublishStep, path: &Path) -> impl FnOnce(E) -> PublishError + use<'_, E> {
    move |source| PublishError::Io { step, path: path.to_path_buf(), source: source.into() }
}

/// A locked output with its hidden name. The file or folder under the hidden name is removed when this is dropped,
/// unless it is kept.
#[derive(Debug)]
struct HiddenOutput {
    output: PathBuf,
    hidden: PathBuf,
    existing: IfExists,
    /// File that describes the unfinished output.
    record: Option<PathBuf>,
    remove: fn(&Path) -> std::io::Result<()>,
    is_kept: bool,
    /// Lock on the output, which is released last.
    _lock: OutputLock,
}

impl HiddenOutput {
    fn begin<E: From<PublishError>>(
        output: &Path,
        existing: IfExists,
        remove: fn(&Path) -> std::io::Result<()>,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let lock = OutputLock::take(output).map_err(PublishError::from)?;
        check()?;
        let (output, hidden) = (output.to_path_buf(), hidden_path(output));
        Ok(Self { output, hidden, existing, record: None, remove, is_kept: false, _lock: lock })
    }

    fn clear(&self) -> Result<(), PublishError> {
        if let Some(record) = &self.record {
            clear_file(record)?;
        }
        cleared((self.remove)(&self.hidden), &self.hidden)
    }
}

impl Drop for HiddenOutput {
    fn drop(&mut self) {
        if !self.is_kept {
            // A failure to clean up must not hide the first error; the next run cleans up.
            let _ = self.clear();
        }
    }
}

/// A locked output file that is not published yet. Unless it is kept, its hidden file is removed when it is dropped.
#[derive(Debug)]
pub struct AtomicFile(HiddenOutput);

impl AtomicFile {
    /// Takes the lock on `output`, then calls `check`, which refuses an output that must not be written. Files of an
    /// interrupted run remain until [`AtomicFile::clear`].
    ///
    /// # Errors
    /// If another process holds the lock, the folder is not writable, or `check` fails.
    pub fn begin<E: From<PublishError>>(
        output: &Path,
        existing: IfExists,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        HiddenOutput::begin(output, existing, |path| std::fs::remove_file(path), check).map(Self)
    }

    /// Names a file that describes the unfinished output. It is removed before the hidden file, and kept with it.
    #[must_use]
    pub fn recorded_in(mut self, record: PathBuf) -> Self {
        self.0.record = Some(record);
        self
    }

    /// Returns the path of the hidden file.
    pub fn path(&self) -> &Path {
        &self.0.hidden
    }

    /// Removes the files of an interrupted run.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn clear(&self) -> Result<(), PublishError> {
        self.0.clear()
    }

    /// Creates the hidden file, after removing that of an interrupted run.
    ///
    /// # Errors
    /// If it cannot be removed or created.
    pub fn create(&self) -> Result<File, PublishError> {
        self.clear()?;
        let created = File::options().read(true).write(true).create_new(true).open(self.path());
        created.map_err(failed(PublishStep::CreateFile, self.path()))
    }

    /// Releases the output without publishing it. The hidden file and its record remain for the next run.
    pub fn keep(mut self) {
        self.0.is_kept = true;
    }

    /// Makes the hidden file durable and publishes it.
    ///
    /// # Errors
    /// As for [`AtomicFile::publish_synced`], or if the file cannot be synced.
    pub fn publish(&self) -> Result<(), PublishError> {
        let file = File::open(self.path()).map_err(failed(PublishStep::Open, self.path()))?;
        file.sync_all().map_err(failed(PublishStep::Sync, self.path()))?;
        self.publish_synced()
    }

    /// Renames the hidden file, which is durable already, to the output, and makes that name durable.
    ///
    /// # Errors
    /// If the output exists and must not be replaced, or the system refuses. The name of the output is then unchanged,
    /// except for [`PublishStep::SyncName`].
    pub fn publish_synced(&self) -> Result<(), PublishError> {
        let (from, to) = (self.path(), self.0.output.as_path());
        match self.0.existing {
            IfExists::Fail => rename_new(from, to).or_else(|error| match error {
                Errno::EXIST => Err(PublishError::exists(to)),
                Errno::INVAL | Errno::NOSYS => link_new(from, to),
                error => Err(failed(PublishStep::Rename, to)(error)),
            })?,
            IfExists::Replace => std::fs::rename(from, to).map_err(failed(PublishStep::Rename, to))?,
        }
        if let Some(record) = &self.0.record {
            // Without the hidden file, a record that cannot be removed does no harm.
            let _ = std::fs::remove_file(record);
        }
        sync_folder(to).map_err(failed(PublishStep::SyncName, to))
    }
}

/// A locked output folder that is not published yet. Its hidden folder is removed when it is dropped, together with the
/// files and folders that its entries have replaced.
#[derive(Debug)]
pub struct AtomicDir {
    unpublished: HiddenOutput,
    durability: Durability,
}

impl AtomicDir {
    /// Takes the lock on `output`, then calls `check`, which refuses an output that must not be written, and creates
    /// the hidden folder in place of that of an interrupted run.
    ///
    /// # Errors
    /// If another process holds the lock, the folder cannot be created, or `check` fails.
    pub fn begin<E: From<PublishError>>(
        output: &Path,
        (existing, durability): (IfExists, Durability),
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let unpublished = HiddenOutput::begin(output, existing, remove_any, check)?;
        unpublished.clear()?;
        let hidden = &unpublished.hidden;
        std::fs::create_dir(hidden).map_err(failed(PublishStep::CreateFolder, hidden))?;
        Ok(Self { unpublished, durability })
    }

    /// Returns the path of the hidden folder.
    pub fn path(&self) -> &Path {
        &self.unpublished.hidden
    }

    /// Returns what happens to existing files and folders.
    pub fn existing(&self) -> IfExists {
        self.unpublished.existing
    }

    /// Returns whether contents and names are made durable.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Publishes the folder as the output. `may_replace` refuses an existing output that must be kept.
    ///
    /// # Errors
    /// If the output exists and must not be replaced, or the system refuses. The name of the output is then unchanged,
    /// except for [`PublishStep::SyncName`].
    pub fn publish<E: From<PublishError>>(&self, may_replace: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
        self.sync(self.path())?;
        self.rename(self.path(), &self.unpublished.output, may_replace)
    }

    /// Makes the folders at and below `entry` of the hidden folder durable, if required; files are finished already.
    ///
    /// # Errors
    /// If a folder cannot be synced.
    pub fn sync(&self, entry: &Path) -> Result<(), PublishError> {
        self.durability.folders_created(entry).map_err(failed(PublishStep::Sync, entry))
    }

    /// Renames `from`, an entry of the hidden folder, to `to`, and makes that name durable, if required. An existing
    /// file or folder moves into the hidden folder if `may_replace` permits it.
    ///
    /// # Errors
    /// As for [`AtomicDir::publish`].
    pub fn rename<E: From<PublishError>>(
        &self,
        from: &Path,
        to: &Path,
        may_replace: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        match rename_new(from, to) {
            Ok(()) => {}
            Err(Errno::EXIST) if self.existing() == IfExists::Fail => return Err(PublishError::exists(to).into()),
            Err(Errno::EXIST) => {
                may_replace(to)?;
                rename(from, to, RenameFlags::EXCHANGE).map_err(failed(PublishStep::Exchange, to))?;
            }
            Err(error) => return Err(failed(PublishStep::Rename, to)(error).into()),
        }
        Ok(self.durability.names_changed(to).map_err(failed(PublishStep::SyncName, to))?)
    }
}

/// Returns the hidden path at which `output` is written.
pub fn hidden_path(output: &Path) -> PathBuf {
    hidden_sibling(output, ".raddle-part")
}

/// Returns the path under which `output` is published: the target if `output` is a symbolic link whose target exists,
/// otherwise `output` itself. A rename would replace the link and leave the target unchanged.
pub fn published_path(output: &Path) -> PathBuf {
    match std::fs::symlink_metadata(output) {
        Ok(metadata) if metadata.is_symlink() => std::fs::canonicalize(output).unwrap_or_else(|_| output.to_path_buf()),
        _ => output.to_path_buf(),
    }
}

/// Removes a file of an interrupted run, if it exists.
///
/// # Errors
/// If it cannot be removed.
pub fn clear_file(path: &Path) -> Result<(), PublishError> {
    cleared(std::fs::remove_file(path), path)
}

fn cleared(removed: std::io::Result<()>, path: &Path) -> Result<(), PublishError> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(PublishStep::Clear, path)(error)),
        _ => Ok(()),
    }
}

/// Removes a file, or a folder with its contents.
///
/// # Errors
/// If it does not exist or cannot be removed.
pub fn remove_any(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Renames a file or folder to a name that must be free.
///
/// # Errors
/// `EXIST` if the name is taken; `INVAL` or `NOSYS` if the file system cannot do this.
pub fn rename_new(from: &Path, to: &Path) -> Result<(), Errno> {
    rename(from, to, RenameFlags::NOREPLACE)
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), Errno> {
    rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags)
}

/// Renames a file as [`rename_new`] does, through a hard link, which also fails if the name is taken.
fn link_new(from: &Path, to: &Path) -> Result<(), PublishError> {
    std::fs::hard_link(from, to).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => PublishError::exists(to),
        _ => failed(PublishStep::Link, to)(error),
    })?;
    std::fs::remove_file(from).map_err(failed(PublishStep::Unlink, from))
}

#[cfg(all(test, not(loom)))]
mod tests;
