//! Input files as bytes at offsets: positioned reads, a block cache for metadata, and a bounded pool of open files.
//!
//! Inputs are read with `pread`, not mapped: if a file is truncated while it is read, the result must be an error, not
//! a SIGBUS. Invariant: every read is checked against the length that the file had when it was opened.

use crate::error::{Hdf5Error, Result};
use crate::ranges::Ranges;
use foldhash::HashMap;
use raddle_core::pooled_file::{FileIdentity, PooledFile};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An open input file.
#[derive(Debug)]
pub struct InputFile(PooledFile);

impl InputFile {
    /// Opens `path` for reading. Folders and special files are refused.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Hdf5Error::Io { path: path.to_path_buf(), operation: "open".to_owned(), source };
        PooledFile::open(path).map(Self).map_err(io)
    }

    /// Checks that no program has the file open for writing through libhdf5, which keeps written values in memory until
    /// the file is flushed or closed. Like libhdf5, checks nothing if `HDF5_USE_FILE_LOCKING` is off.
    ///
    /// # Errors
    /// [`Hdf5Error::OpenForWriting`] if a program holds the lock of a writer.
    pub fn check_no_writer(&self) -> Result<()> {
        let io = |source| Hdf5Error::Io { path: self.path().to_path_buf(), operation: "lock".to_owned(), source };
        let off = std::env::var_os("HDF5_USE_FILE_LOCKING").is_some_and(|value| value == "FALSE" || value == "0");
        match !off && self.0.is_locked_by_writer().map_err(io)? {
            true => Err(Hdf5Error::OpenForWriting { path: self.path().to_path_buf() }),
            false => Ok(()),
        }
    }

    /// Returns the path passed to [`InputFile::open`].
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the length in bytes at the time of opening.
    pub fn len_bytes(&self) -> u64 {
        self.0.identity().len_bytes
    }

    /// Returns the identity of the file at the time of opening.
    pub fn identity(&self) -> FileIdentity {
        self.0.identity()
    }

    /// Returns the identity that the opened file has now, even if another one has its path.
    pub fn identity_now(&self) -> Result<FileIdentity> {
        let io = |source| Hdf5Error::Io { path: self.path().to_path_buf(), operation: "stat".to_owned(), source };
        self.0.identity_now().map_err(io)
    }

    /// Checks that the file on disk is still the one that was opened.
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

    /// Checks that the path still leads to the file that was opened, whose content may have changed. libhdf5 opens files
    /// by their paths, so it would read a replacement, while this process still reads the original file.
    pub fn check_not_replaced(&self) -> Result<()> {
        let io = |source| Hdf5Error::Io { path: self.path().to_path_buf(), operation: "stat".to_owned(), source };
        let (opened, now) = (self.identity(), FileIdentity::of(&std::fs::metadata(self.path()).map_err(io)?));
        match (now.device, now.inode) == (opened.device, opened.inode) {
            true => Ok(()),
            false => Err(self.changed("it was replaced")),
        }
    }

    fn changed(&self, what: &'static str) -> Hdf5Error {
        Hdf5Error::Changed { path: self.path().to_path_buf(), what }
    }

    /// Fills `out` from absolute `offset`. Errors name the structure as `what`.
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

    /// Checks that `len_bytes` bytes at `offset` lie in the file.
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

/// Block size of the metadata cache. NOvA-like files spread metadata over the whole file: one read of 64 KiB costs
/// about 10 µs warm and serves about thirty structures.
const BLOCK_LEN_BYTES: u64 = 64 * 1024;

/// Buffers to be reused by the views of one file after another.
#[derive(Debug, Default)]
pub struct ViewBuffers(Vec<Vec<u8>>);

/// A view of one file for metadata reading: whole blocks are read once and kept up to a limit.
#[derive(Debug)]
pub struct MetadataView<'f> {
    file: &'f InputFile,
    /// Index in `buffers` of each block, by block number.
    blocks: HashMap<u64, usize>,
    buffers: Vec<Vec<u8>>,
    /// Number and buffer of the most recently used block, which serves four in five requests.
    last: Option<(u64, usize)>,
    limit_blocks: usize,
    spill: Vec<u8>,
    read: Option<Ranges>,
}

impl<'f> MetadataView<'f> {
    /// Creates a view that keeps at most `limit_bytes` of blocks (at least two blocks).
    pub fn new(file: &'f InputFile, limit_bytes: u64) -> Self {
        Self::with_buffers(file, limit_bytes, ViewBuffers::default())
    }

    /// Like [`MetadataView::new`], but reuses the buffers of an earlier view, so that many files are read into the same
    /// memory.
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

    /// Creates a view that also records which bytes are requested, as a measure of the file's metadata.
    pub fn recording(file: &'f InputFile, limit_bytes: u64) -> Self {
        Self { read: Some(Ranges::default()), ..Self::new(file, limit_bytes) }
    }

    /// Returns the buffers, for the next view.
    pub fn into_buffers(self) -> ViewBuffers {
        ViewBuffers(self.buffers)
    }

    /// Returns the ranges requested so far; empty unless the view was created by [`MetadataView::recording`].
    pub fn into_recorded(self) -> Ranges {
        self.read.unwrap_or_default()
    }

    /// Returns the file whose metadata is viewed.
    pub fn file(&self) -> &'f InputFile {
        self.file
    }

    /// Returns `len_bytes` bytes at `offset`. The slice is valid until the next call.
    pub fn bytes(&mut self, offset: u64, len_bytes: usize, what: &str) -> Result<&[u8]> {
        self.note(offset, len_bytes as u64);
        self.peek(offset, len_bytes, what)
    }

    /// Records as requested the bytes that were seen through [`MetadataView::peek`].
    pub fn note(&mut self, offset: u64, len_bytes: u64) {
        if let Some(read) = self.read.as_mut().filter(|_| len_bytes > 0) {
            read.push(offset, len_bytes);
        }
    }

    /// Like [`MetadataView::bytes`], but does not record the bytes as requested.
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

    /// Reads a block into a new buffer; at the limit, starts reusing the buffers.
    fn load(&mut self, number: u64, what: &str) -> Result<usize> {
        // Until the read has succeeded, no buffer holds the most recently used block.
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

/// Open input files by number. At most `limit` are open at once; the least recently used is closed first.
#[derive(Debug)]
pub struct InputPool {
    paths: Vec<PathBuf>,
    identities: Vec<Option<FileIdentity>>,
    open: Mutex<lru::LruCache<u32, Arc<InputFile>>>,
    opens: AtomicU64,
}

impl InputPool {
    /// Creates a pool over `paths`. The `identities` known from the scan are checked each time a file is opened.
    pub fn new(paths: Vec<PathBuf>, identities: Vec<Option<FileIdentity>>, limit: usize) -> Self {
        let limit = std::num::NonZeroUsize::new(limit).unwrap_or(std::num::NonZeroUsize::MIN);
        Self { paths, identities, open: Mutex::new(lru::LruCache::new(limit)), opens: AtomicU64::new(0) }
    }

    /// Returns how many times files were opened.
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// Returns file number `input`, opening it if necessary.
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
