//! Vectors written as one scalar field per component, for readers that do not support vectors of every length.
//!
//! OpenVisus throws at samples of most lengths above 32 bytes ([`SampleType::is_read_by_openvisus`]), for example five
//! or eleven float64. It has no other notation for such samples, so their components become fields. Fields are encoded
//! elsewhere. Invariant: component i of field `v` equals field `v_i`, bit for bit.

use crate::dataset::header::Header;
use crate::dataset::sample::SampleType;
use crate::error::{IdxError, Result};
use crate::read::dataset::zeros;
use crate::write::exchange::{BoxData, check_arrays};
use raddle_core::memory::{MemoryBudget, Permit};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Number of samples moved before the next component: they stay in the first-level cache.
const SAMPLES_AT_ONCE: usize = 256;

/// Choice of the vectors that are written as one field per component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum SplitVectors {
    /// No vectors: the components of a sample are stored together
    #[default]
    Never,
    /// Vectors that OpenVisus cannot read: samples of more than 32 bytes, except 64, 128, 256, 512 and 1024
    Wide,
    /// All vectors
    All,
}

impl SplitVectors {
    /// Returns whether samples of this type are split into several fields.
    fn takes(self, sample: SampleType) -> bool {
        match self {
            Self::Never => false,
            Self::Wide => sample.count > 1 && !sample.is_read_by_openvisus(),
            Self::All => sample.count > 1,
        }
    }
}

/// Returns the name of the field that holds component number `component`, from 0, of the vector `field`.
fn component_name(field: &str, component: usize) -> String {
    format!("{field}_{component}")
}

/// Returns the fields of `header` that hold the components of a vector `name` of type `sample`, if it was split.
pub fn components_of(header: &Header, name: &str, sample: SampleType) -> Option<Vec<usize>> {
    if sample.count < 2 || header.field_index(name).is_some() {
        return None;
    }
    let number = SampleType { count: 1, ..sample };
    let component = |component: usize| {
        let field = header.field_index(&component_name(name, component))?;
        (header.fields[field].sample == number).then_some(field)
    };
    (0..sample.count).map(component).collect()
}

/// Mapping from the caller's fields to the fields that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSplit {
    /// Type of the samples of each original field, and whether it is split.
    originals: Vec<(SampleType, bool)>,
    /// Fields that are written.
    fields: Vec<(String, SampleType)>,
}

impl FieldSplit {
    /// Splits the fields of `originals` that `which` selects.
    pub fn new(originals: &[(String, SampleType)], which: SplitVectors) -> Self {
        let mut fields = Vec::with_capacity(originals.len());
        for (name, sample) in originals {
            if which.takes(*sample) {
                let number = SampleType { count: 1, ..*sample };
                fields.extend((0..sample.count).map(|component| (component_name(name, component), number)));
            } else {
                fields.push((name.clone(), *sample));
            }
        }
        Self { originals: originals.iter().map(|(_, sample)| (*sample, which.takes(*sample))).collect(), fields }
    }

    /// Returns whether any field is split.
    pub(crate) fn is_any(&self) -> bool {
        self.originals.iter().any(|(_, is_split)| *is_split)
    }

    /// Returns the fields that are written.
    pub fn fields(&self) -> &[(String, SampleType)] {
        &self.fields
    }

    /// Splits the arrays of `patches`, which have one array per original field. The permit covers the memory that the
    /// new arrays need beyond that of the old ones.
    ///
    /// # Errors
    /// If arrays do not fit their boxes, or there is not enough memory.
    pub(crate) fn apply<'a>(
        &self,
        patches: Vec<BoxData<'a>>,
        budget: &MemoryBudget,
    ) -> Result<(Vec<BoxData<'a>>, Option<Permit>)> {
        let sample_lens: Vec<usize> = self.originals.iter().map(|(sample, _)| sample.len_bytes()).collect();
        check_arrays(&patches, &sample_lens)?;
        // An owned array is freed once its components exist; a borrowed one stays.
        let (mut kept_len_bytes, mut longest_len_bytes) = (0, 0);
        for (array, (_, is_split)) in patches.iter().flat_map(|patch| patch.arrays.iter().zip(&self.originals)) {
            match array {
                _ if !is_split => {}
                Cow::Borrowed(array) => kept_len_bytes += array.len() as u64,
                Cow::Owned(array) => longest_len_bytes = longest_len_bytes.max(array.len() as u64),
            }
        }
        if kept_len_bytes + longest_len_bytes == 0 {
            return Ok((patches, None));
        }
        let permit = budget.try_acquire(kept_len_bytes + longest_len_bytes, "splitting vectors into fields");
        let mut permit = permit.map_err(IdxError::Core)?;
        let split = |patch: BoxData<'a>| {
            let mut arrays = Vec::with_capacity(self.fields.len());
            for (array, (sample, is_split)) in patch.arrays.into_iter().zip(&self.originals) {
                match is_split {
                    true => arrays.extend(components(&array, *sample)?.into_iter().map(Cow::Owned)),
                    false => arrays.push(array),
                }
            }
            Ok(BoxData { region: patch.region, arrays })
        };
        let patches = patches.into_iter().map(split).collect::<Result<_>>()?;
        permit.shrink_to(kept_len_bytes);
        Ok((patches, Some(permit)))
    }
}

/// Returns one array per component of the samples in `array`.
fn components(array: &[u8], sample: SampleType) -> Result<Vec<Vec<u8>>> {
    match sample.number.len_bytes() {
        1 => components_of_len::<1>(array, sample.count),
        2 => components_of_len::<2>(array, sample.count),
        4 => components_of_len::<4>(array, sample.count),
        _ => components_of_len::<8>(array, sample.count),
    }
}

fn components_of_len<const LEN: usize>(array: &[u8], count: usize) -> Result<Vec<Vec<u8>>> {
    let len_bytes = (array.len() / count) as u64;
    let mut all = (0..count).map(|_| zeros(len_bytes)).collect::<Result<Vec<_>>>()?;
    let numbers = array.as_chunks::<LEN>().0;
    for (at, samples) in numbers.chunks(SAMPLES_AT_ONCE * count).enumerate() {
        for (component, out) in all.iter_mut().enumerate() {
            let out = out.as_chunks_mut::<LEN>().0.iter_mut().skip(at * SAMPLES_AT_ONCE);
            for (out, number) in out.zip(samples.iter().skip(component).step_by(count)) {
                *out = *number;
            }
        }
    }
    Ok(all)
}

/// Copies the numbers of one component into `samples`, which have the unsplit type `sample`.
pub fn put_component(samples: &mut [u8], sample: SampleType, component: usize, numbers: &[u8]) {
    let len = sample.number.len_bytes();
    for (sample, number) in samples.chunks_exact_mut(sample.len_bytes()).zip(numbers.chunks_exact(len)) {
        sample[component * len..][..len].copy_from_slice(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::region::SampleBox;
    use crate::dataset::sample::Number;

    fn fields(of: &[(&str, &str)]) -> Vec<(String, SampleType)> {
        of.iter().map(|(name, sample)| ((*name).to_owned(), sample.parse().unwrap())).collect()
    }

    #[test]
    fn which_vectors_become_fields() {
        let originals = fields(&[("p", "float64"), ("v", "float64[3]"), ("w", "float64[8]"), ("s", "float64[5]")]);
        let names = |which| {
            let split = FieldSplit::new(&originals, which);
            split.fields().iter().map(|(name, sample)| format!("{name} {sample}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names(SplitVectors::Never), "p float64, v float64[3], w float64[8], s float64[5]");
        let wide =
            "p float64, v float64[3], w float64[8], s_0 float64, s_1 float64, s_2 float64, s_3 float64, s_4 float64";
        assert_eq!(names(SplitVectors::Wide), wide);
        assert!(names(SplitVectors::All).starts_with("p float64, v_0 float64, v_1 float64, v_2 float64, w_0 float64"));
    }

    #[test]
    fn components_go_apart_and_together() {
        for number in [Number::Uint8, Number::Int16, Number::Float32, Number::Int64] {
            for (count, samples) in [(2, 1), (3, 700), (11, 257)] {
                let sample = SampleType { number, count };
                let array: Vec<u8> = (0..samples * sample.len_bytes()).map(|at| (at * 7 % 251) as u8).collect();
                let all = components(&array, sample).unwrap();
                let mut back = vec![0; array.len()];
                for (component, numbers) in all.iter().enumerate() {
                    let len = number.len_bytes();
                    let last = &array[array.len() - sample.len_bytes() + component * len..][..len];
                    assert_eq!((numbers.len(), &numbers[numbers.len() - len..]), (samples * len, last));
                    put_component(&mut back, sample, component, numbers);
                }
                assert_eq!(back, array);
            }
        }
    }

    #[test]
    fn memory_and_lengths_are_looked_at() {
        let split = FieldSplit::new(&fields(&[("v", "uint8[2]")]), SplitVectors::All);
        let array = [0, 1, 2, 3, 4, 5];
        let patch =
            |count| vec![BoxData { region: SampleBox::new(&[0], &[count]), arrays: vec![Cow::Borrowed(&array[..])] }];
        let budget = MemoryBudget::new(6);
        let (patches, permit) = split.apply(patch(3), &budget).unwrap();
        assert_eq!(patches[0].arrays, [&[0, 2, 4][..], &[1, 3, 5]]);
        assert_eq!(permit.map(|permit| permit.len_bytes()), Some(6));
        assert!(matches!(split.apply(patch(2), &budget), Err(IdxError::Buffer { got_bytes: 6, want_bytes: 4, .. })));
        assert!(matches!(split.apply(patch(3), &MemoryBudget::new(5)), Err(IdxError::Core(_))));
    }

    #[test]
    fn the_components_of_a_vector_are_found() {
        let header = |of: &[(&str, &str)]| {
            let fields =
                fields(of).iter().map(|(name, sample)| crate::dataset::header::Field::new(name, *sample)).collect();
            Header::new("d", &[4], fields).unwrap()
        };
        let vector = "float32[2]".parse().unwrap();
        let split = header(&[("p", "uint8"), ("v_1", "float32"), ("v_0", "float32")]);
        assert_eq!(components_of(&split, "v", vector), Some(vec![2, 1]));
        assert_eq!(components_of(&split, "p", vector), None);
        assert_eq!(components_of(&header(&[("v_0", "float32"), ("v_1", "int32")]), "v", vector), None);
        assert_eq!(components_of(&header(&[("v", "int8"), ("v_0", "float32"), ("v_1", "float32")]), "v", vector), None);
    }
}
