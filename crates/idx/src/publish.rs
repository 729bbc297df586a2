//! Giving the files of a time step their names: made in a hidden folder beside the `.idx` file, renamed when all are whole.
//!
//! Not for what is in the files. Invariant: under the names of a step is what was there before, or the whole new step; with
//! a template that gives steps a folder of their own, as the default does, that is one rename. The first step of a dataset
//! takes the place of the whole one that was there, older steps and all, also by one rename. No `.idx` file lies beside
//! blocks of another layout than it says.

use crate::durability::Durability;
use crate::error::{IdxError, Result, TimeFault};
use crate::header::Header;
use crate::reader::Dataset;
use crate::step::StepPlan;
use raddle_core::output::{OutputLock, beside, folder_of};
use rustix::fs::RenameFlags;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What to do where the output is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    Refuse,
    /// Put the new one in its place.
    Replace,
}

/// The hidden folder in which the steps of the dataset at `output` are made.
pub(crate) fn staging_folder(output: &Path) -> PathBuf {
    beside(output, ".raddle-part")
}

/// The hidden folder in which a step is made, and the right to write the dataset.
#[derive(Debug)]
pub(crate) struct Staging {
    output: PathBuf,
    existing: Existing,
    folder: PathBuf,
    target: PathBuf,
    /// Whether other steps stay beside this one.
    continues: bool,
    durability: Durability,
    _lock: OutputLock,
}

impl Staging {
    /// Takes the lock on `output`, looks whether the step's names are free, and makes the folders of its files. The step is
    /// one more of a dataset that `continues`, or the first of a new one.
    pub(crate) fn begin(
        output: &Path,
        (step, header): (&StepPlan, &Header),
        (existing, durability): (Existing, Durability),
        continues: bool,
    ) -> Result<Self> {
        let lock = OutputLock::take(output)?;
        let (folder, target) = (staging_folder(output), folder_of(output).to_path_buf());
        if existing == Existing::Refuse
            && let Some(error) = in_the_way(output, step, header, continues)
        {
            return Err(error);
        }
        // What a killed run left.
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

    /// Gives the step files that it keeps, which lie under their names: by links, or where there are none by copies.
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

    /// Gives the files their names: the folder that is all theirs at once, or one by one. The lock stays. A dataset of
    /// another layout loses its `.idx` file before that, since it would have the new blocks read in the wrong places.
    pub(crate) fn publish(&self, step: &StepPlan, header: &Header) -> Result<()> {
        let places = || names(step, self.continues).map(|name| (self.folder.join(name), self.target.join(name)));
        for (from, to) in places() {
            self.durability.folders_made(&from).map_err(write(&from, "fsync"))?;
            let folder = folder_of(&to);
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            if self.existing == Existing::Replace
                && to.symlink_metadata().is_ok()
                && !holds_blocks_alone(&to, header.files.ending()).map_err(write(&to, "list"))?
            {
                return Err(IdxError::Foreign { path: to });
            }
        }
        if self.existing == Existing::Replace {
            withdraw_other(&self.output, header, self.durability).map_err(write(&self.output, "remove"))?;
        }
        for (from, to) in places() {
            let rename = |flags| rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, flags);
            match rename(RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) if self.existing == Existing::Refuse => {
                    return Err(IdxError::Exists { path: to });
                }
                // The old one takes the place of the new one and goes with the hidden folder.
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

/// What is renamed.
fn names(step: &StepPlan, continues: bool) -> Box<dyn Iterator<Item = &Path> + '_> {
    if continues { Box::new(step.names()) } else { Box::new(step.names_alone()) }
}

/// The error about what has a step's names, if anything has.
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
        // A failure to clean up must not hide the error that led here; the next run clears again.
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

/// Whether there is nothing below `path` but files that are named as those of blocks, so that replacing loses no others.
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

/// Removes the `.idx` file at `output` if it is not one by which blocks of `header` can be read.
fn withdraw_other(output: &Path, header: &Header, durability: Durability) -> std::io::Result<()> {
    if Dataset::open(output).is_ok_and(|there| there.header().difference(header).is_none()) {
        return Ok(());
    }
    match std::fs::remove_file(output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => durability.names_changed(output),
    }
}

/// Writes the `.idx` file: a temporary name, fsync, rename.
pub(crate) fn write_header(path: &Path, header: &Header, durability: Durability) -> Result<()> {
    let temporary = beside(path, ".raddle-header");
    let made = write_whole(&temporary, &header.to_text(), durability);
    let made = made.and_then(|()| std::fs::rename(&temporary, path).map_err(write(path, "rename")));
    if made.is_err() {
        // It must not hide the error; the next run writes over it.
        let _ = std::fs::remove_file(&temporary);
    }
    made?;
    durability.names_changed(path).map_err(write(path, "fsync the folder of"))
}

/// Writes a file of `text`.
pub(crate) fn write_whole(path: &Path, text: &str, durability: Durability) -> Result<()> {
    let mut file = File::create(path).map_err(write(path, "create"))?;
    file.write_all(text.as_bytes()).map_err(write(path, "write"))?;
    durability.finish(file).map_err(write(path, durability.finishing()))
}
