//! Publication of the files of a time step: they are written in a hidden folder next to the `.idx` file and renamed
//! once complete.
//!
//! The contents of the files are written elsewhere. Invariant: the names of a step refer to the previous step or to the
//! whole new step; if the template gives each step a separate folder, as the default does, publishing is a single
//! rename. The first step of a dataset replaces an existing dataset with all its steps, also by a single rename. An
//! `.idx` file never lies next to blocks of a layout other than its own.

use crate::dataset::header::Header;
use crate::error::{IdxError, Result, TimeFault};
use crate::read::dataset::Dataset;
use crate::write::step_plan::StepPlan;
use raddle_core::output::durability::Durability;
use raddle_core::output::publish::{AtomicDir, IfExists, PublishError};
use raddle_core::output::{folder_of, hidden_sibling};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Hidden folder in which a step is written, with the lock on the dataset.
#[derive(Debug)]
pub(crate) struct Staging {
    output: PathBuf,
    folder: AtomicDir,
    /// Whether the dataset keeps its other steps.
    continues: bool,
}

impl Staging {
    /// Takes the lock on `output`, checks that the step's names are free, and creates the folders of its files. The
    /// step is added to an existing dataset if `continues`, and is otherwise the first of a new one.
    pub(crate) fn begin(
        output: &Path,
        (step, header): (&StepPlan, &Header),
        how: (IfExists, Durability),
        continues: bool,
    ) -> Result<Self> {
        let check = || match how.0 {
            IfExists::Fail => in_the_way(output, step, header, continues).map_or(Ok(()), Err),
            IfExists::Replace => Ok(()),
        };
        let folder = AtomicDir::begin(output, how, check)?;
        let mut last_created = PathBuf::new();
        for file in &step.files {
            let parent = folder.path().join(&file.name).parent().map(Path::to_path_buf).unwrap_or_default();
            if parent != last_created {
                std::fs::create_dir_all(&parent).map_err(write(&parent, "make"))?;
                last_created = parent;
            }
        }
        Ok(Self { output: output.to_path_buf(), folder, continues })
    }

    /// Adds existing files that the step keeps: as hard links, or as copies where links are not supported.
    pub(crate) fn keep<'n>(&self, names: impl Iterator<Item = &'n Path>) -> Result<()> {
        let durability = self.folder.durability();
        for name in names {
            let (from, to) = (folder_of(&self.output).join(name), self.folder.path().join(name));
            let folder = folder_of(&to);
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            match std::fs::hard_link(&from, &to) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => {
                    std::fs::copy(&from, &to).map_err(write(&to, "copy"))?;
                    let file = File::options().write(true).open(&to).map_err(write(&to, "open"))?;
                    durability.finish(file).map_err(write(&to, durability.finishing()))?;
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
        let target = folder_of(&self.output);
        let places = || names(step, self.continues).map(|name| (self.folder.path().join(name), target.join(name)));
        let replaces = self.folder.existing() == IfExists::Replace;
        for (from, to) in places() {
            self.folder.sync(&from)?;
            let folder = folder_of(&to);
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            if replaces
                && to.symlink_metadata().is_ok()
                && !holds_blocks_alone(&to, header.files.ending()).map_err(write(&to, "list"))?
            {
                return Err(IdxError::Foreign { path: to });
            }
        }
        if replaces {
            withdraw_other(&self.output, header, self.folder.durability()).map_err(write(&self.output, "remove"))?;
        }
        for (from, to) in places() {
            self.folder.rename(&from, &to, |_| Ok::<_, PublishError>(()))?;
        }
        Ok(())
    }
}

/// Returns the names that are renamed on publication.
fn names(step: &StepPlan, continues: bool) -> Box<dyn Iterator<Item = &Path> + '_> {
    if continues { Box::new(step.names()) } else { Box::new(step.names_alone()) }
}

/// Returns the error for an existing file or folder with one of the step's names; `None` if there is none.
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

pub(crate) fn write(path: &Path, operation: &'static str) -> impl FnOnce(std::io::Error) -> IdxError + use<> {
    let path = path.to_path_buf();
    move |source| IdxError::Write { path, operation, source }
}

/// Returns whether `path` contains only files named like files of blocks, in which case replacing it loses nothing
/// else.
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

/// Writes the `.idx` file under a temporary name, syncs it if required, and renames it.
pub(crate) fn write_header(path: &Path, header: &Header, durability: Durability) -> Result<()> {
    let temporary = hidden_sibling(path, ".raddle-header");
    let written = write_whole(&temporary, &header.to_text(), durability);
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path).map_err(write(path, "rename")));
    if renamed.is_err() {
        // A failure here must not hide the first error; the next run overwrites the file.
        let _ = std::fs::remove_file(&temporary);
    }
    renamed?;
    durability.names_changed(path).map_err(write(path, "fsync the folder of"))
}

/// Writes a file with the contents `text`.
pub(crate) fn write_whole(path: &Path, text: &str, durability: Durability) -> Result<()> {
    let mut file = File::create(path).map_err(write(path, "create"))?;
    file.write_all(text.as_bytes()).map_err(write(path, "write"))?;
    durability.finish(file).map_err(write(path, durability.finishing()))
}
