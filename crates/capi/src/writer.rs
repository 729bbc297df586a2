//! Handle that receives the shape of the dataset and this rank's boxes, and writes step by step.
//!
//! Invariants: samples are not copied before they are written, so they must remain valid until the step ends; options
//! and fields are fixed once the first step begins; a failed call changes nothing, except that ending a step discards
//! it on failure.

use crate::call::{c_text, call};
use crate::fault::{CallError, RaddleIdxStatus};
use crate::options::Options;
use crate::pointers;
use crate::ranks::{CallerRanks, RaddleIdxRanks};
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Silent, Watch};
use raddle_idx::dataset::bitmask::MAX_RANK;
use raddle_idx::dataset::header::Field;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::write::restructure::ImposedBox;
use raddle_idx::{BoxData, SampleBox, WriteReport, Writer};
use std::borrow::Cow;
use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;

/// Maximum number of axes of a dataset.
pub const RADDLE_IDX_MAX_AXES: usize = 5;

// All arrays of numbers per axis have this length.
const _: () = assert!(RADDLE_IDX_MAX_AXES == MAX_RANK);

/// Step number of a dataset without time steps.
pub const RADDLE_IDX_NO_STEP: u64 = 0xffff_ffff_ffff_ffff;

/// A dataset that is being written.
#[derive(Debug)]
pub struct RaddleIdxWriter {
    path: PathBuf,
    counts: Vec<u64>,
    ranks: Box<dyn Communicator>,
    options: Options,
    fields: Vec<(String, SampleType)>,
    boxes: Vec<SampleBox>,
    step: Option<Step>,
    /// Writer, created with the first step.
    writer: Option<Writer>,
    /// Report of the last step, as JSON.
    report: Option<CString>,
}

/// Number and samples of a step to be written.
type PendingStep<'a> = (Option<u64>, Vec<BoxData<'a>>);

/// A step that has begun and not yet ended.
#[derive(Debug)]
struct Step {
    number: Option<u64>,
    /// Samples passed by the caller, indexed by box and field.
    samples: Vec<Vec<Option<CallerSamples>>>,
}

/// Samples in the caller's memory.
#[derive(Debug, Clone, Copy)]
struct CallerSamples {
    first: *const u8,
    len_bytes: usize,
}

impl CallerSamples {
    /// Returns the samples as bytes.
    ///
    /// # Safety
    /// They must still be valid, and must not be changed while the result is used.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len_bytes == 0 {
            return &[];
        }
        // SAFETY: not null, which is checked on passing, and as long as stated by the caller, who keeps them until the
        // step ends.
        unsafe { std::slice::from_raw_parts(self.first, self.len_bytes) }
    }
}

impl RaddleIdxWriter {
    fn new(path: PathBuf, counts: &[u64], ranks: Box<dyn Communicator>) -> Self {
        let options = Options::new(ranks.size());
        let (fields, step, writer, report) = (Vec::new(), None, None, None);
        // A single process holds the whole dataset by default.
        let whole = SampleBox::new(&vec![0; counts.len()], counts);
        let boxes = if ranks.size() == 1 { vec![whole] } else { Vec::new() };
        Self { path, counts: counts.to_vec(), ranks, options, fields, boxes, step, writer, report }
    }

    /// Returns the writer if `what` may still be changed.
    fn still_open(&mut self, what: &'static str) -> Result<&mut Self, CallError> {
        match (&self.step, &self.writer) {
            (None, None) => Ok(self),
            _ => Err(CallError::TooLate { what, when: "once the first step has begun" }),
        }
    }

    fn region(&self, start: &[u64], counts: &[u64]) -> Result<SampleBox, CallError> {
        let ends = start.iter().zip(counts).all(|(start, count)| start.checked_add(*count).is_some());
        match ends {
            true => Ok(SampleBox::new(start, counts)),
            false => Err(CallError::Box { start: start.to_vec(), counts: counts.to_vec() }),
        }
    }

    fn add_box(&mut self, region: SampleBox, replaces: bool) -> Result<u32, CallError> {
        if self.step.is_some() {
            return Err(CallError::TooLate { what: "the boxes", when: "while a step is open" });
        }
        if replaces {
            self.boxes.clear();
        }
        self.boxes.push(region);
        Ok((self.boxes.len() - 1) as u32)
    }

    fn give(&mut self, number: u32, name: &str, first: *const u8, len_bytes: u64) -> Result<(), CallError> {
        let step = self.step.as_mut().ok_or(CallError::NoStep)?;
        let Some(field) = self.fields.iter().position(|(known, _)| known == name) else {
            let known: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
            return Err(CallError::NoField { name: name.to_owned(), known: known.join(", ") });
        };
        let Some(region) = self.boxes.get(number as usize) else {
            return Err(CallError::NoBox { number, count: self.boxes.len() });
        };
        let sample_len_bytes = self.fields[field].1.len_bytes() as u64;
        let want_bytes = region.sample_count().and_then(|samples| samples.checked_mul(sample_len_bytes));
        let want_bytes = want_bytes.unwrap_or(u64::MAX);
        let len = isize::try_from(len_bytes).ok().filter(|_| len_bytes == want_bytes);
        let Some(len) = len else {
            let counts = region.counts()[..self.counts.len()].to_vec();
            return Err(CallError::Length { field: name.to_owned(), counts, got_bytes: len_bytes, want_bytes });
        };
        if len > 0 && first.is_null() {
            return Err(CallError::Null { argument: "samples" });
        }
        let place = &mut step.samples[number as usize][field];
        if place.is_some() {
            return Err(CallError::Twice { field: name.to_owned(), number: number as usize });
        }
        *place = Some(CallerSamples { first, len_bytes: len as usize });
        Ok(())
    }

    fn begin_step(&mut self, number: Option<u64>) -> Result<(), CallError> {
        if self.step.is_some() {
            return Err(CallError::StepOpen);
        }
        if self.writer.as_ref().is_some_and(|writer| writer.header().time.is_some() != number.is_some()) {
            return Err(CallError::Numbered { path: self.path.clone() });
        }
        let samples = vec![vec![None; self.fields.len()]; self.boxes.len()];
        self.step = Some(Step { number, samples });
        Ok(())
    }

    /// Collective. Ends the open step. Every rank takes part, even if its own step has an error.
    ///
    /// # Safety
    /// The samples passed for the open step must still be valid.
    unsafe fn end_step(&mut self) -> Result<(), CallError> {
        // SAFETY: as the caller promises.
        let begun = unsafe { self.begun() };
        let begun = self.ranks.agree("describe the step", begun);
        let written = begun.and_then(|begun| self.write_begun(begun));
        if self.report.is_none() && written.is_err() {
            // Until the first step is written, options and fields may still change.
            self.writer = None;
        }
        self.report = Some(written?);
        Ok(())
    }

    fn write_begun(&mut self, (number, patches): PendingStep<'_>) -> Result<CString, CallError> {
        let Some(writer) = &mut self.writer else { return Err(CallError::NoStep) };
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        Ok(json(&writer.write_collective(number, patches, &watch, &*self.ranks)?))
    }

    /// Ends the open step and returns it; afterwards the writer of the dataset exists.
    ///
    /// # Safety
    /// As for [`Self::end_step`].
    unsafe fn begun<'a>(&mut self) -> Result<PendingStep<'a>, CallError> {
        let step = self.step.take().ok_or(CallError::NoStep)?;
        let mut patches = Vec::new();
        for (number, (region, samples_by_field)) in self.boxes.iter().zip(&step.samples).enumerate() {
            if region.is_empty() {
                continue;
            }
            let mut arrays = Vec::new();
            for ((name, _), samples) in self.fields.iter().zip(samples_by_field) {
                let samples = samples.ok_or_else(|| CallError::NotGiven { field: name.clone(), number })?;
                // SAFETY: as the caller promises.
                arrays.push(Cow::Borrowed(unsafe { samples.bytes() }));
            }
            patches.push(BoxData { region: *region, arrays });
        }
        if self.writer.is_none() {
            let header = self.options.layout.header(&self.path, &self.counts, &self.fields, step.number.is_some());
            let header = header.map_err(|source| CallError::Header { path: self.path.clone(), source })?;
            let options = self.options.write.clone();
            let writer = match self.options.append {
                true => Writer::resume(&self.path, &header, options)?,
                false => Writer::new(&self.path, header, options)?,
            };
            self.writer = Some(writer.split(self.options.layout.split(&self.fields)));
        }
        Ok((step.number, patches))
    }
}

fn json(report: &WriteReport) -> CString {
    c_text(&serde_json::to_string(report).unwrap_or_default())
}

/// Creates a handle for writing a dataset; nothing is written until a step ends. Numbers per axis are in the order x
/// first in all functions: x is the axis along which samples are contiguous in memory, which is the last axis of an
/// array in C and the first in Fortran. Every rank must create a handle with the same arguments, except for ranks.
///
/// path: the .idx file to create; its blocks are stored in a folder with the same name next to it. A relative path is
/// resolved by this call. axes, counts: number of samples of the whole dataset along each axis. ranks: NULL for a single
/// process; the structure is copied. writer: receives the handle, which must be released with raddle_idx_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_create(
    path: *const c_char,
    axes: u32,
    counts: *const u64,
    ranks: *const RaddleIdxRanks,
    writer: *mut *mut RaddleIdxWriter,
) -> RaddleIdxStatus {
    call(|| {
        let make = || {
            if !(1..=MAX_RANK).contains(&(axes as usize)) {
                return Err(CallError::Axes { axes, limit: MAX_RANK });
            }
            // SAFETY: a text, `axes` counts, and null or a table, as the header requires.
            let (path, counts, ranks) = unsafe {
                (pointers::path("path", path)?, pointers::values("counts", counts, axes as usize)?, ranks.as_ref())
            };
            let ranks: Box<dyn Communicator> = match ranks {
                None => Box::new(SingleProcess),
                Some(functions) => Box::new(CallerRanks::new(*functions)?),
            };
            Ok(RaddleIdxWriter::new(path, counts, ranks))
        };
        // SAFETY: null or a place for a handle.
        unsafe { pointers::put_handle("writer", writer, make) }
    })
}

/// Sets an option. Must be called before the first step begins, with the same value on every rank except for jobs and
/// memory. Names and values are those of raddle idx write: compress (zip, lz4, zfp, zfp:precision=N, zfp:accuracy=X,
/// none), order (rows, hz), bitmask (such as V012012), bits-per-block, blocks-per-file, split-vectors (never, wide,
/// all), phases (one, two, three), box (default, expanded, cube), aggregators, jobs (threads of this rank), memory
/// (such as 512MiB), force, append and no-sync (true, false). split-vectors selects the vectors to write as one field
/// per component, NAME_0, NAME_1, ...; wide selects those that OpenVisus cannot read. With no-sync, data is not synced
/// to disk: if the machine crashes, data can be lost or corrupted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_set_option(
    writer: *mut RaddleIdxWriter,
    name: *const c_char,
    value: *const c_char,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle and two strings, as the header requires.
        let (writer, name, value) = unsafe {
            (pointers::it("writer", writer)?, pointers::text("name", name)?, pointers::text("value", value)?)
        };
        writer.still_open("options")?.options.set(name, value)
    })
}

/// Sets the size of the power-of-two boxes of the first phase, x first; each number is rounded up to a power of two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_set_imposed_box(
    writer: *mut RaddleIdxWriter,
    counts: *const u64,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle, as the header requires.
        let writer = unsafe { pointers::it("writer", writer)? }.still_open("options")?;
        // SAFETY: a count for each axis.
        let counts = unsafe { pointers::values("counts", counts, writer.counts.len())? };
        let of_axis = |axis: usize| counts.get(axis).copied().unwrap_or(1);
        writer.options.write.imposed = ImposedBox::Counts(std::array::from_fn(of_axis));
        Ok(())
    })
}

/// Adds a field. Must be called before the first step begins, identically on every rank. A sample consists of the given
/// number of contiguous components of type uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32 or
/// float64. A name has no white space, no '+' and no unpaired parentheses, and does not begin with '(' or '#'.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_add_field(
    writer: *mut RaddleIdxWriter,
    name: *const c_char,
    number: *const c_char,
    components: u32,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle and two strings, as the header requires.
        let (writer, field, number) = unsafe {
            (pointers::it("writer", writer)?, pointers::text("name", name)?, pointers::text("number", number)?)
        };
        let writer = writer.still_open("fields")?;
        if writer.fields.iter().any(|(known, _)| known == field) {
            return Err(CallError::FieldTwice { field: field.to_owned() });
        }
        let sample = format!("{number}[{components}]").parse().map_err(|_| CallError::SampleType {
            field: field.to_owned(),
            number: number.to_owned(),
            components,
        })?;
        let checked = Field::new(field, sample).check();
        checked.map_err(|source| CallError::Header { path: writer.path.clone(), source })?;
        writer.fields.push((field.to_owned(), sample));
        Ok(())
    })
}

/// Sets the box of the dataset that this rank holds from now on, replacing all previous boxes: its first sample and
/// number of samples per axis, x first. A rank without samples has a box with a count of 0. The boxes of all ranks must
/// be disjoint and cover the dataset. By default, a single process holds the whole dataset, and each of several ranks
/// holds nothing. Must not be called while a step is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_set_box(
    writer: *mut RaddleIdxWriter,
    start: *const u64,
    counts: *const u64,
) -> RaddleIdxStatus {
    // SAFETY: the requirements on the arguments are the same.
    call(|| unsafe { add_box(writer, start, counts, true) }.map(drop))
}

/// Adds another box to those that this rank holds. Stores its number for raddle_idx_write_box in number, unless that is
/// NULL; the box of raddle_idx_set_box has number 0, added boxes have 1, 2, ...
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_add_box(
    writer: *mut RaddleIdxWriter,
    start: *const u64,
    counts: *const u64,
    number: *mut u32,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: the requirements on the arguments are the same.
        let added = unsafe { add_box(writer, start, counts, false) }?;
        if number.is_null() {
            return Ok(());
        }
        // SAFETY: a place for a number.
        unsafe { pointers::put("number", number, added) }
    })
}

unsafe fn add_box(
    writer: *mut RaddleIdxWriter,
    start: *const u64,
    counts: *const u64,
    replaces: bool,
) -> Result<u32, CallError> {
    // SAFETY: a handle, and a number for each axis, as the header requires.
    let writer = unsafe { pointers::it("writer", writer)? };
    let axes = writer.counts.len();
    // SAFETY: as above.
    let (start, counts) =
        unsafe { (pointers::values("start", start, axes)?, pointers::values("counts", counts, axes)?) };
    let region = writer.region(start, counts)?;
    writer.add_box(region, replaces)
}

/// Begins the step with the given number, or with RADDLE_IDX_NO_STEP the only step of a dataset without numbered steps.
/// Steps may be written in any order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_begin_step(writer: *mut RaddleIdxWriter, step: u64) -> RaddleIdxStatus {
    // SAFETY: a handle, as the header requires.
    call(|| unsafe { pointers::it("writer", writer) }?.begin_step((step != RADDLE_IDX_NO_STEP).then_some(step)))
}

/// Passes the samples of a field in the box of raddle_idx_set_box. They are not copied: the memory must remain
/// unchanged until raddle_idx_end_step, which writes them, has returned. The samples are laid out as in an array
/// a[z][y][x][component] in C, or a(component, x, y, z) in Fortran, without gaps. len_bytes: total length, used to
/// detect mistakes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_write(
    writer: *mut RaddleIdxWriter,
    field: *const c_char,
    samples: *const c_void,
    len_bytes: u64,
) -> RaddleIdxStatus {
    // SAFETY: the requirements on the arguments are the same.
    unsafe { raddle_idx_write_box(writer, 0, field, samples, len_bytes) }
}

/// Passes the samples of a field in the box with the given number, for ranks that hold several boxes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_write_box(
    writer: *mut RaddleIdxWriter,
    number: u32,
    field: *const c_char,
    samples: *const c_void,
    len_bytes: u64,
) -> RaddleIdxStatus {
    call(|| {
        // SAFETY: a handle and a text, as the header requires.
        let (writer, field) = unsafe { (pointers::it("writer", writer)?, pointers::text("field", field)?) };
        writer.give(number, field, samples.cast(), len_bytes)
    })
}

/// Collective. Writes the open step, completely or not at all, and ends it. When it returns 0 on any rank, readers see
/// the step and, unless no-sync was set, it survives a crash. If it fails, it fails on every rank, nothing of the step
/// is written, and the next step may begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_end_step(writer: *mut RaddleIdxWriter) -> RaddleIdxStatus {
    // SAFETY: a handle, and the samples passed before are still valid, as the header requires.
    call(|| unsafe { pointers::it("writer", writer)?.end_step() })
}

/// Returns statistics of writing the last step, as JSON with the fields of raddle idx write --report. NULL before the
/// first step is written. The text is valid until the next step ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_report(writer: *const RaddleIdxWriter) -> *const c_char {
    // SAFETY: null or a handle, as the header requires.
    let report = unsafe { writer.as_ref() }.and_then(|writer| writer.report.as_ref());
    report.map_or(std::ptr::null(), |report| report.as_ptr())
}

/// Closes a handle, which must not be used again; does nothing for NULL. An open step is discarded, which is reported
/// as RADDLE_IDX_STATUS_USAGE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_idx_close(writer: *mut RaddleIdxWriter) -> RaddleIdxStatus {
    // SAFETY: null or a handle that is not used again, as the header requires.
    call(|| match unsafe { pointers::take_handle(writer) } {
        Some(writer) if writer.step.is_some() => Err(CallError::GivenUp),
        _ => Ok(()),
    })
}
