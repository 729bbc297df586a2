//! Writing: whole arrays of all fields of one time step, by one thread.
//!
//! Blocks are encoded straight from the arrays into a buffer that goes to the file; the table of a file is written last.
//! All files of a step are made in a hidden folder beside the `.idx` file, made durable, and renamed at once where they
//! have a folder of their own, as usual; the `.idx` file follows. Invariant: the same arrays and header give the same
//! bytes, and a folder of a step is there whole or not at all.

use crate::compression::{BlockEncoder, Compression, RECORD_LEN_BYTES, Record};
use crate::error::{IdxError, Result};
use crate::grid::{ArrayGrid, blocks, runs};
use crate::header::{Field, Header};
use crate::kernel;
use raddle_codec::Effort;
use raddle_core::extent::fill_with;
use rustix::fs::{FlockOperation, RenameFlags};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What to do where the output is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    Refuse,
    /// Put the new one in its place.
    Replace,
}

/// Bytes that are written at once: large against the cost of a call, small against memory.
const WRITE_LEN_BYTES: usize = 4 << 20;

/// Writes the time steps of a dataset.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    header: Header,
    existing: Existing,
    compressions: Vec<Compression>,
    encoder: BlockEncoder,
}

impl Writer {
    /// A writer of `path`, the `.idx` file. Nothing is written yet.
    ///
    /// # Errors
    /// If the header is not consistent, or names a compression that is not written.
    pub fn new(path: &Path, header: Header, existing: Existing) -> Result<Self> {
        header.check().map_err(|source| IdxError::Header { path: path.to_path_buf(), source })?;
        let compression = |field: &Field| {
            let name = field.attribute("default_compression").unwrap_or("");
            let known = Compression::from_name(name);
            known.ok_or_else(|| IdxError::Compression { field: field.name.clone(), compression: name.to_owned() })
        };
        let compressions = header.fields.iter().map(compression).collect::<Result<_>>()?;
        let encoder = BlockEncoder::new(Effort::Balanced);
        Ok(Self { path: path.to_path_buf(), header, existing, compressions, encoder })
    }

    /// The header as it will be written.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Writes one array per field, each with all samples of the box, x fastest, little-endian, and then the `.idx` file.
    /// `time` names the step of a dataset that has any, whose range grows as needed.
    ///
    /// # Errors
    /// If arrays or time do not fit the header, the output exists, or files cannot be written. Nothing that was there
    /// before is changed then, unless replacing fails between the step and the `.idx` file.
    pub fn write(&mut self, time: Option<u64>, arrays: &[&[u8]]) -> Result<()> {
        let grid = self.check(time, arrays)?;
        let time_name = match (&self.header.time, time) {
            (Some(of), Some(step)) => of.template.name(step),
            _ => String::new(),
        };
        let staging = Staging::begin(&self.path)?;
        let level = self.header.bitmask.max_level();
        let blocks = blocks(&self.header.bitmask, self.header.bits_per_block, &grid, level);
        let mut names = Vec::new();
        let blocks_per_file = self.header.blocks_per_file;
        for of_file in blocks.chunk_by(|a, b| a / blocks_per_file == b / blocks_per_file) {
            let first = of_file[0] - of_file[0] % blocks_per_file;
            let name = self.header.files.path(first, &time_name);
            self.write_file(&staging.folder.join(&name), &grid, of_file, arrays)?;
            names.push(name);
        }
        let own_folder = self.header.files.path(0, &time_name);
        let own_folder = self.own_folder(&own_folder, &time_name);
        staging.publish(own_folder.as_deref(), &names, self.existing, self.header.files.ending())?;
        if let (Some(of), Some(step)) = (&mut self.header.time, time) {
            of.range = Some(of.range.map_or((step, step), |(a, b)| (a.min(step), b.max(step))));
        }
        write_header(&self.path, &self.header)
    }

    fn check(&self, time: Option<u64>, arrays: &[&[u8]]) -> Result<ArrayGrid> {
        let header = &self.header;
        let has = match (&header.time, time) {
            (Some(_), None) => Some("time steps, of which one must be named"),
            (None, Some(_)) => Some("no time steps"),
            _ => None,
        };
        if let Some(has) = has {
            return Err(IdxError::NoTime { path: self.path.clone(), asked: time, has });
        }
        if arrays.len() != header.fields.len() {
            return Err(IdxError::Arrays { got: arrays.len(), want: header.fields.len() });
        }
        let grid = header.grid(header.bitmask.max_level()).ok_or_else(|| IdxError::EmptyBox {
            path: self.path.clone(),
            start: header.start.to_vec(),
            end: header.end.to_vec(),
            resolution: header.bitmask.max_level(),
        })?;
        for (field, array) in arrays.iter().enumerate() {
            let sample_len_bytes = header.fields[field].sample.len_bytes() as u64;
            let want = grid.sample_count().and_then(|samples| samples.checked_mul(sample_len_bytes));
            let (got_bytes, want_bytes) = (array.len() as u64, want.unwrap_or(u64::MAX));
            if got_bytes != want_bytes {
                return Err(IdxError::Buffer { field, got_bytes, want_bytes });
            }
        }
        Ok(grid)
    }

    /// The folder that holds the files of this step and nothing else, if the template gives them one.
    fn own_folder(&self, any_file: &Path, time_name: &str) -> Option<PathBuf> {
        let text = self.header.files.text();
        let before = text.split('%').next().unwrap_or_default();
        let before = before.strip_prefix("./").unwrap_or(before);
        let fixed = format!("{before}{time_name}");
        if !time_name.is_empty() && !time_name.contains('/') {
            return None; // the steps share a folder
        }
        let depth = Path::new(&fixed).components().count() - usize::from(!fixed.ends_with('/') && !fixed.is_empty());
        // Without a conversion the last component is the file itself.
        (depth > 0).then(|| any_file.components().take(depth).collect())
    }

    /// Writes a file with the given blocks of every field.
    fn write_file(&mut self, path: &Path, grid: &ArrayGrid, of_file: &[u64], arrays: &[&[u8]]) -> Result<()> {
        let write = |operation| {
            let path = path.to_path_buf();
            move |source| IdxError::Write { path, operation, source }
        };
        let header = &self.header;
        let first = of_file[0] - of_file[0] % header.blocks_per_file;
        let record_at =
            |field: usize, place: u64| RECORD_LEN_BYTES * (1 + field as u64 * header.blocks_per_file + place);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(write("make the folder of"))?;
        }
        let file = File::create_new(path).map_err(write("create"))?;
        let level = header.bitmask.max_level();
        let mut written_end = record_at(header.fields.len(), 0);
        let (mut pending, mut raw) = (Vec::with_capacity(WRITE_LEN_BYTES), Vec::new());
        let mut records: Vec<(u64, Record)> = Vec::new();
        for (field, array) in arrays.iter().enumerate() {
            let (of, layout) = (&header.fields[field], header.fields[field].default_layout());
            let sample_len_bytes = of.sample.len_bytes();
            let default_sample = of.default_sample();
            for block in of_file {
                raw.resize(header.block_len_bytes(field), 0);
                // Places of samples outside the box, and nothing else, keep the default value.
                fill_with(&mut raw, &default_sample);
                for run in runs(&header.bitmask, header.bits_per_block, *block, layout, level) {
                    kernel::encode(&run, grid, array, &mut raw, sample_len_bytes);
                }
                let start = pending.len();
                let compression =
                    self.encoder.append(self.compressions[field], &raw, &mut pending).map_err(|source| {
                        IdxError::Block {
                            path: path.to_path_buf(),
                            field: of.name.clone(),
                            block: *block,
                            source: source.into(),
                        }
                    })?;
                let len_bytes = (pending.len() - start) as u32;
                let record = Record { offset: written_end + start as u64, len_bytes, compression, layout };
                records.push((record_at(field, block - first), record));
                if pending.len() >= WRITE_LEN_BYTES {
                    file.write_all_at(&pending, written_end).map_err(write("write"))?;
                    written_end += pending.len() as u64;
                    pending.clear();
                }
            }
        }
        file.write_all_at(&pending, written_end).map_err(write("write"))?;
        for run in records.chunk_by(|(a, _), (b, _)| a + RECORD_LEN_BYTES == *b) {
            let bytes: Vec<u8> = run.iter().flat_map(|(_, record)| record.to_bytes()).collect();
            file.write_all_at(&bytes, run[0].0).map_err(write("write"))?;
        }
        file.sync_all().map_err(write("fsync"))
    }
}

/// The hidden folder in which a step is made, locked while it is.
struct Staging {
    folder: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Staging {
    fn begin(output: &Path) -> Result<Self> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let target = folder_of(output).to_path_buf();
        let folder = target.join(format!(".{name}.raddle-part"));
        let write = |operation| {
            let path = folder.clone();
            move |source| IdxError::Write { path, operation, source }
        };
        loop {
            match std::fs::create_dir(&folder) {
                Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => return Err(write("make")(source)),
                _ => {}
            }
            let Ok(lock) = File::open(&folder) else { continue };
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(IdxError::Locked { path: output.to_path_buf(), lock: folder });
                }
                Err(error) => return Err(write("lock")(error.into())),
            }
            let ours = lock.metadata().map_err(write("stat"))?;
            match std::fs::metadata(&folder) {
                Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => {
                    // What a killed run left.
                    for entry in std::fs::read_dir(&folder).map_err(write("list"))?.flatten() {
                        remove(&entry.path()).map_err(write("clear"))?;
                    }
                    return Ok(Self { folder, target, _lock: lock });
                }
                _ => {} // the holder before us removed the name between our open and our lock
            }
        }
    }

    /// Gives the files their names: the folder that is all theirs at once, or one by one.
    fn publish(self, own_folder: Option<&Path>, names: &[PathBuf], existing: Existing, ending: &str) -> Result<()> {
        let write = |path: &Path, operation| {
            let path = path.to_path_buf();
            move |source| IdxError::Write { path, operation, source }
        };
        let one_folder = own_folder.map(Path::to_path_buf);
        for name in one_folder.as_ref().map_or(names, std::slice::from_ref) {
            let (from, to) = (self.folder.join(name), self.target.join(name));
            sync_folders(&from).map_err(write(&from, "fsync"))?;
            let folder = to.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(write(folder, "make"))?;
            let rename = |flags| rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, flags);
            match rename(RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) if existing == Existing::Refuse => {
                    return Err(IdxError::Exists { path: to });
                }
                Err(rustix::io::Errno::EXIST) if !holds_blocks_alone(&to, ending).map_err(write(&to, "list"))? => {
                    return Err(IdxError::Foreign { path: to });
                }
                // The old one takes the place of the new one and goes with the hidden folder.
                Err(rustix::io::Errno::EXIST) => {
                    rename(RenameFlags::EXCHANGE).map_err(|e| write(&to, "replace")(e.into()))?
                }
                Err(error) => return Err(write(&to, "rename")(error.into())),
            }
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(write(folder, "fsync"))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A failure to clean up must not hide the error that led here; the next run clears again.
        let _ = remove(&self.folder);
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Whether there is nothing below `path` but files that are named as those of blocks, so that replacing loses no others.
fn holds_blocks_alone(path: &Path, ending: &str) -> std::io::Result<bool> {
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

/// Makes the names in a folder and those below it durable; files are already.
fn sync_folders(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            sync_folders(&entry?.path())?;
        }
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the `.idx` file: a temporary name, fsync, rename.
fn write_header(path: &Path, header: &Header) -> Result<()> {
    let write = |operation| move |source| IdxError::Write { path: path.to_path_buf(), operation, source };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder_of(path).join(format!(".{name}.raddle-header"));
    std::fs::write(&temporary, header.to_text()).map_err(write("write"))?;
    File::open(&temporary).and_then(|file| file.sync_all()).map_err(write("fsync"))?;
    std::fs::rename(&temporary, path).map_err(write("rename"))?;
    File::open(folder_of(path)).and_then(|folder| folder.sync_all()).map_err(write("fsync the folder of"))
}
