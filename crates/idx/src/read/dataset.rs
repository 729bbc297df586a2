//! A dataset opened for reading, and the queries that select its samples. No block is read here.

use crate::dataset::bitmask::{AXES, MAX_RANK, Point};
use crate::dataset::grid::ArrayGrid;
use crate::dataset::header::{Field, Header, MAX_HEADER_LEN_BYTES, VERSION};
use crate::error::{IdxError, Result, TimeFault};
use raddle_core::cancel::CancelToken;
use raddle_core::output::folder_of;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A request for samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Index of the field.
    pub field: usize,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// First sample.
    pub start: Point,
    /// End of the box, exclusive.
    pub end: Point,
    /// Highest level to read.
    pub resolution: u32,
    /// Whether blocks that are not stored give the field's default value, as in OpenVisus, instead of an error. Damaged
    /// blocks are always errors.
    pub missing_as_default: bool,
}

impl Query {
    /// Returns the query for some rows of `grid`, which is the array that this query gives, and the number of samples
    /// before these rows. Rows run along the slowest axis with more than one sample, so they are contiguous in the
    /// array.
    pub fn rows(&self, grid: &ArrayGrid, rows: &Range<u64>) -> (Self, u64) {
        let axis = grid.slowest_axis();
        let at = |row: u64| grid.origin[axis] + (row << grid.log2_spacing[axis]);
        let mut part = *self;
        (part.start[axis], part.end[axis]) = match rows.is_empty() {
            true => (self.start[axis], self.start[axis]),
            false => (at(rows.start), at(rows.end).min(self.end[axis])),
        };
        (part, rows.start * grid.strides()[axis])
    }
}

/// Threads of a reader and their cancellation.
#[derive(Debug, Clone, Copy)]
pub struct Readers<'a> {
    /// Number of threads of this process.
    pub jobs: usize,
    /// Token that asks the threads to stop.
    pub cancel: &'a CancelToken,
}

/// A dataset opened for reading.
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
        // Reading one byte more than allowed detects a file that is too long.
        let file = File::open(path).map_err(read("open"))?;
        file.take(MAX_HEADER_LEN_BYTES + 1).read_to_end(&mut bytes).map_err(read("read"))?;
        let header = Header::parse(&bytes).map_err(|source| IdxError::Header { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf(), header })
    }

    /// Returns the path of the `.idx` file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contents of the `.idx` file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns whether `path` is named like one of the dataset's files: its `.idx` file or a file of blocks.
    pub fn owns(&self, path: &Path) -> bool {
        let placed = |path: &Path| Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
        let (Some(header_path), Some(path)) = (placed(&self.path), placed(path)) else { return false };
        let within = header_path.parent().and_then(|folder| path.strip_prefix(folder).ok()).and_then(Path::to_str);
        path == header_path || within.is_some_and(|name| self.header.files.may_name(name))
    }

    /// Returns a query for all of a field at full resolution, at the first time step if there is one.
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

    /// Returns the samples that a query selects.
    ///
    /// # Errors
    /// If field, time, resolution or box are not in the dataset, or the box contains no sample of the resolution.
    pub fn grid(&self, query: &Query) -> Result<ArrayGrid> {
        self.part(query)?.ok_or_else(|| self.empty(query))
    }

    /// Returns the samples that a query selects; `None` if the box is empty or contains no sample of the resolution.
    ///
    /// # Errors
    /// If field, time, resolution or box are not in the dataset.
    pub fn part(&self, query: &Query) -> Result<Option<ArrayGrid>> {
        let (header, path) = (&self.header, || self.path.clone());
        if query.field >= header.fields.len() {
            return Err(IdxError::NoField { path: path(), field: query.field, count: header.fields.len() });
        }
        let limit = header.bitmask.max_level();
        if query.resolution > limit {
            return Err(IdxError::NoResolution { path: path(), resolution: query.resolution, limit });
        }
        let fault = match (&header.time, query.time) {
            (None, Some(asked)) => Some(TimeFault::None { asked }),
            (Some(_), None) => Some(TimeFault::Unnamed),
            (Some(time), Some(asked)) if time.range.is_some_and(|(a, b)| !(a..=b).contains(&asked)) => {
                Some(TimeFault::Absent { asked, there: self.step_list() })
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(IdxError::NoTime { path: path(), fault });
        }
        let is_outside =
            |axis: &usize| query.start[*axis] < header.start[*axis] || query.end[*axis] > header.end[*axis];
        if let Some(axis) = (0..MAX_RANK).find(is_outside) {
            let (start, end) = (query.start[axis], query.end[axis]);
            let (first, limit) = (header.start[axis], header.end[axis]);
            return Err(IdxError::BoxOutside { path: path(), axis: AXES[axis], start, end, first, limit });
        }
        Ok(ArrayGrid::of_box(&header.bitmask, &query.start, &query.end, query.resolution))
    }

    fn empty(&self, query: &Query) -> IdxError {
        let of_axes = |point: &Point| point[..self.header.rank].to_vec();
        let (start, end) = (of_axes(&query.start), of_axes(&query.end));
        IdxError::EmptyBox { path: self.path.clone(), start, end, resolution: query.resolution }
    }

    /// Returns the number of the field with this name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn field_named(&self, name: &str) -> Result<usize> {
        self.header.field_index(name).ok_or_else(|| IdxError::NoFieldNamed {
            path: self.path.clone(),
            field: name.to_owned(),
            available: self.header.fields.iter().map(|field| field.name.clone()).collect(),
        })
    }

    /// Returns the shape of the result of a query, slowest axis first, components last. Axes without a sample have
    /// length 0.
    pub fn shape(&self, query: &Query) -> Vec<u64> {
        let header = &self.header;
        let counts = ArrayGrid::counts_of_box(&header.bitmask, &query.start, &query.end, query.resolution);
        let components = header.fields[query.field].sample.count as u64;
        let of_axes = counts[..header.rank].iter().rev().copied();
        of_axes.chain((components > 1).then_some(components)).collect()
    }

    /// Returns the length of the result of a query, in bytes.
    ///
    /// # Errors
    /// As for [`Dataset::grid`].
    pub fn len_bytes(&self, query: &Query) -> Result<u64> {
        let samples = self.grid(query)?.sample_count();
        let sample_len_bytes = self.header.fields[query.field].sample.len_bytes() as u64;
        Ok(samples.and_then(|samples| samples.checked_mul(sample_len_bytes)).unwrap_or(u64::MAX))
    }

    /// Returns the field if its blocks can be read.
    ///
    /// # Errors
    /// If the blocks are of another version or filtered.
    pub(crate) fn readable(&self, number: usize) -> Result<&Field> {
        let (header, field) = (&self.header, &self.header.fields[number]);
        if header.version != VERSION {
            return Err(IdxError::BlockVersion { path: self.path.clone(), version: header.version });
        }
        match field.attribute("filter").filter(|name| !matches!(*name, "" | "identity")) {
            None => Ok(field),
            Some(filter) => {
                let (path, filter) = (self.path.clone(), filter.to_owned());
                Err(IdxError::Filter { path, field: field.name.clone(), filter })
            }
        }
    }
}

/// Allocates a zeroed buffer, if there is enough memory.
pub(crate) fn zeros(len_bytes: u64) -> Result<Vec<u8>> {
    let memory = IdxError::Memory { len_bytes };
    let Ok(len) = usize::try_from(len_bytes) else { return Err(memory) };
    let mut out = Vec::new();
    if out.try_reserve_exact(len).is_err() {
        return Err(memory);
    }
    out.resize(len, 0);
    Ok(out)
}
