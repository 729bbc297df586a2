//! Handle that describes a dataset and reads boxes of it into the caller's memory.

use crate::call::{c_text, call};
use crate::fault::{CallError, RaddleIdxStatus};
use crate::pointers;
use crate::writer::{RADDLE_IDX_MAX_AXES, RADDLE_IDX_NO_STEP};
use raddle_idx::dataset::bitmask::{MAX_RANK, Point};
use raddle_idx::{Dataset, Query};
use std::ffi::{CString, c_char, c_void};

/// A dataset opened for reading.
#[derive(Debug)]
pub struct RaddleIdxReader {
    dataset: Dataset,
    /// Name of each field and of its type.
    names: Vec<(CString, CString)>,
}

/// Description of a dataset. Numbers per axis are in the order x first; axes beyond those of the dataset start at 0 and
/// have a count of 1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RaddleIdxInfo {
    /// First sample per axis, 0 in most datasets.
    pub start: [u64; RADDLE_IDX_MAX_AXES],
    /// Number of samples per axis.
    pub counts: [u64; RADDLE_IDX_MAX_AXES],
    /// First time step, or RADDLE_IDX_NO_STEP if there are none.
    pub first_step: u64,
    /// Last time step, or RADDLE_IDX_NO_STEP.
    pub last_step: u64,
    /// Number of axes.
    pub axes: u32,
    /// Number of fields.
    pub fields: u32,
    /// Highest resolution, which contains all samples.
    pub resolution: u32,
}

/// Description of a field. The strings are valid until the handle is closed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RaddleIdxField {
    /// Name of the field.
    pub name: *const c_char,
    /// Type of its numbers, for example float64.
    pub number: *const c_char,
    /// Number of components per sample.
    pub components: u32,
    /// Number of bytes per sample.
    pub sample_len_bytes: u32,
}

/// Part of a dataset to read; created by raddle_idx_make_query.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RaddleIdxQuery {
    /// First sample per axis, x first.
    pub start: [u64; RADDLE_IDX_MAX_AXES],
    /// Number of samples per axis, at full resolution.
    pub counts: [u64; RADDLE_IDX_MAX_AXES],
    /// Time step, or RADDLE_IDX_NO_STEP.
    pub step: u64,
    /// Number of the field, from 0.
    pub field: u32,
    /// Highest level to read; lower levels contain every n-th sample of the box along each axis.
    pub resolution: u32,
    /// If not 0, missing blocks are read as the field's default value; otherwise they are an error.
    pub missing_as_default: u32,
}

impl RaddleIdxReader {
    fn new(dataset: Dataset) -> Self {
        let fields = dataset.header().fields.iter();
        let names = fields.map(|field| (c_text(&field.name), c_text(field.sample.number.name()))).collect();
        Self { dataset, names }
    }

    fn info(&self) -> RaddleIdxInfo {
        let header = self.dataset.header();
        let range = header.time.as_ref().map(|time| time.range.unwrap_or((0, 0)));
        let (first_step, last_step) = range.unwrap_or((RADDLE_IDX_NO_STEP, RADDLE_IDX_NO_STEP));
        RaddleIdxInfo {
            start: header.start,
            counts: std::array::from_fn(|axis| header.end[axis] - header.start[axis]),
            first_step,
            last_step,
            axes: header.rank as u32,
            fields: header.fields.len() as u32,
            resolution: header.bitmask.max_level(),
        }
    }

    fn query(&self, name: &str) -> Result<RaddleIdxQuery, CallError> {
        let header = self.dataset.header();
        let field = header.field_index(name).ok_or_else(|| {
            let known: Vec<&str> = header.fields.iter().map(|field| field.name.as_str()).collect();
            CallError::NoField { name: name.to_owned(), known: known.join(", ") }
        })?;
        let RaddleIdxInfo { start, counts, first_step, resolution, .. } = self.info();
        Ok(RaddleIdxQuery { start, counts, step: first_step, field: field as u32, resolution, missing_as_default: 0 })
    }
}

impl RaddleIdxQuery {
    fn meant(&self) -> Result<Query, CallError> {
        let mut end: Point = [0; MAX_RANK];
        for (end, (start, count)) in end.iter_mut().zip(self.start.iter().zip(self.counts)) {
            let too_long = || CallError::Box { start: self.start.to_vec(), counts: self.counts.to_vec() };
            *end = start.checked_add(count).ok_or_else(too_long)?;
        }
        Ok(Query {
            field: self.field as usize,
            time: (self.step != RADDLE_IDX_NO_STEP).then_some(self.step),
            start: self.start,
            end,
            resolution: self.resolution,
            missing_as_default: self.missing_as_default != 0,
        })
    }
}

/// Opens a dataset for reading. path: the .idx file; a relative path is resolved by this call. reader: receives the
/// handle, which must be released with raddle_idx_close_reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_open(path: *const c_char, reader: *mut *mut RaddleIdxReader) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a text, as the header requires.
        let make = || Ok(RaddleIdxReader::new(Dataset::open(&unsafe { pointers::path("path", path) }?)?));
        // SAFETY: null or a place for a handle.
        unsafe { pointers::put_handle("reader", reader, make) }
    })
}

/// Describes the dataset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_get_info(
    reader: *const RaddleIdxReader,
    info: *mut RaddleIdxInfo,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle and a place, as the header requires.
        unsafe { pointers::put("info", info, pointers::seen("reader", reader)?.info()) }
    })
}

/// Describes the field with the given number, counted from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_get_field(
    reader: *const RaddleIdxReader,
    number: u32,
    field: *mut RaddleIdxField,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle, as the header requires.
        let reader = unsafe { pointers::seen("reader", reader) }?;
        let fields = &reader.dataset.header().fields;
        let found = fields.get(number as usize).zip(reader.names.get(number as usize));
        let (of, (name, type_name)) = found.ok_or_else(|| {
            let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            CallError::NoField { name: number.to_string(), known: known.join(", ") }
        })?;
        let reported = RaddleIdxField {
            name: name.as_ptr(),
            number: type_name.as_ptr(),
            components: of.sample.count as u32,
            sample_len_bytes: of.sample.len_bytes() as u32,
        };
        // SAFETY: a place, as the header requires.
        unsafe { pointers::put("field", field, reported) }
    })
}

/// Creates a query for all samples of the named field, at the first time step if there are any; restrict it by changing
/// its members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_make_query(
    reader: *const RaddleIdxReader,
    field: *const c_char,
    query: *mut RaddleIdxQuery,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle, a text and a place, as the header requires.
        unsafe {
            let default_query = pointers::seen("reader", reader)?.query(pointers::text("field", field)?)?;
            pointers::put("query", query, default_query)
        }
    })
}

/// Returns in counts how many samples a query yields along each of RADDLE_IDX_MAX_AXES axes, x first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_query_counts(
    reader: *const RaddleIdxReader,
    query: *const RaddleIdxQuery,
    counts: *mut u64,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle, a query and a place, as the header requires.
        unsafe {
            let grid = pointers::seen("reader", reader)?.dataset.grid(&pointers::seen("query", query)?.meant()?)?;
            pointers::put("counts", counts.cast::<Point>(), grid.counts)
        }
    })
}

/// Reads into the caller's memory, with the sample layout of raddle_idx_write. len_bytes is the length of the memory
/// and must match the samples of the query. On failure, the memory may be partly written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_read(
    reader: *const RaddleIdxReader,
    query: *const RaddleIdxQuery,
    samples: *mut c_void,
    len_bytes: u64,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle and a query, as the header requires.
        let (reader, query) = unsafe { (pointers::seen("reader", reader)?, pointers::seen("query", query)?.meant()?) };
        let want_bytes = reader.dataset.len_bytes(&query)?;
        let len = isize::try_from(len_bytes).ok().filter(|_| len_bytes == want_bytes);
        let Some(len) = len else {
            let counts = reader.dataset.grid(&query)?.counts[..reader.dataset.header().rank].to_vec();
            let field = reader.dataset.header().fields[query.field].name.clone();
            return Err(CallError::Length { field, counts, got_bytes: len_bytes, want_bytes });
        };
        if samples.is_null() {
            return Err(CallError::Null { argument: "samples" });
        }
        // SAFETY: not null, and as long as the caller states; its content consists of arbitrary bytes.
        let samples = unsafe { std::slice::from_raw_parts_mut(samples.cast::<u8>(), len as usize) };
        Ok(reader.dataset.read_into(&query, samples)?)
    })
}

/// Closes a handle, which must not be used again; does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_close_reader(reader: *mut RaddleIdxReader) -> RaddleIdxStatus {
    // SAFETY: null or a handle that is not used again, as the header requires.
    call(|| unsafe { pointers::take_handle(reader) }.map_or(Ok(()), |_| Ok(())))
}
