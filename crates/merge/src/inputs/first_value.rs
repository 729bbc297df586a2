//! First values of datasets, by which inputs are sorted.
//!
//! Values are ordered as readers see them: strings without padding, the characters of a netCDF text as one string, times
//! as instants if their units differ. Invariant: the order is total, -0 equals 0, and NaN comes after all numbers.

use crate::inputs::reader::InputReader;
use crate::number;
use crate::rules::calendar::Calendar;
use crate::rules::time_units::TimeUnits;
use crate::scan::scale_lists::DIMENSION_LIST;
use crate::schema::join::{defines_scale, describe_value};
use raddle_codec::Pipeline;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::logical::{Resolver, string, strings_of};
use raddle_hdf5::model::{Dataset, Dataspace, FileTree, Layout, Object, TypeClass};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::number::compare_exactly;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Maximum number of characters of a text that are compared.
const MAX_TEXT_LEN: u64 = 1 << 16;

/// A value, comparable with values of the same dataset in other inputs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Key {
    Integer(i128),
    Float(f64),
    Text(Vec<u8>),
}

impl Key {
    pub fn compare(&self, other: &Self) -> Ordering {
        // Only a float that is not a number has no order.
        let before_nan = |order: Option<Ordering>| order.unwrap_or(Ordering::Less);
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Float(left), Self::Float(right)) => {
                left.partial_cmp(right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
            }
            (Self::Integer(left), Self::Float(right)) => before_nan(compare_exactly(*left, *right)),
            (Self::Float(left), Self::Integer(right)) => before_nan(compare_exactly(*right, *left)).reverse(),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Text(_), _) => Ordering::Greater,
            (_, Self::Text(_)) => Ordering::Less,
        }
    }
}

/// First value of a dataset, and the attributes that define its meaning.
#[derive(Debug)]
pub(super) struct FirstValue {
    /// The value as stored.
    pub key: Key,
    /// Attributes that define what stored numbers mean, such as `units`, by name.
    pub meaning: BTreeMap<Vec<u8>, String>,
    /// The value in nanoseconds from the origin of a calendar, if it is a time that is not packed.
    pub instant: Option<(Calendar, Key)>,
}

/// Result of the search for a first value.
#[derive(Debug)]
pub(super) enum Found {
    Value(FirstValue),
    /// The dataset has no elements.
    Empty,
    /// Values of this type have no order.
    Unordered,
}

/// Reads the first value of `dataset`, an object of the file whose metadata is `tree`; `name` is its path.
pub(super) fn first_value(
    file: &InputFile,
    tree: &FileTree,
    (object, dataset): (&Object, &Dataset),
    name: &[u8],
    reader: &InputReader,
) -> raddle_hdf5::Result<Found> {
    let Some(stored) = first_elements(file, tree, dataset, value_len(object, dataset), name, reader)? else {
        return Ok(Found::Empty);
    };
    let Some(key) = key(&dataset.datatype.class, &stored) else { return Ok(Found::Unordered) };
    let meaning = meaning(file, tree, object)?;
    let instant = instant(&key, &meaning);
    Ok(Found::Value(FirstValue { key, meaning, instant }))
}

/// Returns the key of an element, or of the characters of a text.
fn key(class: &TypeClass, stored: &[u8]) -> Option<Key> {
    match class {
        TypeClass::Integer { .. } => number::integer(class, stored).map(Key::Integer),
        TypeClass::Float { .. } => number::float(class, stored).map(|number| Key::Float(number.value)),
        TypeClass::FixedString { .. } => string(class, stored).map(|text| Key::Text(text.to_vec())),
        _ => None,
    }
}

/// Returns the attributes of a dataset that define what its stored numbers mean, with their values as text.
fn meaning(file: &InputFile, tree: &FileTree, object: &Object) -> raddle_hdf5::Result<BTreeMap<Vec<u8>, String>> {
    let mut resolver = Resolver::new(file, tree);
    let mut found = BTreeMap::new();
    for attribute in object.all_attributes().iter().filter(|attribute| defines_scale(&attribute.name)) {
        let class = &attribute.datatype.class;
        let (value, _) = resolver.canonical_inline_or_null(class, &attribute.data)?;
        let text = strings_of(class, &value).and_then(|strings| strings.into_iter().next());
        let text = text.unwrap_or_else(|| describe_value(class, &attribute.dataspace, &value));
        found.insert(attribute.name.clone(), text);
    }
    Ok(found)
}

/// Returns the instant of a time, in nanoseconds from the origin of its calendar; `None` for values of other meanings.
fn instant(key: &Key, meaning: &BTreeMap<Vec<u8>, String>) -> Option<(Calendar, Key)> {
    let [units, calendar] = ["units", "calendar"].map(|name| meaning.get(name.as_bytes()).map(String::as_str));
    if meaning.len() > usize::from(units.is_some()) + usize::from(calendar.is_some()) {
        return None;
    }
    let calendar = Calendar::named(calendar)?;
    let TimeUnits { unit_ns, reference_ns } = TimeUnits::parse(units?, calendar)?;
    /// Counts below this one are converted exactly: with any unit, they need less than 128 bits.
    const MAX_COUNT: f64 = 1e18;
    let key = match *key {
        Key::Integer(count) => Key::Integer(count.checked_mul(unit_ns)?.checked_add(reference_ns)?),
        Key::Float(count) if count.abs() < MAX_COUNT => {
            let part_ns = (count.fract() * unit_ns as f64).round() as i128;
            Key::Integer(count.trunc() as i128 * unit_ns + part_ns + reference_ns)
        }
        Key::Float(count) => Key::Float(count * unit_ns as f64 + reference_ns as f64),
        Key::Text(_) => return None,
    };
    Some((calendar, key))
}

/// Returns the number of elements that make up the first value: 1, or the length of a text for characters that are
/// texts along the last axis. Characters along a single axis are one text in netCDF if the axis cannot grow.
fn value_len(object: &Object, dataset: &Dataset) -> u64 {
    let is_character = matches!(&*dataset.datatype.class, TypeClass::FixedString { len_bytes: 1, .. });
    match &dataset.dataspace {
        Dataspace::Simple { dims, max_dims } if is_character => {
            let is_text = dims.len() > 1 || max_dims == dims && object.attribute(DIMENSION_LIST.as_bytes()).is_some();
            dims.last().map_or(1, |&len| if is_text { len.min(MAX_TEXT_LEN) } else { 1 })
        }
        _ => 1,
    }
}

/// Returns the first `len` elements of a dataset along its last axis, as stored; `None` if the dataset has no elements.
fn first_elements(
    file: &InputFile,
    tree: &FileTree,
    dataset: &Dataset,
    len: u64,
    name: &[u8],
    reader: &InputReader,
) -> raddle_hdf5::Result<Option<Vec<u8>>> {
    let dims = dataset.dataspace.dims();
    if dataset.dataspace.element_count().unwrap_or(0) == 0 {
        return Ok(None);
    }
    let element_len_bytes = dataset.datatype.class.len_bytes() as usize;
    let mut count = vec![1; dims.len()];
    if let Some(last) = count.last_mut() {
        *last = len;
    }
    let len_bytes = len as usize * element_len_bytes;
    if matches!(dataset.layout, Layout::Virtual | Layout::External { .. }) {
        let rows = (!dims.is_empty()).then_some(0..if dims.len() == 1 { len } else { 1 });
        let mut values = reader.read_values(file.path(), name, rows)?;
        values.truncate(len_bytes);
        return Ok(Some(values));
    }
    let pipeline = Pipeline::new(&dataset.filters, element_len_bytes).map_err(|error| Hdf5Error::Unsupported {
        path: file.path().to_path_buf(),
        address: 0,
        what: error.to_string(),
    })?;
    let source = DatasetSource { file, encoding: Encoding::of(tree), dataset, pipeline: &pipeline };
    let start = vec![0; dims.len()];
    let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &start };
    let mut elements = vec![0; len_bytes];
    DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, &mut elements)?;
    Ok(Some(elements))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_total_order() {
        let big = 1_i128 << 60;
        let equal = [
            (Key::Float(-0.0), Key::Float(0.0)),
            (Key::Integer(0), Key::Float(-0.0)),
            (Key::Float(-f64::NAN), Key::Float(f64::NAN)),
        ];
        assert!(equal.iter().all(|(left, right)| left.compare(right).is_eq() && right.compare(left).is_eq()));
        let ascending = [
            Key::Float(f64::NEG_INFINITY),
            Key::Integer(-big),
            Key::Float(-0.5),
            Key::Integer(0),
            Key::Float(big as f64),
            Key::Integer(big + 1),
            Key::Float(f64::INFINITY),
            Key::Float(-f64::NAN),
            Key::Text(b"a".to_vec()),
            Key::Text(b"ab".to_vec()),
        ];
        for (place, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(left.compare(right), place.cmp(&other), "{left:?} {right:?}");
            }
        }
    }
}
