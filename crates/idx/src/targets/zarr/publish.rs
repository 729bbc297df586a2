//! Publication of a folder of images: it is written as a hidden folder next to the output and renamed once complete.
//!
//! The contents of shards are written elsewhere. Invariant: the name refers to the previous folder or to the whole new
//! one.

use super::metadata::{self, FILE_NAME};
use super::plan::ShardPlan;
use crate::error::{IdxError, Result};
use crate::write::publish::{write, write_whole};
use raddle_core::engine::Sink;
use raddle_core::output::close;
use raddle_core::output::durability::Durability;
use raddle_core::output::publish::{AtomicDir, IfExists, hidden_path};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The hidden folder that becomes the output, with the lock on the output.
#[derive(Debug)]
pub(crate) struct Staging(AtomicDir);

impl Staging {
    /// Takes the lock on `output`, checks that its name is free, and creates the hidden folder.
    pub(crate) fn begin(output: &Path, how: (IfExists, Durability)) -> Result<Self> {
        let check = || {
            how.0.check(output)?;
            if output.symlink_metadata().is_ok() { refuse_foreign(output) } else { Ok(()) }
        };
        AtomicDir::begin(output, how, check).map(Self)
    }

    /// Writes a `zarr.json` to a folder of the output.
    pub(crate) fn describe(&self, folder: &Path, text: &str) -> Result<()> {
        let folder = self.0.path().join(folder);
        std::fs::create_dir_all(&folder).map_err(write(&folder, "make"))?;
        write_whole(&folder.join(FILE_NAME), text, self.0.durability())
    }

    /// Renames the folder to its final name.
    pub(crate) fn publish(&self) -> Result<()> {
        self.0.publish(refuse_foreign)
    }
}

/// Refuses to replace anything but a folder that contains only metadata and shards.
fn refuse_foreign(path: &Path) -> Result<()> {
    match is_foreign(path).map_err(write(path, "list"))? {
        false => Ok(()),
        true => Err(IdxError::Foreign { path: path.to_path_buf() }),
    }
}

fn is_foreign(path: &Path) -> std::io::Result<bool> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(true);
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_shard = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let is_foreign = match entry.file_type()? {
            kind if kind.is_dir() => is_foreign(&entry.path())?,
            kind => !kind.is_file() || !is_shard && name != FILE_NAME,
        };
        if is_foreign {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the path of the folder of an image within the output: the output itself if it has only one image.
pub(crate) fn image_folder(form: &super::ImageLayout, field: usize) -> PathBuf {
    match form.fields.len() {
        1 => PathBuf::new(),
        _ => PathBuf::from(&form.fields[field].0),
    }
}

/// Writes the metadata of all groups and arrays; `shards` are the numbers of stored shards per array.
pub(crate) fn describe(
    staging: &Staging,
    form: &super::ImageLayout,
    shards: &[u64],
    effort: raddle_codec::Effort,
) -> Result<()> {
    let mut shards = shards.iter();
    for field in 0..form.fields.len() {
        let folder = image_folder(form, field);
        staging.describe(&folder, &metadata::image(form, field))?;
        for level in 0..form.levels.len() {
            let stored = shards.next().copied().unwrap_or(0);
            staging.describe(&folder.join(level.to_string()), &metadata::array(form, field, level, stored, effort))?;
        }
    }
    if form.fields.len() > 1 {
        staging.describe(Path::new("OME"), &metadata::series(form))?;
        staging.describe(Path::new(""), &metadata::collection())?;
    }
    Ok(())
}

/// Phase 3: the shards of a time step, each encoded and written by one rank.
#[derive(Debug)]
pub(crate) struct ShardFiles<'a> {
    folder: PathBuf,
    plan: &'a ShardPlan<'a>,
    step: u64,
    durability: Durability,
    written: Mutex<BTreeSet<u32>>,
}

impl<'a> ShardFiles<'a> {
    /// Prepares writing a step of the output at `output`, which is not published yet.
    pub(crate) fn new(output: &Path, plan: &'a ShardPlan<'a>, step: u64, durability: Durability) -> Self {
        Self { folder: hidden_path(output), plan, step, durability, written: Mutex::default() }
    }

    pub(crate) fn path(&self, shard: u32) -> PathBuf {
        let place = self.plan.place(shard);
        let image = self.folder.join(image_folder(self.plan.form, place.field));
        image.join(self.plan.path(&place, self.step))
    }

    /// Makes the files that this rank has written durable, if requested.
    pub(crate) fn finish(&self) -> Result<()> {
        for shard in std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner)) {
            let path = self.path(shard);
            File::open(&path).and_then(|file| file.sync_all()).map_err(write(&path, "fsync"))?;
        }
        Ok(())
    }
}

impl Sink for ShardFiles<'_> {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.write_file_at(0, address, bytes)
    }

    fn write_file_at(&self, shard: u32, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.path(shard);
        if self.durability == Durability::Synced {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(shard);
        }
        let open = || OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = match open() {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| open())
            }
            opened => opened,
        };
        let written = file.and_then(|file| {
            file.write_all_at(bytes, address)?;
            match self.durability {
                Durability::Synced => Ok(()),
                Durability::Unsynced => close(file),
            }
        });
        written.map_err(|cause| crate::write::files::named(&path, &cause))
    }
}
