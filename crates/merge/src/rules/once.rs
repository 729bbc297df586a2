//! What all inputs must have alike: where it differs, the first element that does, and whether it does by more than the
//! user allows.
//!
//! The scan has compared digests; values are only read here, of the datasets whose digests differ. Invariant: a difference
//! is taken back only where every element of both datasets was compared.

use super::number::NumberType;
use crate::error::Result;
use crate::join::{Difference, DifferenceKind, describe_value};
use crate::options::MergeOptions;
use crate::order::find;
use crate::plan::PlannedInput;
use crate::readers::InputReader;
use crate::schema::{ABSENT, Column, Role, Schema, display_path};
use crate::values::ValueSource;
use raddle_hdf5::logical::{CanonicalElements, Resolver};
use raddle_hdf5::model::{Dataspace, FileTree, TypeClass};
use raddle_hdf5::source::InputFile;

/// Names the first element that differs in each difference between datasets that are carried once, and takes back those
/// within the tolerance.
pub(crate) fn explain(
    schema: &Schema,
    differences: &mut Vec<Difference>,
    inputs: &[PlannedInput],
    options: &MergeOptions,
) -> Result<()> {
    if differences.iter().all(|difference| difference.kind != DifferenceKind::Scale) {
        return Ok(());
    }
    let reader = InputReader::new(options);
    let mut explained = Vec::with_capacity(differences.len());
    for mut difference in std::mem::take(differences) {
        let column = (difference.kind == DifferenceKind::Scale).then(|| column_at(schema, &difference.path)).flatten();
        let Some((path, column)) = column else {
            explained.push(difference);
            continue;
        };
        let Some(first) = (0..).zip(column.facts.iter()).find(|(_, fact)| fact.template != ABSENT) else {
            explained.push(difference);
            continue;
        };
        let known = values(column, first.0, path, inputs, &reader)?;
        let mut differing = Vec::new();
        for &input in &difference.inputs {
            let found = match &known {
                Some(known) => {
                    let found = values(column, input, path, inputs, &reader)?;
                    let class = &column.model().datatype.class;
                    found.map_or_else(Comparison::unknown, |found| {
                        compare(class, known, &found, options.conventions.tolerance)
                    })
                }
                None => Comparison::unknown(),
            };
            match found {
                Comparison::Within => {}
                Comparison::Differs(words) => differing.push((input, words)),
            }
        }
        if let Some((_, (expected, found))) = differing.first() {
            (difference.expected, difference.found) = (expected.clone(), found.clone());
            difference.inputs = differing.iter().map(|(input, _)| *input).collect();
            explained.push(difference);
        }
    }
    *differences = explained;
    Ok(())
}

fn column_at<'s>(schema: &'s Schema, path: &str) -> Option<(&'s [u8], &'s Column)> {
    let entry = schema.entries.iter().find(|entry| display_path(&entry.path) == path)?;
    match entry.role {
        Role::Column(column) => Some((&entry.path, &schema.columns[column as usize])),
        _ => None,
    }
}

/// Canonical bytes of all values of an input's dataset; `None` where they cannot be read on their own.
fn values(
    column: &Column,
    input: u32,
    path: &[u8],
    inputs: &[PlannedInput],
    reader: &InputReader,
) -> Result<Option<Vec<u8>>> {
    if column.facts[input as usize].template == ABSENT {
        return Ok(None);
    }
    let tree: FileTree = reader.read_whole_tree(&inputs[input as usize].path)?;
    let file = InputFile::open(&inputs[input as usize].path)?;
    let Some(dataset) = find(&tree, path) else { return Ok(None) };
    let mut resolver = Resolver::new(&file, &tree);
    let mut source = ValueSource::new(&file, inputs[input as usize].encoding, reader);
    Ok(Some(source.all_values(dataset, path, &mut resolver)?))
}

/// How two datasets compare.
enum Comparison {
    Within,
    Differs((String, String)),
}

impl Comparison {
    fn unknown() -> Self {
        Self::Differs(("the first input's values".to_owned(), "other values".to_owned()))
    }
}

fn compare(class: &TypeClass, known: &[u8], found: &[u8], tolerance: f64) -> Comparison {
    let (left, right) = (CanonicalElements::new(class, known), CanonicalElements::new(class, found));
    let (left, right): (Vec<_>, Vec<_>) = (left.collect(), right.collect());
    if left.len() != right.len() {
        let words = |elements: &[Option<&[u8]>]| format!("{} elements", elements.len());
        return Comparison::Differs((words(&left), words(&right)));
    }
    let number = NumberType::of(class);
    let value = |element: Option<&[u8]>| {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        number?.decode_floats(element?, &mut integers, &mut floats);
        floats.first().copied()
    };
    let differs = |at: &usize| {
        let (a, b) = (left[*at], right[*at]);
        a != b
            && match (value(a), value(b)) {
                (Some(a), Some(b)) if a.is_nan() || b.is_nan() => a.is_nan() != b.is_nan(),
                (Some(a), Some(b)) => a != b && (a - b).abs() > tolerance,
                _ => true,
            }
    };
    let Some(at) = (0..left.len()).find(differs) else { return Comparison::Within };
    let words = |element: Option<&[u8]>| {
        let shown =
            element.map_or_else(|| "missing".to_owned(), |element| describe_value(class, &Dataspace::Scalar, element));
        format!("element {at} is {shown}")
    };
    let option = if number.is_some() { "; --tolerance allows a difference" } else { "" };
    Comparison::Differs((words(left[at]), words(right[at]) + option))
}
