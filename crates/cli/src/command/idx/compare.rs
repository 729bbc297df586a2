//! Comparing a dataset with the arrays that it was made of.

use super::inputs::Inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use raddle_codec::ZfpMode;
use raddle_core::CoreError;
use raddle_idx::compression::Compression;
use raddle_idx::zarr::{Image, Images};
use raddle_idx::{Dataset, IdxError, Query, Readers, SampleBox};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rows of samples that are compared at once, in bytes.
const PIECE_LEN_BYTES: u64 = 64 << 20;

/// A field that is not equal to its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// Its input.
    pub input: PathBuf,
    /// Samples that differ.
    pub samples: u64,
}

/// A field that was rounded when it was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounded {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// How, as the header names it.
    pub compression: String,
    /// The largest distance of a sample from the input's.
    pub largest_difference: f64,
}

/// What comparing found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Fields that differ from their inputs, by more than their compression allows.
    pub unequal: Vec<Unequal>,
    /// Fields that are not what their inputs are bit by bit, as their compression has it.
    pub rounded: Vec<Rounded>,
}

/// How far samples may be from those of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Every bit is kept.
    Exact,
    /// So far.
    Within(f64),
    /// No distance is promised: finite numbers are finite.
    Finite,
}

impl Tolerance {
    fn of(compression: Option<Compression>) -> Self {
        match compression {
            Some(Compression::Zfp(ZfpMode::Accuracy(tolerance))) => Self::Within(tolerance),
            Some(Compression::Zfp(ZfpMode::Precision(_))) => Self::Finite,
            _ => Self::Exact,
        }
    }

    /// Whether samples that differ, by so much, may.
    fn allows(self, difference: f64) -> bool {
        match self {
            Self::Exact => false,
            Self::Within(tolerance) => difference <= tolerance,
            Self::Finite => difference.is_finite(),
        }
    }
}

/// A dataset whose samples are compared with inputs.
pub trait Compared {
    /// How far samples of a field may be from the inputs', and how it is compressed.
    fn tolerance(&self, field: usize, inputs: &Inputs) -> (Tolerance, String);

    /// Whether it has a field of this name and type with `inputs`' samples: else how it differs.
    fn check(&self, field: usize, inputs: &Inputs) -> Result<(), String>;

    /// Samples of a field at a time step, x fastest; `field` is that of the inputs, of which `rows` are wanted.
    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &Inputs,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>, IdxError>;
}

/// How the fields of the dataset at `path` differ from `inputs`, which most do by no bit.
///
/// # Errors
/// If the dataset has other fields, counts or time steps, or either side cannot be read.
pub fn compare(
    path: &Path,
    dataset: &dyn Compared,
    inputs: &Inputs,
    readers: &Readers<'_>,
) -> Result<Comparison, Failure> {
    let mut comparison = Comparison::default();
    for (time, of_step) in &inputs.steps {
        for (field, input) in of_step.clone().enumerate() {
            let (name, sample) = &inputs.fields[field];
            let refused = |why: String| Failure::new(Exit::Mismatch, &format!("{}: {why}", path.display()));
            dataset.check(field, inputs).map_err(refused)?;
            let array = &inputs.arrays[input];
            let rows_at_once = (PIECE_LEN_BYTES / array.row_len_bytes().max(1)).max(1);
            let (tolerance, compression) = dataset.tolerance(field, inputs);
            let (mut row, mut samples, mut largest_difference) = (0, 0, 0.0f64);
            while row < inputs.rows() {
                readers.cancel.check().map_err(|error: CoreError| Failure::of_idx(&IdxError::Core(error)))?;
                let rows = row..inputs.rows().min(row + rows_at_once);
                let got = dataset.read_rows(field, *time, &rows, inputs, readers);
                let got = got.map_err(|error| Failure::of_idx(&error))?;
                let want = array.read_rows(rows.clone())?;
                let len = sample.len_bytes();
                for (got, want) in got.chunks(len).zip(want.chunks(len)).filter(|(got, want)| got != want) {
                    // Only samples of one number are rounded.
                    let difference = (sample.number.value_of(got) - sample.number.value_of(want)).abs();
                    if tolerance.allows(difference) {
                        largest_difference = largest_difference.max(difference);
                    } else {
                        samples += 1;
                    }
                }
                row = rows.end;
            }
            if samples > 0 {
                let (field, input) = (name.clone(), array.path.clone());
                comparison.unequal.push(Unequal { field, time: *time, input, samples });
            } else if tolerance != Tolerance::Exact {
                let field = name.clone();
                comparison.rounded.push(Rounded { field, time: *time, compression, largest_difference });
            }
        }
    }
    Ok(comparison)
}

impl Compared for Dataset {
    fn tolerance(&self, field: usize, inputs: &Inputs) -> (Tolerance, String) {
        let field = self.header().field_index(&inputs.fields[field].0).map(|number| &self.header().fields[number]);
        let name = field.and_then(|field| field.attribute("default_compression")).unwrap_or_default();
        (Tolerance::of(Compression::from_name(name)), name.to_owned())
    }

    fn check(&self, field: usize, inputs: &Inputs) -> Result<(), String> {
        let (header, whole) = (self.header(), inputs.region(&(0..inputs.rows())));
        let (name, sample) = &inputs.fields[field];
        if (whole.start, whole.end) != (header.start, header.end) {
            return Err("has other samples than the inputs".to_owned());
        }
        match header.field_index(name) {
            None => Err(format!("has no field {name}")),
            Some(number) if header.fields[number].sample != *sample => {
                Err(format!("has field {name} of another type than {sample}"))
            }
            Some(_) => Ok(()),
        }
    }

    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &Inputs,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>, IdxError> {
        // It has been looked for.
        let number = self.header().field_index(&inputs.fields[field].0).unwrap_or_default();
        let region = inputs.region(rows);
        self.read_by(&Query { time, start: region.start, end: region.end, ..self.whole(number) }, readers)
    }
}

impl Compared for Images {
    fn tolerance(&self, _: usize, _: &Inputs) -> (Tolerance, String) {
        (Tolerance::Exact, String::new())
    }

    fn check(&self, field: usize, inputs: &Inputs) -> Result<(), String> {
        let (name, sample) = &inputs.fields[field];
        let image = self.images.iter().find(|image| image.name() == name);
        let image = image.ok_or_else(|| format!("has no image {name}"))?;
        if image.number() != sample.number {
            return Err(format!("has image {name} of another type than {sample}"));
        }
        let steps = inputs.steps.iter().filter_map(|(step, _)| *step).max();
        let want = region_of(image, inputs, sample.count, &(0..inputs.rows()), steps, 0..sample.count as u64);
        match want {
            Some(want) if want.end == image.domain(0).end => Ok(()),
            _ => Err(format!("has image {name} of other samples than the inputs")),
        }
    }

    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &Inputs,
        _: &Readers<'_>,
    ) -> Result<Vec<u8>, IdxError> {
        let (name, sample) = &inputs.fields[field];
        let mut out = Vec::new();
        for image in self.images.iter().filter(|image| image.name() == name).take(1) {
            let (count, len) = (sample.count, sample.number.len_bytes());
            for component in 0..count {
                let only = component as u64..component as u64 + 1;
                let Some(region) = region_of(image, inputs, count, rows, time, only) else { continue };
                let numbers = image.read(0, &region)?;
                out.resize(numbers.len() * count, 0);
                for (sample, number) in out.chunks_mut(count * len).zip(numbers.chunks(len)) {
                    sample[component * len..][..len].copy_from_slice(number);
                }
            }
        }
        Ok(out)
    }
}

/// The box of an image's first level in which rows of inputs lie, some components of them; `None` if it has other axes.
fn region_of(
    image: &Image,
    inputs: &Inputs,
    components: usize,
    rows: &Range<u64>,
    step: Option<u64>,
    only: Range<u64>,
) -> Option<SampleBox> {
    let (of_samples, rank) = (inputs.region(rows), inputs.counts.len());
    let mut ranges: Vec<Range<u64>> = (0..rank).map(|axis| of_samples.start[axis]..of_samples.end[axis]).collect();
    if components > 1 {
        // Before time, where that is the slowest axis of the samples.
        let has_own_steps = step.is_none() && image.axes().last() == Some(&'t');
        ranges.insert(rank - usize::from(has_own_steps), only);
    }
    ranges.extend(step.map(|step| step..step + 1));
    let start: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let counts: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
    (ranges.len() == image.axes().len()).then(|| SampleBox::new(&start, &counts))
}
