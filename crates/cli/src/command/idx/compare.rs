//! Compares a dataset with the arrays from which it was made.
//!
//! Invariant: everything in the dataset that was not compared with an input is reported; "equal" covers the whole
//! dataset.

use super::inputs::Inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use raddle_codec::ZfpMode;
use raddle_core::CoreError;
use raddle_idx::dataset::compression::Compression;
use raddle_idx::dataset::sample::Number;
use raddle_idx::dataset::time_steps::StepList;
use raddle_idx::dataset::vectors::{components_of, put_component};
use raddle_idx::zarr::{Image, Images};
use raddle_idx::{Dataset, IdxError, Query, Readers, SampleBox};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Length of the rows of samples compared at once.
const PIECE_LEN_BYTES: u64 = 64 << 20;

/// A field that is not equal to its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// Input of the field.
    pub input: PathBuf,
    /// Number of samples that differ.
    pub samples: u64,
}

/// A field that was rounded when it was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounded {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// Compression, as named in the header.
    pub compression: String,
    /// Largest difference between a sample and that of the input.
    pub largest_difference: f64,
}

/// First and last of each run of consecutive time steps; `None` if there are no time steps.
pub type StepRuns = Vec<Option<(u64, u64)>>;

/// Time steps of a field that were not compared with any input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// Field.
    pub field: String,
    /// First and last of the consecutive steps, if there are time steps.
    pub time: Option<(u64, u64)>,
}

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Fields that differ from their inputs by more than their compression allows.
    pub unequal: Vec<Unequal>,
    /// Fields that differ from their inputs within the limits of their compression.
    pub rounded: Vec<Rounded>,
    /// Parts of the dataset that were not compared.
    pub not_compared: Vec<NotCompared>,
}

impl Comparison {
    /// Whether nothing differs and nothing was left out.
    pub fn is_equal(&self) -> bool {
        self.unequal.is_empty() && self.not_compared.is_empty()
    }
}

/// Allowed difference between samples and those of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// No difference.
    Exact,
    /// Difference of at most this value.
    Within(f64),
    /// Any finite difference: finite numbers stay finite.
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

    /// Whether samples may differ by `difference`.
    fn allows(self, difference: f64) -> bool {
        match self {
            Self::Exact => false,
            Self::Within(tolerance) => difference <= tolerance,
            Self::Finite => difference.is_finite(),
        }
    }
}

/// A dataset that is compared with inputs.
pub trait Compared {
    /// Returns the allowed difference of a field's samples, and its compression.
    fn tolerance(&self, field: usize, inputs: &Inputs) -> (Tolerance, String);

    /// Checks that the dataset has a field with the name, type, samples and time steps of `inputs`; otherwise describes
    /// the difference.
    fn check(&self, field: usize, inputs: &Inputs) -> Result<(), String>;

    /// Returns the fields of the dataset, each with its time steps.
    fn holds(&self, inputs: &Inputs) -> Vec<(String, StepRuns)>;

    /// Reads samples of a field at a time step, x fastest. `field` is the number of the input's field, and `rows`
    /// selects rows of the input.
    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &Inputs,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>, IdxError>;
}

/// Compares the fields of the dataset at `path` with `inputs`. Most are expected to be identical bit by bit.
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
                    let is_allowed = differences(sample.number, got, want).all(|difference| {
                        largest_difference = largest_difference.max(difference);
                        tolerance.allows(difference)
                    });
                    samples += u64::from(!is_allowed);
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
    comparison.not_compared = not_compared(dataset, inputs);
    Ok(comparison)
}

/// Returns the differences between the numbers of two samples that differ.
fn differences<'s>(number: Number, one: &'s [u8], other: &'s [u8]) -> impl Iterator<Item = f64> + use<'s> {
    let numbers = one.chunks(number.len_bytes()).zip(other.chunks(number.len_bytes()));
    let differing = numbers.filter(|(one, other)| one != other);
    differing.map(move |(one, other)| (number.value_of(one) - number.value_of(other)).abs())
}

/// Returns the parts of the dataset that correspond to none of `inputs`.
fn not_compared(dataset: &dyn Compared, inputs: &Inputs) -> Vec<NotCompared> {
    let steps: BTreeSet<u64> = inputs.steps.iter().filter_map(|(step, _)| *step).collect();
    let mut left = Vec::new();
    for (field, runs) in dataset.holds(inputs) {
        let is_input = inputs.fields.iter().any(|(name, _)| *name == field);
        for run in runs {
            match run {
                _ if !is_input => left.push(NotCompared { field: field.clone(), time: run }),
                Some(run) => left.extend(
                    gaps(run, &steps).into_iter().map(|time| NotCompared { field: field.clone(), time: Some(time) }),
                ),
                None => {}
            }
        }
    }
    left
}

/// Removes `steps` from a run of steps and returns the remaining runs.
fn gaps((first, last): (u64, u64), steps: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let (mut gaps, mut from) = (Vec::new(), Some(first));
    for step in steps.range(first..=last) {
        gaps.extend(from.filter(|from| from < step).map(|from| (from, step - 1)));
        from = step.checked_add(1);
    }
    gaps.extend(from.filter(|from| *from <= last).map(|from| (from, last)));
    gaps
}

/// An IDX dataset with its time steps.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'d> {
    /// Dataset that is compared.
    pub dataset: &'d Dataset,
    /// Time steps of the dataset.
    pub steps: &'d [Option<u64>],
}

impl Compared for Stored<'_> {
    fn tolerance(&self, field: usize, inputs: &Inputs) -> (Tolerance, String) {
        let number = self.numbers(field, inputs).and_then(|numbers| numbers.first().copied());
        let field = number.map(|number| &self.dataset.header().fields[number]);
        let name = field.and_then(|field| field.attribute("default_compression")).unwrap_or_default();
        (Tolerance::of(Compression::from_name(name)), name.to_owned())
    }

    fn check(&self, field: usize, inputs: &Inputs) -> Result<(), String> {
        let (header, whole) = (self.dataset.header(), inputs.region(&(0..inputs.rows())));
        let (name, sample) = &inputs.fields[field];
        let of_input = inputs.steps.iter().filter(|(step, _)| step.is_some());
        if let Some((Some(step), _)) = of_input.into_iter().find(|(step, _)| !self.steps.contains(step)) {
            let there = StepList::of(self.steps.iter().copied().flatten());
            return Err(format!("has no time step {step}; available: {there}"));
        }
        if (whole.start, whole.end) != (header.start, header.end) {
            return Err("has other samples than the inputs".to_owned());
        }
        match header.field_index(name) {
            None if self.numbers(field, inputs).is_some() => Ok(()),
            None => Err(format!("has no field {name}")),
            Some(number) if header.fields[number].sample != *sample => {
                Err(format!("has field {name} of another type than {sample}"))
            }
            Some(_) => Ok(()),
        }
    }

    fn holds(&self, inputs: &Inputs) -> Vec<(String, StepRuns)> {
        let runs: StepRuns = match self.steps {
            [None] => vec![None],
            steps => StepList::of(steps.iter().copied().flatten()).runs().iter().copied().map(Some).collect(),
        };
        let mut names: Vec<String> = self.dataset.header().fields.iter().map(|field| field.name.clone()).collect();
        // The components of an input count as that input.
        for (field, (name, _)) in inputs.fields.iter().enumerate() {
            for number in self.numbers(field, inputs).into_iter().flatten() {
                names[number].clone_from(name);
            }
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names.into_iter().map(|name| (name, runs.clone())).collect()
    }

    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &Inputs,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>, IdxError> {
        // Their existence was checked before.
        let numbers = self.numbers(field, inputs).unwrap_or_default();
        let region = inputs.region(rows);
        let read = |number: usize| {
            let query = Query { time, start: region.start, end: region.end, ..self.dataset.whole(number) };
            self.dataset.read_by(&query, readers)
        };
        if let [number] = numbers[..] {
            return read(number);
        }
        let (sample, mut out) = (inputs.fields[field].1, Vec::new());
        for (component, number) in numbers.into_iter().enumerate() {
            let values = read(number)?;
            out.resize(values.len() * sample.count, 0);
            put_component(&mut out, sample, component, &values);
        }
        Ok(out)
    }
}

impl Stored<'_> {
    /// Returns the field of an input, or the fields of its components.
    fn numbers(&self, field: usize, inputs: &Inputs) -> Option<Vec<usize>> {
        let (header, (name, sample)) = (self.dataset.header(), &inputs.fields[field]);
        let whole = header.field_index(name).map(|number| vec![number]);
        whole.or_else(|| components_of(header, name, *sample))
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

    fn holds(&self, inputs: &Inputs) -> Vec<(String, StepRuns)> {
        let of_image = |image: &Image| {
            // Inputs without steps have time as one of their axes, if at all.
            let has_steps = inputs.steps.iter().any(|(step, _)| step.is_some());
            let time = image.axes().iter().position(|axis| *axis == 't').filter(|_| has_steps);
            let run = time.map(|axis| (0, image.domain(0).end[axis].saturating_sub(1)));
            (image.name().to_owned(), vec![run])
        };
        self.images.iter().map(of_image).collect()
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

/// Returns the box of rows of inputs in an image's first level, restricted to some components; `None` if it has other
/// axes.
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
        // Excludes time, if that is the slowest axis of the samples.
        let has_local_steps = step.is_none() && image.axes().last() == Some(&'t');
        ranges.insert(rank - usize::from(has_local_steps), only);
    }
    ranges.extend(step.map(|step| step..step + 1));
    let start: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let counts: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
    (ranges.len() == image.axes().len()).then(|| SampleBox::new(&start, &counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_left() {
        let left = |run, steps: &[u64]| gaps(run, &steps.iter().copied().collect());
        assert_eq!(left((0, 9), &[]), [(0, 9)]);
        assert_eq!(left((0, 9), &[0, 4, 5, 9, 12]), [(1, 3), (6, 8)]);
        assert_eq!(left((3, 3), &[3]), []);
        assert_eq!(left((u64::MAX - 1, u64::MAX), &[u64::MAX]), [(u64::MAX - 1, u64::MAX - 1)]);
    }
}
