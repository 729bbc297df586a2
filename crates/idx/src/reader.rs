//! Reading: a box of a field at a resolution and time step, from the files of a dataset.
//!
//! Only the blocks that hold asked samples are read. Invariant: every sample of the result comes from a block that is
//! there and decodes; where one does not, the error names file, field and block, unless missing blocks are asked to give
//! the field's default value.

use crate::bitmask::{MAX_RANK, Point};
use crate::compression::{BlockDecoder, BlockFault, RECORD_LEN_BYTES, Record};
use crate::error::{IdxError, Result};
use crate::grid::{ArrayGrid, blocks, runs};
use crate::header::{Header, MAX_HEADER_LEN_BYTES, VERSION};
use crate::kernel;
use raddle_core::extent::fill_with;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Number of the field.
    pub field: usize,
    /// Time step, where the dataset has any.
    pub time: Option<u64>,
    /// First sample.
    pub start: Point,
    /// One past the last sample.
    pub end: Point,
    /// Highest level to read.
    pub resolution: u32,
    /// Take the field's default value where blocks are not stored, as OpenVisus does, instead of failing. Damaged blocks
    /// fail nevertheless.
    pub missing_as_default: bool,
}

/// A dataset that is open for reading.
#[derive(Debug, Clone)]
pub struct Dataset {
    path: PathBuf,
    header: Header,
}

impl Dataset {
    /// Opens an `.idx` file.
    ///
    /// # Errors
    /// If it cannot be read or is refused.
    pub fn open(path: &Path) -> Result<Self> {
        let read = |operation| move |source| IdxError::Read { path: path.to_path_buf(), operation, source };
        let mut bytes = Vec::new();
        // One byte more than allowed tells a longer file.
        let file = File::open(path).map_err(read("open"))?;
        file.take(MAX_HEADER_LEN_BYTES + 1).read_to_end(&mut bytes).map_err(read("read"))?;
        let header = Header::parse(&bytes).map_err(|source| IdxError::Header { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf(), header })
    }

    /// Path of the `.idx` file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the `.idx` file says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// A query for all of a field at full resolution, at the first time step if there are any.
    pub fn whole(&self, field: usize) -> Query {
        let time = self.header.time.as_ref().map(|time| time.range.map_or(0, |(first, _)| first));
        Query {
            field,
            time,
            start: self.header.start,
            end: self.header.end,
            resolution: self.header.bitmask.max_level(),
            missing_as_default: false,
        }
    }

    /// The samples that a query gives.
    ///
    /// # Errors
    /// If field, time, resolution or box are not in the dataset, or the box holds no sample of the resolution.
    pub fn grid(&self, query: &Query) -> Result<ArrayGrid> {
        let (header, path) = (&self.header, || self.path.clone());
        if query.field >= header.fields.len() {
            return Err(IdxError::NoField { path: path(), field: query.field, count: header.fields.len() });
        }
        let limit = header.bitmask.max_level();
        if query.resolution > limit {
            return Err(IdxError::NoResolution { path: path(), resolution: query.resolution, limit });
        }
        let has = match (&header.time, query.time) {
            (None, Some(_)) => Some("no time steps"),
            (Some(_), None) => Some("time steps, of which one must be named"),
            (Some(time), Some(step)) if time.range.is_some_and(|(a, b)| !(a..=b).contains(&step)) => {
                Some("other steps")
            }
            _ => None,
        };
        if let Some(has) = has {
            return Err(IdxError::NoTime { path: path(), asked: query.time, has });
        }
        let inside =
            (0..MAX_RANK).all(|axis| header.start[axis] <= query.start[axis] && query.end[axis] <= header.end[axis]);
        let grid = ArrayGrid::of_box(&header.bitmask, &query.start, &query.end, query.resolution);
        grid.filter(|_| inside).ok_or_else(|| IdxError::EmptyBox {
            path: path(),
            start: query.start[..header.rank].to_vec(),
            end: query.end[..header.rank].to_vec(),
            resolution: query.resolution,
        })
    }

    /// Reads into a new buffer, x fastest; [`Dataset::grid`] tells its counts.
    ///
    /// # Errors
    /// As [`Dataset::read_into`], or if memory does not suffice.
    pub fn read(&self, query: &Query) -> Result<Vec<u8>> {
        let len_bytes = self.len_bytes(query)?;
        let memory = IdxError::Memory { len_bytes };
        let Ok(len) = usize::try_from(len_bytes) else { return Err(memory) };
        let mut out = Vec::new();
        if out.try_reserve_exact(len).is_err() {
            return Err(memory);
        }
        out.resize(len, 0);
        self.read_into(query, &mut out)?;
        Ok(out)
    }

    /// Length of what a query gives.
    ///
    /// # Errors
    /// As [`Dataset::grid`].
    pub fn len_bytes(&self, query: &Query) -> Result<u64> {
        let samples = self.grid(query)?.sample_count();
        let sample_len_bytes = self.header.fields[query.field].sample.len_bytes() as u64;
        Ok(samples.and_then(|samples| samples.checked_mul(sample_len_bytes)).unwrap_or(u64::MAX))
    }

    /// Reads into `out`, x fastest.
    ///
    /// # Errors
    /// If the query does not fit the dataset or `out`, or a block cannot be read; `out` is then partly written.
    pub fn read_into(&self, query: &Query, out: &mut [u8]) -> Result<()> {
        let want_bytes = self.len_bytes(query)?;
        if want_bytes != out.len() as u64 {
            return Err(IdxError::Buffer { field: query.field, got_bytes: out.len() as u64, want_bytes });
        }
        let (header, grid) = (&self.header, self.grid(query)?);
        if header.version != VERSION {
            return Err(IdxError::BlockVersion { path: self.path.clone(), version: header.version });
        }
        let field = &header.fields[query.field];
        if let Some(filter) = field.attribute("filter").filter(|name| !matches!(*name, "" | "identity")) {
            let filter = filter.to_owned();
            return Err(IdxError::Filter { path: self.path.clone(), field: field.name.clone(), filter });
        }
        if query.missing_as_default {
            fill_with(out, &field.default_sample());
        }
        let blocks = blocks(&header.bitmask, header.bits_per_block, &grid, query.resolution);
        self.for_each_block(query.field, query.time, &blocks, &mut |block, path, found| match found {
            Ok(Found { record, raw }) => {
                for run in runs(&header.bitmask, header.bits_per_block, block, record.layout, query.resolution) {
                    kernel::decode(&run, &grid, out, raw, field.sample.len_bytes());
                }
                Ok(())
            }
            Err(BlockFault::NoFile | BlockFault::NotStored) if query.missing_as_default => Ok(()),
            Err(source) => Err(IdxError::Block { path: path.to_path_buf(), field: field.name.clone(), block, source }),
        })
    }

    /// Calls `each` for each of `blocks`, ascending, with its file and what is stored of it, or why nothing is.
    ///
    /// # Errors
    /// If a file cannot be read, and those of `each`.
    pub(crate) fn for_each_block(
        &self,
        field: usize,
        time: Option<u64>,
        blocks: &[u64],
        each: &mut EachBlock<'_>,
    ) -> Result<()> {
        let header = &self.header;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let time = time.zip(header.time.as_ref()).map(|(step, time)| time.template.name(step)).unwrap_or_default();
        let mut buffers = Buffers::new().map_err(|source| IdxError::Block {
            path: self.path.clone(),
            field: header.fields[field].name.clone(),
            block: 0,
            source: source.into(),
        })?;
        for of_file in blocks.chunk_by(|a, b| a / header.blocks_per_file == b / header.blocks_per_file) {
            let first = of_file[0] - of_file[0] % header.blocks_per_file;
            let path = folder.join(header.files.path(first, &time));
            let read = |operation| {
                let path = path.clone();
                move |source| IdxError::Read { path, operation, source }
            };
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                    of_file.iter().try_for_each(|block| each(*block, &path, Err(BlockFault::NoFile)))?;
                    continue;
                }
                Err(source) => return Err(read("open")(source)),
            };
            let file_len_bytes = file.metadata().map_err(read("stat"))?.len();
            for block in of_file {
                let record = self.record(&file, file_len_bytes, field, block - first).map_err(read("read"))?;
                let found = match record {
                    Ok(record) => {
                        let raw = buffers.fill(&file, &record, header.block_len_bytes(field)).map_err(read("read"))?;
                        raw.map(|raw| Found { record, raw }).map_err(BlockFault::from)
                    }
                    Err(fault) => Err(fault),
                };
                each(*block, &path, found)?;
            }
        }
        Ok(())
    }

    /// The record of a block by its place in its file.
    fn record(
        &self,
        file: &File,
        file_len_bytes: u64,
        field: usize,
        place: u64,
    ) -> std::io::Result<Result<Record, BlockFault>> {
        let header = &self.header;
        let record_at = |field: usize, place| RECORD_LEN_BYTES * (1 + field as u64 * header.blocks_per_file + place);
        let at = record_at(field, place);
        if at + RECORD_LEN_BYTES > file_len_bytes {
            return Ok(Err(BlockFault::NoRecord));
        }
        let mut bytes = [0; RECORD_LEN_BYTES as usize];
        file.read_exact_at(&mut bytes, at)?;
        let tables_len_bytes = record_at(header.fields.len(), 0);
        Ok(Record::from_bytes(&bytes, file_len_bytes, tables_len_bytes, header.block_len_bytes(field) as u64))
    }
}

/// What is called with a block's number, its file, and what is stored of it.
pub(crate) type EachBlock<'e> = dyn FnMut(u64, &Path, Result<Found<'_>, BlockFault>) -> Result<()> + 'e;

/// A block that is there.
pub(crate) struct Found<'b> {
    /// How it is stored.
    pub(crate) record: Record,
    /// Its samples.
    pub(crate) raw: &'b [u8],
}

/// Reused memory of reading blocks.
struct Buffers {
    decoder: BlockDecoder,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

impl Buffers {
    fn new() -> Result<Self, raddle_codec::CodecError> {
        Ok(Self { decoder: BlockDecoder::new()?, stored: Vec::new(), raw: Vec::new() })
    }

    /// Reads and decodes a block whose record has been checked.
    fn fill(
        &mut self,
        file: &File,
        record: &Record,
        raw_len_bytes: usize,
    ) -> std::io::Result<Result<&[u8], raddle_codec::CodecError>> {
        self.stored.resize(record.len_bytes as usize, 0);
        file.read_exact_at(&mut self.stored, record.offset)?;
        if record.compression == crate::compression::Compression::None {
            return Ok(Ok(&self.stored));
        }
        self.raw.resize(raw_len_bytes, 0);
        let decoded = self.decoder.decode(record.compression, &self.stored, &mut self.raw);
        Ok(decoded.map(|()| self.raw.as_slice()))
    }
}
