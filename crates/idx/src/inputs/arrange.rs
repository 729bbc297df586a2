//! Arrangement of arrays as fields and time steps of one dataset.

use super::array::{InputLayout, Inputs, RowArray};
use super::dataset::DatasetInput;
use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::sample::SampleType;
use crate::error::{IdxError, Result};
use crate::request::{InputRelation, InputRequest};

impl<A: RowArray> Inputs<A> {
    /// Arranges `arrays`, which are not those of an IDX dataset, as a request specifies.
    ///
    /// # Errors
    /// If they have different numbers of samples, or samples that a header cannot represent.
    pub fn arrange(request: &InputRequest, arrays: Vec<A>) -> Result<Self> {
        let of_samples = arrays.iter().map(|array| samples(request, array)).collect::<Result<Vec<_>>>()?;
        let refused = |array: &A, reason: String| IdxError::Input { place: array.place(), reason };
        let is_steps = request.inputs_are == InputRelation::Steps;
        let Some((counts, first_sample)) = of_samples.first().cloned() else { return Err(IdxError::NoInputs) };
        for (array, (others, sample)) in arrays.iter().zip(&of_samples) {
            if *others != counts {
                let (one, other) = (product(others), product(&counts));
                return Err(refused(array, format!("has {one} samples, {} has {other}", arrays[0].place())));
            }
            if is_steps && *sample != first_sample {
                let reason = format!("has samples of type {sample}, the first step has {first_sample}");
                return Err(refused(array, reason));
            }
        }
        let field_count = if is_steps { 1 } else { arrays.len() };
        let names = match request.names(field_count)? {
            Some(names) => names.to_vec(),
            None => arrays[..field_count].iter().map(|array| plain(array.name())).collect(),
        };
        let fields = names.into_iter().zip(of_samples).map(|(name, (_, sample))| (name, sample)).collect();
        let steps = match is_steps {
            false => vec![(request.step, 0..arrays.len())],
            true => {
                let first = request.step.unwrap_or(0);
                (0..arrays.len()).map(|at| (Some(first.saturating_add(at as u64)), at..at + 1)).collect()
            }
        };
        let layout = InputLayout { counts, fields, steps };
        Ok(Self { layout, arrays, others: Vec::new(), is_dataset: false, whole: None })
    }

    /// Arranges the arrays of an IDX dataset; `array` converts each.
    ///
    /// # Errors
    /// If the number of names differs from the number of fields.
    pub fn of_dataset(
        request: &InputRequest,
        input: DatasetInput,
        array: impl FnMut(super::FieldArray) -> A,
    ) -> Result<Self> {
        let DatasetInput { counts, mut fields, steps, others, arrays, whole } = input;
        let count = fields.len();
        if let Some(names) = request.names(count)? {
            fields.iter_mut().zip(names).for_each(|((name, _), requested)| name.clone_from(requested));
        }
        fields.iter_mut().for_each(|(_, sample)| sample.number = request.cast.unwrap_or(sample.number));
        let steps = (0..).zip(steps).map(|(at, step): (usize, _)| (step, at * count..(at + 1) * count)).collect();
        let whole = whole.filter(|_| request.cast.is_none());
        let arrays = arrays.into_iter().map(array).collect();
        Ok(Self { layout: InputLayout { counts, fields, steps }, arrays, others, is_dataset: true, whole })
    }
}

/// Returns the number of samples along each axis, x first, and their type.
fn samples(request: &InputRequest, array: &impl RowArray) -> Result<(Vec<u64>, SampleType)> {
    let (mut counts, mut count) = (array.shape().to_vec(), 1);
    if request.vector {
        count = counts.pop().unwrap_or(1);
    }
    counts.reverse();
    let fits = !counts.is_empty() && counts.len() <= MAX_RANK && !counts.contains(&0);
    let sample = usize::try_from(count).ok().map(|count| SampleType { number: array.number(), count });
    // The sample type must be representable in a header.
    let sample = sample.filter(|sample| sample.to_string().parse() == Ok(*sample));
    match sample {
        Some(sample) if fits => Ok((counts, sample)),
        _ => {
            let vector = if request.vector { " with the components on the last" } else { "" };
            let shape = array.shape();
            let reason = format!("its shape {shape:?} is not that of 1 to {MAX_RANK} axes of samples{vector}");
            Err(IdxError::Input { place: array.place(), reason })
        }
    }
}

/// Converts a name to one that a header can hold.
fn plain(name: &str) -> String {
    let kept = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let name: String = name.chars().map(|character| if kept(character) { character } else { '_' }).collect();
    if name.is_empty() { "field".to_owned() } else { name }
}

/// Formats sample counts, slowest axis first.
fn product(counts: &[u64]) -> String {
    counts.iter().rev().map(u64::to_string).collect::<Vec<_>>().join(" x ")
}
