//! Differences between datasets that must be equal in all inputs: finds the first element that differs, and whether it
//! differs by more than the user allows.
//!
//! The scan has compared digests; values are only read here, for datasets whose digests differ. Invariant: a difference
//! is only withdrawn after every element of both datasets was compared.

use crate::conventions::Choice;
use crate::conventions::cf::is_class_of_scales;
use crate::error::Result;
use crate::inputs::order::find;
use crate::inputs::reader::InputReader;
use crate::inputs::value_source::ValueSource;
use crate::options::MergeOptions;
use crate::plan::PlannedInput;
use crate::schema::join::{Difference, DifferenceKind, describe_value};
use crate::schema::{ABSENT, Column, Role, Schema, display_path, last_name};
use raddle_hdf5::logical::{CanonicalElements, Resolver};
use raddle_hdf5::model::{Dataspace, FileTree, TypeClass};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::number::NumberType;
use raddle_hdf5::source::InputFile;

/// Description of values that differ, until the difference is known in detail.
pub(crate) const OTHER_VALUES: &str = "other values";

/// End of the description of a dataset with a different number of elements.
const ELEMENTS: &str = " elements";

/// Names the first element that differs in each difference between datasets that are kept once, and withdraws
/// differences within the tolerance.
pub(crate) fn explain(
    schema: &Schema,
    convention: Option<Choice>,
    differences: &mut Vec<Difference>,
    inputs: &[PlannedInput],
    options: &MergeOptions,
) -> Result<()> {
    let is_of_values = |difference: &Difference| match difference.kind {
        DifferenceKind::Scale | DifferenceKind::Coordinate => true,
        DifferenceKind::Meaning => difference.found == OTHER_VALUES,
        _ => false,
    };
    if !differences.iter().any(is_of_values) {
        return Ok(());
    }
    let is_any_concatenated = schema.columns.iter().any(|column| !column.is_once && column.rows() > 0);
    let reader = InputReader::new(options);
    let mut explained = Vec::with_capacity(differences.len());
    for mut difference in std::mem::take(differences) {
        let column = is_of_values(&difference).then(|| column_at(schema, &difference.path)).flatten();
        let Some((path, column)) = column else {
            explained.push(difference);
            continue;
        };
        let Some(first) = (0..).zip(column.facts.iter()).find(|(_, fact)| fact.template != ABSENT) else {
            explained.push(difference);
            continue;
        };
        let Some(known) = OneInput::find(column, first.0, path, inputs, &reader)? else {
            explained.push(difference);
            continue;
        };
        // No option can reconcile labels that differ.
        let is_strict = difference.kind == DifferenceKind::Meaning;
        let tolerance = if is_strict { None } else { Some(options.conventions.tolerance) };
        let mut differing = Vec::new();
        for &input in &difference.inputs {
            let found = match OneInput::find(column, input, path, inputs, &reader)? {
                Some(found) => compare(&known, &found, path, &reader, tolerance)?,
                None => Some(("the first input's values".to_owned(), OTHER_VALUES.to_owned())),
            };
            differing.extend(found.map(|words| (input, words)));
        }
        if let Some((_, (expected, found))) = differing.first() {
            (difference.expected, difference.found) = (expected.clone(), found.clone());
            if convention == Some(Choice::Cf) && options.conventions.dim.is_none() {
                if expected.ends_with(ELEMENTS) {
                    difference.found += "; --dim NAME concatenates along that dimension";
                } else if first.1.rows == 1 && is_coordinate(schema, column) {
                    let name = String::from_utf8_lossy(last_name(path));
                    difference.found += &format!("; --dim {name} concatenates along that dimension");
                } else if !is_any_concatenated {
                    difference.found += "; the unlimited dimension is empty, --dim NAME selects another one";
                }
            }
            difference.inputs = differing.iter().map(|(input, _)| *input).collect();
            explained.push(difference);
        }
    }
    *differences = explained;
    Ok(())
}

/// Returns whether a dataset holds the coordinates of a dimension.
fn is_coordinate(schema: &Schema, column: &Column) -> bool {
    let is_of_one_axis = column.model().dataspace.dims().len() == 1;
    is_of_one_axis && is_class_of_scales(&schema.entries[column.entry as usize].attributes)
}

fn column_at<'s>(schema: &'s Schema, path: &str) -> Option<(&'s [u8], &'s Column)> {
    let entry = schema.entries.iter().find(|entry| display_path(&entry.path) == path)?;
    match entry.role {
        Role::Column(column) => Some((&entry.path, &schema.columns[column as usize])),
        _ => None,
    }
}

/// Dataset of one input.
struct OneInput {
    file: InputFile,
    tree: FileTree,
    encoding: Encoding,
}

impl OneInput {
    /// Finds the dataset at `path` of an input; returns `None` if the input lacks it.
    fn find(
        column: &Column,
        input: u32,
        path: &[u8],
        inputs: &[PlannedInput],
        reader: &InputReader,
    ) -> Result<Option<Self>> {
        if column.facts[input as usize].template == ABSENT {
            return Ok(None);
        }
        let planned = &inputs[input as usize];
        let tree: FileTree = reader.read_whole_tree(&planned.path)?;
        let file = InputFile::open(&planned.path)?;
        Ok(find(&tree, path).is_some().then(|| Self { file, tree, encoding: planned.encoding }))
    }
}

/// Returns descriptions of the first element that differs by more than `tolerance` in both datasets; without a
/// tolerance, of the first element that differs.
fn compare(
    known: &OneInput,
    found: &OneInput,
    path: &[u8],
    reader: &InputReader,
    tolerance: Option<f64>,
) -> Result<Option<(String, String)>> {
    let (Some(left), Some(right)) = (find(&known.tree, path), find(&found.tree, path)) else { return Ok(None) };
    let (left_dims, right_dims) = (left.dataspace.dims(), right.dataspace.dims());
    if left_dims != right_dims {
        let words = |dims: &[u64]| format!("{}{ELEMENTS}", dims.iter().product::<u64>());
        return Ok(Some((words(left_dims), words(right_dims))));
    }
    let classes = (left.datatype.class.as_ref(), right.datatype.class.as_ref());
    if classes.0 != classes.1 && [classes.0, classes.1].iter().any(|class| NumberType::of(class).is_none()) {
        // The difference between the types is reported elsewhere.
        return Ok(None);
    }
    let mut known_source = ValueSource::new(&known.file, known.encoding, reader);
    let mut found_source = ValueSource::new(&found.file, found.encoding, reader);
    let (mut known_resolver, mut found_resolver) =
        (Resolver::new(&known.file, &known.tree), Resolver::new(&found.file, &found.tree));
    let row_elements: u64 = left_dims.iter().skip(1).product();
    for block in known_source.blocks(left)? {
        let first = block.start * row_elements;
        let known = known_source.read_rows(left, path, block.clone(), &mut known_resolver)?;
        let found = found_source.read_rows(right, path, block, &mut found_resolver)?;
        if let Some(words) = first_difference(classes, &known, &found, tolerance, first) {
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Returns descriptions of the first element that differs by more than `tolerance`; `first` is the number of the first
/// element.
fn first_difference(
    (known_class, found_class): (&TypeClass, &TypeClass),
    known: &[u8],
    found: &[u8],
    tolerance: Option<f64>,
    first: u64,
) -> Option<(String, String)> {
    let (left, right) = (CanonicalElements::new(known_class, known), CanonicalElements::new(found_class, found));
    let number = NumberType::of(known_class);
    let value = |class: &TypeClass, element: Option<&[u8]>| {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        NumberType::of(class)?.decode_floats(element?, &mut integers, &mut floats);
        floats.first().copied()
    };
    let differs = |a: Option<&[u8]>, b: Option<&[u8]>| {
        (a != b || known_class != found_class)
            && match (value(known_class, a), value(found_class, b)) {
                (Some(a), Some(b)) if a.is_nan() || b.is_nan() => a.is_nan() != b.is_nan(),
                (Some(a), Some(b)) => a != b && (a - b).abs() > tolerance.unwrap_or(0.0),
                _ => true,
            }
    };
    let (at, (left, right)) = (first..).zip(left.zip(right)).find(|(_, (left, right))| differs(*left, *right))?;
    let words = |class: &TypeClass, element: Option<&[u8]>| {
        let text =
            element.map_or_else(|| "missing".to_owned(), |element| describe_value(class, &Dataspace::Scalar, element));
        format!("element {at} is {text}")
    };
    let option = if number.is_some() && tolerance.is_some() { "; --tolerance allows a difference" } else { "" };
    Some((words(known_class, left), words(found_class, right) + option))
}
