//! Stored blocks: found by their records in the files of a time step, then read and decoded on several threads.
//!
//! The caller places the samples. Invariant: every requested block is reported once, with its samples or with its
//! fault.

use crate::dataset::compression::{BlockDecoder, BlockFault, Coding, DatasetBlock, RECORD_LEN_BYTES, Record};
use crate::dataset::grid::{Blocks, Layout};
use crate::dataset::header::Header;
use crate::error::{IdxError, Result, TimeFault};
use crate::read::dataset::Dataset;
use raddle_codec::CodecError;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Maximum number of blocks per job: a few megabytes with blocks of the usual size.
const MAX_BLOCKS: usize = 16;

/// Jobs per thread, if there are enough blocks, so that threads finish at about the same time.
const JOBS_PER_THREAD: usize = 4;

/// Maximum distance in a file's table between the first and last block of a job: its records are read at once.
const MAX_PLACES: u64 = 512;

impl Header {
    /// Returns the address in a file of the record of a block of `field`, which is at position `place` among the blocks
    /// of the file.
    fn record_at(&self, field: usize, place: u64) -> u64 {
        RECORD_LEN_BYTES * (1 + field as u64 * self.blocks_per_file + place)
    }
}

/// The blocks of a field at a time step.
#[derive(Debug)]
pub(crate) struct StoredBlocks<'d> {
    dataset: &'d Dataset,
    field: usize,
    time: Option<u64>,
    folder: PathBuf,
    time_name: String,
}

/// Callback for each block: its number, its file, and its contents or fault.
pub(crate) type EachBlock<'e> = dyn FnMut(u64, &Path, Result<StoredBlock<'_>, BlockFault>) -> Result<()> + 'e;

/// A block that was found.
pub(crate) struct StoredBlock<'b> {
    /// Record of the block.
    pub(crate) record: Record,
    /// Decoded samples.
    pub(crate) raw: &'b [u8],
}

impl<'d> StoredBlocks<'d> {
    /// Creates a reader for an existing field and time step.
    pub(crate) fn new(dataset: &'d Dataset, field: usize, time: Option<u64>) -> Self {
        let time_name = dataset.header().time_name(time);
        let folder = dataset.path().parent().unwrap_or(Path::new("")).to_path_buf();
        Self { dataset, field, time, folder, time_name }
    }

    /// Splits ascending `blocks` into jobs: blocks of one file whose records lie close together.
    pub(crate) fn jobs<'b>(&self, blocks: &'b [u64], threads: usize) -> Vec<&'b [u64]> {
        let most = (blocks.len() / (threads.max(1) * JOBS_PER_THREAD)).clamp(1, MAX_BLOCKS);
        let (mut jobs, mut rest) = (Vec::new(), blocks);
        while let Some(first) = rest.first() {
            let fits = |block: &u64| self.file(*block) == self.file(*first) && block - first < MAX_PLACES;
            let count = rest.iter().take(most).take_while(|block| fits(block)).count();
            let (job, others) = rest.split_at(count);
            jobs.push(job);
            rest = others;
        }
        jobs
    }

    /// Returns the first block of the file that holds `block`.
    fn file(&self, block: u64) -> u64 {
        block - block % self.dataset.header().blocks_per_file
    }

    /// Returns the path of the file that holds `block`, or should hold it.
    pub(crate) fn path(&self, block: u64) -> PathBuf {
        self.folder.join(self.dataset.header().files.path(self.file(block), &self.time_name))
    }

    /// Returns the error for a missing or damaged block; if the whole time step is missing, the error names the step.
    pub(crate) fn bad(&self, block: u64, path: &Path, source: BlockFault) -> IdxError {
        if let (BlockFault::NoFile, Some(asked)) = (&source, self.time)
            && self.dataset.steps().is_ok_and(|there| !there.contains(&Some(asked)))
        {
            let fault = TimeFault::Absent { asked, there: self.dataset.step_list() };
            return IdxError::NoTime { path: self.dataset.path().to_path_buf(), fault };
        }
        let field = self.dataset.header().fields[self.field].name.clone();
        IdxError::Block { path: path.to_path_buf(), field, block, source }
    }
}

impl Dataset {
    /// Returns the order of the samples in the coarsest block of a field at a time step, from its record; `None` if
    /// that cannot be read. The header only states which order writers should use.
    pub(crate) fn stored_order(&self, field: usize, time: Option<u64>) -> Option<Layout> {
        let header = self.header();
        let grid = header.grid(header.bitmask.max_level())?;
        let block = Blocks::new(&header.bitmask, header.bits_per_block, &grid, header.bitmask.max_level()).next()?;
        let stored = StoredBlocks::new(self, field, time);
        let of_file = stored.file(block);
        let open = OpenFile::new(&stored, of_file).ok()?;
        let (file, file_len_bytes) = open.file.as_ref()?;
        let mut bytes = [0; RECORD_LEN_BYTES as usize];
        file.read_exact_at(&mut bytes, header.record_at(field, block - of_file)).ok()?;
        let (tables, raw) = (header.record_at(header.fields.len(), 0), header.block_len_bytes(field));
        let record = Record::from_bytes(&bytes, *file_len_bytes, tables, raw as u64);
        record.ok().map(|record| record.layout)
    }
}

/// Block reader with an open file and buffers; one per thread.
#[derive(Default)]
pub(crate) struct BlockReader {
    open: Option<OpenFile>,
    buffers: Option<Buffers>,
    records: Vec<u8>,
}

struct OpenFile {
    first: u64,
    path: PathBuf,
    /// `None` if the file does not exist.
    file: Option<(File, u64)>,
}

impl BlockReader {
    /// Appends the stored bytes of a block to `out` unchanged, and returns their record.
    ///
    /// # Errors
    /// If a file cannot be read. A missing block or a wrong record is returned as a fault, not as an error.
    pub(crate) fn copy(
        &mut self,
        stored: &StoredBlocks<'_>,
        block: u64,
        out: &mut Vec<u8>,
    ) -> Result<Result<Record, BlockFault>> {
        let (header, of_file) = (stored.dataset.header(), stored.file(block));
        let open = match &mut self.open {
            Some(open) if open.first == of_file => open,
            open => open.insert(OpenFile::new(stored, of_file)?),
        };
        let failed = |source| IdxError::Read { path: open.path.clone(), operation: "read", source };
        let Some((file, file_len_bytes)) = &open.file else { return Ok(Err(BlockFault::NoFile)) };
        let mut bytes = [0; RECORD_LEN_BYTES as usize];
        let at = header.record_at(stored.field, block - of_file);
        if at + RECORD_LEN_BYTES > *file_len_bytes {
            return Ok(Err(BlockFault::NoRecord));
        }
        file.read_exact_at(&mut bytes, at).map_err(failed)?;
        let (tables, raw) = (header.record_at(header.fields.len(), 0), header.block_len_bytes(stored.field));
        let record = match Record::from_bytes(&bytes, *file_len_bytes, tables, raw as u64) {
            Ok(record) => record,
            Err(fault) => return Ok(Err(fault)),
        };
        let before = out.len();
        out.resize(before + record.len_bytes as usize, 0);
        file.read_exact_at(&mut out[before..], record.offset).map_err(failed)?;
        Ok(Ok(record))
    }

    /// Calls `each` for every block of a job, in ascending order.
    ///
    /// # Errors
    /// If a file cannot be read, or `each` fails.
    pub(crate) fn read(&mut self, stored: &StoredBlocks<'_>, job: &[u64], each: &mut EachBlock<'_>) -> Result<()> {
        let (Some(first), Some(last)) = (job.first(), job.last()) else { return Ok(()) };
        let Self { open, buffers, records } = self;
        let buffers = match buffers {
            Some(buffers) => buffers,
            None => {
                buffers.insert(Buffers::new().map_err(|fault| stored.bad(*first, stored.dataset.path(), fault.into()))?)
            }
        };
        let header = stored.dataset.header();
        let of_file = stored.file(*first);
        let open = match open {
            Some(open) if open.first == of_file => open,
            _ => open.insert(OpenFile::new(stored, of_file)?),
        };
        let path = open.path.as_path();
        let failed = |operation| move |source| IdxError::Read { path: path.to_path_buf(), operation, source };
        let Some((file, file_len_bytes)) = &open.file else {
            return job.iter().try_for_each(|block| each(*block, path, Err(BlockFault::NoFile)));
        };
        let record_at = |field: usize, block: u64| header.record_at(field, block - of_file);
        let (from, end) = (record_at(stored.field, *first), record_at(stored.field, *last) + RECORD_LEN_BYTES);
        records.resize(end.min(*file_len_bytes).saturating_sub(from) as usize, 0);
        file.read_exact_at(records, from).map_err(failed("read"))?;
        let raw_len_bytes = header.block_len_bytes(stored.field);
        let tables_len_bytes = header.record_at(header.fields.len(), 0);
        for block in job {
            let at = (record_at(stored.field, *block) - from) as usize;
            let record = match records.get(at..).and_then(|rest| rest.first_chunk()) {
                Some(bytes) => Record::from_bytes(bytes, *file_len_bytes, tables_len_bytes, raw_len_bytes as u64),
                None => Err(BlockFault::NoRecord),
            };
            let found = match record {
                Ok(record) => {
                    let of = DatasetBlock { header, field: stored.field, number: *block };
                    let raw = buffers.fill(file, &record, of).map_err(failed("read"))?;
                    raw.map(|raw| StoredBlock { record, raw })
                }
                Err(fault) => Err(fault),
            };
            each(*block, path, found)?;
        }
        Ok(())
    }
}

impl OpenFile {
    fn new(stored: &StoredBlocks<'_>, first: u64) -> Result<Self> {
        let path = stored.path(first);
        let failed = |operation| {
            let path = path.clone();
            move |source| IdxError::Read { path, operation, source }
        };
        let file = match File::open(&path) {
            Ok(file) => {
                let len_bytes = file.metadata().map_err(failed("stat"))?.len();
                Some((file, len_bytes))
            }
            Err(source) if source.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(failed("open")(source)),
        };
        Ok(Self { first, path, file })
    }
}

/// Buffers reused for reading blocks.
struct Buffers {
    decoder: BlockDecoder,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

impl Buffers {
    fn new() -> Result<Self, CodecError> {
        Ok(Self { decoder: BlockDecoder::new()?, stored: Vec::new(), raw: Vec::new() })
    }

    /// Reads and decodes a block whose record was checked.
    fn fill(
        &mut self,
        file: &File,
        record: &Record,
        block: DatasetBlock<'_>,
    ) -> std::io::Result<Result<&[u8], BlockFault>> {
        self.stored.resize(record.len_bytes as usize, 0);
        file.read_exact_at(&mut self.stored, record.offset)?;
        if record.coding == Coding::Raw {
            return Ok(Ok(&self.stored));
        }
        self.raw.resize(block.header.block_len_bytes(block.field), 0);
        let decoded = self.decoder.decode(record.coding, block, &self.stored, &mut self.raw);
        Ok(decoded.map(|()| self.raw.as_slice()))
    }
}
