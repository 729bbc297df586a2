//! The folder of a preview: made under a hidden name, and given its own together with the output that it belongs to.
//!
//! Not for what is in it. Invariant: a preview that is put aside comes back unless the output has been replaced; a folder is
//! replaced only if it holds nothing but datasets and says that they are the preview of this very output.

use crate::durability::sync_folders;
use crate::error::{IdxError, Result};
use crate::publish::{Existing, holds_blocks_alone, remove, write};
use raddle_core::output::{OutputLock, beside, folder_of, sync_folder};
use rustix::fs::RenameFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file in a preview that names its output: by its file name if both lie in the same folder, so that they can be moved
/// together, else by its absolute path.
const OWNER_FILE: &str = ".preview-of";

/// The right to write the preview in a folder.
#[derive(Debug)]
pub struct PreviewFolder {
    folder: PathBuf,
    /// The output whose preview it is.
    output: PathBuf,
    staging: PathBuf,
    /// Where the older one is while names change.
    aside: PathBuf,
    existing: Existing,
    _lock: OutputLock,
}

impl PreviewFolder {
    /// Refuses a folder that exists, or that is not the preview of `output`. Nothing is changed, so that a run may ask before
    /// it begins.
    ///
    /// # Errors
    /// As said.
    pub fn check(folder: &Path, output: &Path, existing: Existing) -> Result<()> {
        let path = folder.to_path_buf();
        if folder.symlink_metadata().is_err() {
            return Ok(());
        }
        if existing == Existing::Refuse {
            return Err(IdxError::Exists { path });
        }
        if !holds_datasets_alone(folder).map_err(write(folder, "list"))? {
            return Err(IdxError::Foreign { path });
        }
        let is_empty = std::fs::read_dir(folder).map_err(write(folder, "list"))?.next().is_none();
        match std::fs::read(folder.join(OWNER_FILE)) {
            Ok(owner) if owner == owner_text(folder, output) => Ok(()),
            Ok(owner) => Err(IdxError::OtherPreview { path, owner: Some(OsStr::from_bytes(&owner).into()) }),
            Err(_) if is_empty => Ok(()),
            Err(_) => Err(IdxError::OtherPreview { path, owner: None }),
        }
    }

    /// Takes the lock on `folder`, the preview of `output`, and removes what a killed run left.
    ///
    /// # Errors
    /// If another process has the lock, the folder is taken, or the one that it lies in cannot be written to.
    pub fn begin(folder: &Path, output: &Path, existing: Existing) -> Result<Self> {
        if folder.file_name().is_none() {
            let source = std::io::Error::new(ErrorKind::InvalidInput, "not the name of a folder");
            return Err(write(folder, "make")(source));
        }
        let lock = OutputLock::take(folder)?;
        Self::check(folder, output, existing)?;
        let (staging, aside) = (beside(folder, ".raddle-part"), beside(folder, ".raddle-old"));
        for path in [&staging, &aside] {
            remove_any(path)?;
        }
        let (folder, output) = (folder.to_path_buf(), output.to_path_buf());
        Ok(Self { folder, output, staging, aside, existing, _lock: lock })
    }

    /// Makes the hidden folder.
    pub(super) fn make(&self) -> Result<()> {
        std::fs::create_dir(&self.staging).map_err(write(&self.staging, "make"))?;
        let owner = self.staging.join(OWNER_FILE);
        let written = File::create_new(&owner).and_then(|mut file| {
            file.write_all(&owner_text(&self.folder, &self.output))?;
            file.sync_all()
        });
        written.map_err(write(&owner, "write"))
    }

    /// Path of a file in it.
    pub(super) fn made(&self, name: &str) -> PathBuf {
        self.staging.join(name)
    }

    /// Makes what was written durable, and puts an older preview aside. To be called before the output gets its name.
    ///
    /// # Errors
    /// If that cannot be done; the older preview is where it was.
    pub fn withdraw(&self) -> Result<()> {
        sync_folders(&self.staging).map_err(write(&self.staging, "fsync"))?;
        Self::check(&self.folder, &self.output, self.existing)?;
        match std::fs::rename(&self.folder, &self.aside) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(write(&self.folder, "put aside")(source)),
            _ => sync_folder(&self.folder).map_err(write(&self.folder, "fsync the folder of")),
        }
    }

    /// Gives the preview its name, and removes the older one. To be called when the output has its name.
    ///
    /// # Errors
    /// If that cannot be done; there is no preview then.
    pub fn publish(&self) -> Result<()> {
        let (from, to) = (&self.staging, &self.folder);
        let renamed = rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, RenameFlags::NOREPLACE);
        // Whatever came of it: the older one is not of the output that is there now.
        let removed = remove_any(&self.aside);
        renamed.map_err(|error| write(to, "rename")(error.into()))?;
        removed?;
        sync_folder(to).map_err(write(to, "fsync the folder of"))
    }
}

impl Drop for PreviewFolder {
    fn drop(&mut self) {
        // Failures to clean up must not hide the error that led here; the next run clears again.
        let _ = remove_any(&self.staging);
        if self.folder.symlink_metadata().is_err() {
            let _ = std::fs::rename(&self.aside, &self.folder);
        }
    }
}

fn remove_any(path: &Path) -> Result<()> {
    match remove(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(write(path, "remove")(source)),
        _ => Ok(()),
    }
}

/// What [`OWNER_FILE`] of the preview of `output` in `folder` says.
fn owner_text(folder: &Path, output: &Path) -> Vec<u8> {
    let real = |path: &Path| folder_of(path).canonicalize().unwrap_or_else(|_| folder_of(path).to_path_buf());
    let (own, name) = (real(output), output.file_name().unwrap_or_default());
    let owner = if own == real(folder) { PathBuf::from(name) } else { own.join(name) };
    owner.into_os_string().as_bytes().to_vec()
}

/// Whether `folder` is one and holds nothing but `.idx` files, folders of blocks and what their writer may leave.
fn holds_datasets_alone(folder: &Path) -> std::io::Result<bool> {
    if !folder.symlink_metadata()?.is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_dataset = match path.symlink_metadata()?.is_dir() {
            true => holds_blocks_alone(&path, ".bin")?,
            // A lock that could not be removed locks nobody out.
            false => {
                path.extension().is_some_and(|ending| ending == "idx" || ending == "raddle-lock")
                    || path.file_name().is_some_and(|name| name == OWNER_FILE)
            }
        };
        if !is_dataset {
            return Ok(false);
        }
    }
    Ok(true)
}
