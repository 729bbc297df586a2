//! The folder of a preview: written under a hidden name and published together with its output.
//!
//! The contents are written elsewhere. Invariant: a preview that was moved aside is restored unless the output has been
//! replaced; a folder is replaced only if it contains nothing but datasets and is marked as the preview of this output.

use crate::error::{IdxError, Result};
use crate::write::publish::{holds_blocks_alone, write};
use raddle_core::output::durability::sync_folders;
use raddle_core::output::publish::{IfExists, hidden_path, remove_any, rename_new};
use raddle_core::output::{OutputLock, folder_of, hidden_sibling, sync_folder};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// File in a preview that names its output: by file name if both lie in the same folder, so that they can be moved
/// together, otherwise by absolute path.
const OWNER_FILE: &str = ".preview-of";

/// A locked preview folder that is being written.
#[derive(Debug)]
pub struct PreviewFolder {
    folder: PathBuf,
    /// Output that the preview belongs to.
    output: PathBuf,
    staging: PathBuf,
    /// Path of the older preview while folders are renamed.
    aside: PathBuf,
    existing: IfExists,
    _lock: OutputLock,
}

impl PreviewFolder {
    /// Refuses a folder that exists, or that is not the preview of `output`. Changes nothing, so a run may call it
    /// before it begins.
    ///
    /// # Errors
    /// If the folder is refused or cannot be read.
    pub fn check(folder: &Path, output: &Path, existing: IfExists) -> Result<()> {
        let path = folder.to_path_buf();
        if folder.symlink_metadata().is_err() {
            return Ok(());
        }
        if existing == IfExists::Fail {
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

    /// Takes the lock on `folder`, the preview of `output`, and removes the remains of a killed run.
    ///
    /// # Errors
    /// If another process holds the lock, the folder is taken, or its parent folder is not writable.
    pub fn begin(folder: &Path, output: &Path, existing: IfExists) -> Result<Self> {
        if folder.file_name().is_none() {
            let source = std::io::Error::new(ErrorKind::InvalidInput, "not the name of a folder");
            return Err(write(folder, "make")(source));
        }
        let lock = OutputLock::take(folder)?;
        Self::check(folder, output, existing)?;
        let (staging, aside) = (hidden_path(folder), hidden_sibling(folder, ".raddle-old"));
        for path in [&staging, &aside] {
            clear(path)?;
        }
        let (folder, output) = (folder.to_path_buf(), output.to_path_buf());
        Ok(Self { folder, output, staging, aside, existing, _lock: lock })
    }

    /// Creates the hidden folder.
    pub(super) fn make(&self) -> Result<()> {
        std::fs::create_dir(&self.staging).map_err(write(&self.staging, "make"))?;
        let owner = self.staging.join(OWNER_FILE);
        let written = File::create_new(&owner).and_then(|mut file| {
            file.write_all(&owner_text(&self.folder, &self.output))?;
            file.sync_all()
        });
        written.map_err(write(&owner, "write"))
    }

    /// Returns the path of a file in the hidden folder.
    pub(super) fn staged_path(&self, name: &str) -> PathBuf {
        self.staging.join(name)
    }

    /// Makes the written files durable and moves an older preview aside. Must be called before the output is published.
    ///
    /// # Errors
    /// If that fails; the older preview stays in place.
    pub fn withdraw(&self) -> Result<()> {
        sync_folders(&self.staging).map_err(write(&self.staging, "fsync"))?;
        Self::check(&self.folder, &self.output, self.existing)?;
        match std::fs::rename(&self.folder, &self.aside) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(write(&self.folder, "put aside")(source)),
            _ => sync_folder(&self.folder).map_err(write(&self.folder, "fsync the folder of")),
        }
    }

    /// Renames the preview to its final name and removes the older one. Must be called after the output is published.
    ///
    /// # Errors
    /// If that fails; then no preview exists.
    pub fn publish(&self) -> Result<()> {
        let (from, to) = (&self.staging, &self.folder);
        let renamed = rename_new(from, to);
        // The older preview does not belong to the new output, so it is removed whether or not the rename succeeded.
        let removed = clear(&self.aside);
        renamed.map_err(|error| write(to, "rename")(error.into()))?;
        removed?;
        sync_folder(to).map_err(write(to, "fsync the folder of"))
    }
}

impl Drop for PreviewFolder {
    fn drop(&mut self) {
        // Failures to clean up must not hide the first error; the next run cleans up.
        let _ = clear(&self.staging);
        if self.folder.symlink_metadata().is_err() {
            let _ = std::fs::rename(&self.aside, &self.folder);
        }
    }
}

fn clear(path: &Path) -> Result<()> {
    match remove_any(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(write(path, "remove")(source)),
        _ => Ok(()),
    }
}

/// Contents of [`OWNER_FILE`] for the preview of `output` in `folder`.
fn owner_text(folder: &Path, output: &Path) -> Vec<u8> {
    let real = |path: &Path| folder_of(path).canonicalize().unwrap_or_else(|_| folder_of(path).to_path_buf());
    let (output_folder, name) = (real(output), output.file_name().unwrap_or_default());
    let owner = if output_folder == real(folder) { PathBuf::from(name) } else { output_folder.join(name) };
    owner.into_os_string().as_bytes().to_vec()
}

/// Returns whether `folder` is a folder that contains only `.idx` files, folders of blocks and leftovers of their
/// writer.
fn holds_datasets_alone(folder: &Path) -> std::io::Result<bool> {
    if !folder.symlink_metadata()?.is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_dataset = match path.symlink_metadata()?.is_dir() {
            true => holds_blocks_alone(&path, ".bin")?,
            // A leftover lock file does not block anyone.
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
