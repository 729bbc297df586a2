//! An input file as bytes at offsets: positioned reads, a block cache for metadata, a bounded pool of open files.
//!
//! Inputs are read with `pread`, not mapped: a file cut short while we read must be an error, not a SIGBUS.
//! Invariant: every read is checked against the length the file had when it was opened.

use crate::error::{Hdf5Error, Result};
use crate::ranges::Ranges;
use foldhash::HashMap;
use raddle_core::handle::{FileIdentity, Handle};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An open input file.
#[derive(Debug)]
pub struct InputFile(Handle);

impl InputFile {
    /// Opens `path` for reading; a folder or special file is refused.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Hdf5Error::Io { path: path.to_path_buf(), operation: "open".to_owned(), source };
        Handle::open(path).map(Self).map_err(io)
    }

    /// Path as given to [`InputFile::open`].
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Length in bytes at the time of opening.
    pub fn len_bytes(&self) -> u64 {
        self.0.identity().len_bytes
    }

    /// Identity at the time of opening.
    pub fn identity(&self) -> FileIdentity {
        self.0.identity()
    }

    /// Fails if the file on disk is no longer the one that was opened.
    pub fn check_unchanged(&self) -> Result<()> {
        let io = |source| Hdf5Error::Io { path: self.path().to_path_buf(), operation: "stat".to_owned(), source };
        let (opened, now) = (self.identity(), FileIdentity::of(&std::fs::metadata(self.path()).map_err(io)?));
        match now {
            now if now == opened => Ok(()),
            now if now.len_bytes != opened.len_bytes => Err(self.changed("its size")),
            now if now.inode != opened.inode => Err(self.changed("it was replaced")),
            _ => Err(self.changed("its modification time")),
        }
    }

    fn changed(&self, what: &'static str) -> Hdf5Error {
        Hdf5Error::Changed { path: self.path().to_path_buf(), what }
    }

    /// Fills `out` from absolute `offset`. `what` names the structure in errors.
    pub fn read_exact_at(&self, offset: u64, out: &mut [u8], what: &str) -> Result<()> {
        self.check_range(offset, out.len() as u64, what)?;
        match self.0.read_exact_at(out, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed("its size")),
            Err(source) => Err(Hdf5Error::Io {
                path: self.path().to_path_buf(),
                operation: format!("read {} bytes at {offset} ({what})", out.len()),
                source,
            }),
        }
    }

    /// Fails if `len_bytes` bytes at `offset` do not lie in the file.
    pub fn check_range(&self, offset: u64, len_bytes: u64, what: &str) -> Result<()> {
        let end = offset.saturating_add(len_bytes);
        if end > self.len_bytes() || offset.checked_add(len_bytes).is_none() {
            return Err(Hdf5Error::Truncated {
                path: self.path().to_path_buf(),
                what: what.to_owned(),
                end,
                file_len_bytes: self.len_bytes(),
            });
        }
        Ok(())
    }
}

/// Block of the metadata cache. NOvA-like files spread metadata over the whole file: one read of 64 KiB costs about
/// 10 µs warm and serves some thirty structures.
const BLOCK_LEN_BYTES: u64 = 64 * 1024;

/// Memory that views of one file after the other use.
#[derive(Debug, Default)]
pub struct ViewBuffers(Vec<Vec<u8>>);

/// A view of one file for metadata reading: whole blocks are read once and kept up to a limit.
#[derive(Debug)]
pub struct MetadataView<'f> {
    file: &'f InputFile,
    /// Where in `buffers` a block is, by its number.
    blocks: HashMap<u64, usize>,
    buffers: Vec<Vec<u8>>,
    /// Number and buffer of the block asked for last: four in five requests are for it again.
    last: Option<(u64, usize)>,
    limit_blocks: usize,
    spill: Vec<u8>,
    read: Option<Ranges>,
}

impl<'f> MetadataView<'f> {
    /// A view that keeps at most `limit_bytes` of blocks (at least two blocks).
    pub fn new(file: &'f InputFile, limit_bytes: u64) -> Self {
        Self::with_buffers(file, limit_bytes, ViewBuffers::default())
    }

    /// The same with the buffers of an earlier view: one file after the other, each read into the same memory.
    pub fn with_buffers(file: &'f InputFile, limit_bytes: u64, buffers: ViewBuffers) -> Self {
        let limit_blocks = usize::try_from(limit_bytes / BLOCK_LEN_BYTES).unwrap_or(usize::MAX).max(2);
        Self {
            file,
            blocks: HashMap::default(),
            buffers: buffers.0,
            last: None,
            limit_blocks,
            spill: Vec::new(),
            read: None,
        }
    }

    /// A view that also notes which bytes were asked for: what counts as metadata of the file.
    pub fn recording(file: &'f InputFile, limit_bytes: u64) -> Self {
        Self { read: Some(Ranges::default()), ..Self::new(file, limit_bytes) }
    }

    /// The buffers, for the next view.
    pub fn into_buffers(self) -> ViewBuffers {
        ViewBuffers(self.buffers)
    }

    /// The bytes asked for so far; none unless the view is a [`MetadataView::recording`] one.
    pub fn into_recorded(self) -> Ranges {
        self.read.unwrap_or_default()
    }

    /// The file.
    pub fn file(&self) -> &'f InputFile {
        self.file
    }

    /// `len_bytes` bytes at `offset`. The slice lives until the next call.
    pub fn bytes(&mut self, offset: u64, len_bytes: usize, what: &str) -> Result<&[u8]> {
        self.note(offset, len_bytes as u64);
        self.peek(offset, len_bytes, what)
    }

    /// Counts bytes as asked for that were seen through [`MetadataView::peek`].
    pub fn note(&mut self, offset: u64, len_bytes: u64) {
        if let Some(read) = self.read.as_mut().filter(|_| len_bytes > 0) {
            read.push(offset, len_bytes);
        }
    }

    /// As [`MetadataView::bytes`], but not counted as asked for.
    pub fn peek(&mut self, offset: u64, len_bytes: usize, what: &str) -> Result<&[u8]> {
        self.file.check_range(offset, len_bytes as u64, what)?;
        if len_bytes == 0 {
            return Ok(&[]);
        }
        let (first, last) = (offset / BLOCK_LEN_BYTES, (offset + len_bytes as u64 - 1) / BLOCK_LEN_BYTES);
        if first == last {
            let start = (offset % BLOCK_LEN_BYTES) as usize;
            return Ok(&self.block(first, what)?[start..start + len_bytes]);
        }
        let mut spill = std::mem::take(&mut self.spill);
        spill.clear();
        if last - first < 8 {
            for number in first..=last {
                let from = offset.max(number * BLOCK_LEN_BYTES) - number * BLOCK_LEN_BYTES;
                let to = (offset + len_bytes as u64).min((number + 1) * BLOCK_LEN_BYTES) - number * BLOCK_LEN_BYTES;
                spill.extend_from_slice(&self.block(number, what)?[from as usize..to as usize]);
            }
        } else {
            spill.resize(len_bytes, 0);
            self.file.read_exact_at(offset, &mut spill, what)?;
        }
        self.spill = spill;
        Ok(&self.spill)
    }

    fn block(&mut self, number: u64, what: &str) -> Result<&[u8]> {
        let index = match self.last {
            Some((last, index)) if last == number => index,
            _ => match self.blocks.get(&number) {
                Some(&index) => index,
                None => self.load(number, what)?,
            },
        };
        self.last = Some((number, index));
        Ok(&self.buffers[index])
    }

    /// Reads a block into a new buffer, or, at the limit, begins to use the buffers again.
    fn load(&mut self, number: u64, what: &str) -> Result<usize> {
        // Until the read is done, no buffer is known to hold what was asked for last.
        self.last = None;
        if self.blocks.len() >= self.limit_blocks {
            self.blocks.clear();
        }
        let index = self.blocks.len();
        let start = number * BLOCK_LEN_BYTES;
        let len = BLOCK_LEN_BYTES.min(self.file.len_bytes() - start) as usize;
        if index == self.buffers.len() {
            self.buffers.push(vec![0; len]);
        }
        self.buffers[index].resize(len, 0);
        self.file.read_exact_at(start, &mut self.buffers[index], what)?;
        self.blocks.insert(number, index);
        Ok(index)
    }
}

/// Open input files by number, at most `limit` at once, the least recently used closed first.
#[derive(Debug)]
pub struct InputPool {
    paths: Vec<PathBuf>,
    identities: Vec<Option<FileIdentity>>,
    open: Mutex<lru::LruCache<u32, Arc<InputFile>>>,
    opens: AtomicU64,
}

impl InputPool {
    /// A pool over `paths`. `identities`, where known from the scan, are checked at each opening.
    pub fn new(paths: Vec<PathBuf>, identities: Vec<Option<FileIdentity>>, limit: usize) -> Self {
        let limit = std::num::NonZeroUsize::new(limit).unwrap_or(std::num::NonZeroUsize::MIN);
        Self { paths, identities, open: Mutex::new(lru::LruCache::new(limit)), opens: AtomicU64::new(0) }
    }

    /// How many times a file was opened.
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// The file number `input`, opened if need be.
    pub fn get(&self, input: u32) -> Result<Arc<InputFile>> {
        if let Some(file) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&input) {
            return Ok(Arc::clone(file));
        }
        self.opens.fetch_add(1, Ordering::Relaxed);
        let file = Arc::new(InputFile::open(&self.paths[input as usize])?);
        if let Some(Some(identity)) = self.identities.get(input as usize)
            && !identity.is_unchanged(&file.identity())
        {
            return Err(file.changed("it is not the file that was scanned"));
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).put(input, Arc::clone(&file));
        Ok(file)
    }
}
