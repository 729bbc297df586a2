//! Publication of the files of a time step: they are written in a hidden folder next to the `.idx` file and renamed
//! once complete.
//!
//! The contents of the files are written elsewhere. Invariant: the names of a step refer to the previous step or to the
//! whole new step; if the template gives each step a separate folder, as the default does, publishing is a single
//! rename. The first step of a dataset replaces an existing dataset with all its steps, also by a single rename. An
//! `.idx` file never lies next to blocks of a layout other than its own.

use crate::dataset::header::Header;
use crate::error::{IdxError, Result, TimeFault};
use crate::read::reader::Dataset;
use crate::write::step_plan::StepPlan;
use raddle_core::output::durability::Durability;
use raddle_core::output::{OutputLock, beside, folder_of};
use rustix::fs::RenameFlags;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Treatment of an existing output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Fail and keep the existing output.
    Fail,
    /// Replace the existing output.
    Replace,
}

/// Returns the hidden folder in which the steps of the dataset at `output` are written.
pub(crate) fn staging_folder(output: &Path) -> PathBuf {
    beside(output, ".raddle-part")
}

/// Hidden folder in which a step is written, with the lock on the dataset.
#[derive(Debug)]
pub(crate) struct Staging {
    output: PathBuf,
    existing: IfExists,
    folder: PathBuf,
    target: PathBuf,
    /// Whether the dataset keeps its other steps.
    continues: bool,
    durability: Durability,
    _lock: OutputLock,
}

impl Staging {
    /// Takes the lock on `output`, checks that the step's names are free, and creates the folders of its files. The
    /// step is added to a dataset that `continues`, or is the first of a new one.
    pub(crate) fn begin(
        output: &Path,
        (step, header): (&StepPlan, &Header),
        (existing, durability): (IfExists, Durability),
        continues: bool,
    ) -> Result<Self> {
        let lock = OutputLock::take(output)?;
        let (folder, target) = (staging_folder(output), folder_of(output).to_path_buf());
        if existing == IfExists::Fail
            && let Some(error) = in_the_way(output, step, header, continues)
        {
            return Err(error);
        }
        // Left by a killed run.
        match remove(&folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(write(&folder, "clear")(source));
            }
            _ => {}
        }
        std::fs::create_dir(&folder).map_err(write(&folder, "make"))?;
        let output = output.to_path_buf();
        let staging = Self { output, existing, folder, target, continues, durability, _lock: lock };
        let mut made = PathBuf::new();
        for file in &step.files {
            let parent = staging.folder.join(&file.name).parent().map(Path::to_path_buf).unwrap_or_default();
            if parent != made {
                std::fs::create_dir_all(&parent).map_err(write(&parent, "make"))?;
                made = parent;
            }
        }
        Ok(staging)
    }

    /// Adds existing files that the step keeps: as hard links, or as copies where links are not supported.
    pub(crate) fn keep<'n>(&self, names: impl Iterator<Item = &'n Path>) -> Result<()> {
        for name in names {
            let (from, to) = (self.target.join(name), self.folder.join(name));
            let folder = folder_of(&to);
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            match std::fs::hard_link(&from, &to) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => {
                    std::fs::copy(&from, &to).map_err(write(&to, "copy"))?;
                    let file = File::options().write(true).open(&to).map_err(write(&to, "open"))?;
                    self.durability.finish(file).map_err(write(&to, self.durability.finishing()))?;
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Renames the files to their final names: the step's folder in one rename if it has one, otherwise each file. The
    /// lock is kept. A dataset of another layout loses its `.idx` file first, because that file would place the new
    /// blocks wrongly.
    pub(crate) fn publish(&self, step: &StepPlan, header: &Header) -> Result<()> {
        let places = || names(step, self.continues).map(|name| (self.folder.join(name), self.target.join(name)));
        for (from, to) in places() {
            self.durability.folders_made(&from).map_err(write(&from, "fsync"))?;
            let folder = folder_of(&to);
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            if self.existing == IfExists::Replace
                && to.symlink_metadata().is_ok()
                && !holds_blocks_alone(&to, header.files.ending()).map_err(write(&to, "list"))?
            {
                return Err(IdxError::Foreign { path: to });
            }
        }
        if self.existing == IfExists::Replace {
            withdraw_other(&self.output, header, self.durability).map_err(write(&self.output, "remove"))?;
        }
        for (from, to) in places() {
            let rename = |flags| rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, flags);
            match rename(RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) if self.existing == IfExists::Fail => {
                    return Err(IdxError::Exists { path: to });
                }
                // The old folder is exchanged with the new one and removed with the hidden folder.
                Err(rustix::io::Errno::EXIST) => {
                    rename(RenameFlags::EXCHANGE).map_err(|error| write(&to, "replace")(error.into()))?;
                }
                Err(error) => return Err(write(&to, "rename")(error.into())),
            }
            self.durability.names_changed(&to).map_err(write(folder_of(&to), "fsync"))?;
        }
        Ok(())
    }
}

/// Names that are renamed on publication.
fn names(step: &StepPlan, continues: bool) -> Box<dyn Iterator<Item = &Path> + '_> {
    if continues { Box::new(step.names()) } else { Box::new(step.names_alone()) }
}

/// Returns the error for an existing file or folder with one of the step's names, if there is one.
pub(crate) fn in_the_way(output: &Path, step: &StepPlan, header: &Header, continues: bool) -> Option<IdxError> {
    let mut places = names(step, continues).map(|name| folder_of(output).join(name));
    let path = places.find(|place| place.symlink_metadata().is_ok())?;
    Some(match holds_blocks_alone(&path, header.files.ending()) {
        // It would not be replaced either.
        Ok(false) => IdxError::Foreign { path },
        _ if continues && header.time.is_some() => IdxError::StepExists { path },
        _ if continues => IdxError::NoTime { path: output.to_path_buf(), fault: TimeFault::NotAdded },
        _ => IdxError::Exists { path },
    })
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A failure to clean up must not hide the first error; the next run cleans up.
        let _ = remove(&self.folder);
    }
}

pub(crate) fn write(path: &Path, operation: &'static str) -> impl FnOnce(std::io::Error) -> IdxError + use<> {
    let path = path.to_path_buf();
    move |source| IdxError::Write { path, operation, source }
}

pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Whether `path` contains only files named like files of blocks, so that replacing it loses nothing else.
pub(crate) fn holds_blocks_alone(path: &Path, ending: &str) -> std::io::Result<bool> {
    let metadata = path.symlink_metadata()?;
    if metadata.is_file() {
        return Ok(path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending)));
    }
    if !metadata.is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(path)? {
        if !holds_blocks_alone(&entry?.path(), ending)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the `.idx` file at `output` if blocks of `header` cannot be read with it.
fn withdraw_other(output: &Path, header: &Header, durability: Durability) -> std::io::Result<()> {
    if Dataset::open(output).is_ok_and(|there| there.header().difference(header).is_none()) {
        return Ok(());
    }
    match std::fs::remove_file(output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => durability.names_changed(output),
    }
}

/// Writes the `.idx` file: temporary name, fsync, rename.
pub(crate) fn write_header(path: &Path, header: &Header, durability: Durability) -> Result<()> {
    let temporary = beside(path, ".raddle-header");
    let made = write_whole(&temporary, &header.to_text(), durability);
    let made = made.and_then(|()| std::fs::rename(&temporary, path).map_err(write(path, "rename")));
    if made.is_err() {
        // A failure here must not hide the first error; the next run overwrites the file.
        let _ = std::fs::remove_file(&temporary);
    }
    made?;
    durability.names_changed(path).map_err(write(path, "fsync the folder of"))
}

/// Writes a file with the contents `text`.
pub(crate) fn write_whole(path: &Path, text: &str, durability: Durability) -> Result<()> {
    let mut file = File::create(path).map_err(write(path, "create"))?;
    file.write_all(text.as_bytes()).map_err(write(path, "write"))?;
    durability.finish(file).map_err(write(path, durability.finishing()))
}
