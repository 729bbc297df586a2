//! Sorting of files by the first values of some of their datasets, usually run and subrun.
//!
//! Only metadata and the first value of each dataset are read. Invariant: files with equal values keep their order.

use crate::error::{BadInput, MergeError, MissingKey, Result};
use crate::inputs::first_value::{FirstValue, Found, first_value};
use crate::inputs::reader::InputReader;
use crate::options::{MergeOptions, Watch};
use crate::schema::display_path;
use raddle_core::parallel;
use raddle_core::report::progress::{Event, RunningStage, Stage};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{Dataset, FileTree, Object, ObjectKind, TypeClass};
use raddle_hdf5::paths::{ResolvedPath, find_in};
use raddle_hdf5::source::InputFile;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Sorted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedInputs {
    /// All files in order.
    pub paths: Vec<PathBuf>,
    /// Files without rows, which come last.
    pub without_rows: Vec<PathBuf>,
}

/// Reason why values of a dataset cannot be compared with those of the first input.
const OTHER_MEANING: &str = "has other units, another scale or another offset than in the first input";

/// Reason why an input has no key.
#[derive(Debug)]
enum NoKey {
    /// The input cannot be read.
    Unreadable(Hdf5Error),
    /// A dataset has no elements.
    Empty { dataset: String },
    /// A dataset does not exist, or its values cannot be ordered.
    Missing { dataset: String, reason: &'static str },
}

impl From<Hdf5Error> for NoKey {
    fn from(error: Hdf5Error) -> Self {
        Self::Unreadable(error)
    }
}

type FirstValues = std::result::Result<Vec<FirstValue>, NoKey>;

fn compare(left: &[FirstValue], right: &[FirstValue]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs.map(|(left, right)| left.key.compare(&right.key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Sorts the inputs of a merge (`--sort-by`) by the first values of `datasets`, the first dataset being the most
/// significant. Every input must have a value.
///
/// # Errors
/// [`MergeError::BadInputs`] with all inputs that cannot be read, unless these are to be skipped;
/// [`MergeError::SortKeys`] with all inputs without such a value.
pub fn sort_by_first_values(
    inputs: &[PathBuf],
    datasets: &[Vec<u8>],
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Vec<PathBuf>> {
    let (mut keyed, mut bad, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (path, values) in inputs.iter().zip(first_values(inputs, datasets, options, watch)?) {
        match values {
            Ok(keys) => keyed.push((keys, path.clone())),
            Err(NoKey::Unreadable(error)) => bad.push(BadInput { path: path.clone(), error }),
            Err(NoKey::Empty { dataset }) => {
                missing.push(MissingKey { path: path.clone(), dataset, reason: "is empty" });
            }
            Err(NoKey::Missing { dataset, reason }) => {
                missing.push(MissingKey { path: path.clone(), dataset, reason });
            }
        }
    }
    if !missing.is_empty() {
        return Err(MergeError::SortKeys { missing });
    }
    if !bad.is_empty() && !options.skip_bad {
        return Err(MergeError::BadInputs { bad });
    }
    keyed.sort_by(|(left, _), (right, _)| compare(left, right));
    // Unreadable inputs are skipped and reported by the scan.
    Ok(keyed.into_iter().map(|(_, path)| path).chain(bad.into_iter().map(|bad| bad.path)).collect())
}

/// Sorts a list of files (`raddle keys sort`) by the first values of `datasets`, the most significant first. Files
/// without rows come last.
///
/// # Errors
/// [`MergeError::BadInputs`] with all files that cannot be read; [`MergeError::SortKeys`] with all files that lack one
/// of the datasets.
pub fn sort(
    inputs: &[PathBuf],
    datasets: &[Vec<u8>],
    descending: bool,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<SortedInputs> {
    let (mut keyed, mut without_rows, mut bad, mut missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (path, values) in inputs.iter().zip(first_values(inputs, datasets, options, watch)?) {
        match values {
            Ok(keys) => keyed.push((keys, path.clone())),
            Err(NoKey::Unreadable(error)) => bad.push(BadInput { path: path.clone(), error }),
            Err(NoKey::Empty { .. }) => without_rows.push(path.clone()),
            Err(NoKey::Missing { dataset, reason }) => {
                missing.push(MissingKey { path: path.clone(), dataset, reason });
            }
        }
    }
    if !bad.is_empty() {
        return Err(MergeError::BadInputs { bad });
    }
    if !missing.is_empty() {
        return Err(MergeError::SortKeys { missing });
    }
    keyed.sort_by(|(left, _), (right, _)| if descending { compare(right, left) } else { compare(left, right) });
    let paths = keyed.into_iter().map(|(_, path)| path).chain(without_rows.iter().cloned()).collect();
    Ok(SortedInputs { paths, without_rows })
}

/// Returns the first values of each of `inputs`, in their order.
fn first_values(
    inputs: &[PathBuf],
    datasets: &[Vec<u8>],
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Vec<FirstValues>> {
    let scanning = RunningStage::start(watch.observer, Stage::Scan, None);
    let values = parallel::map(
        inputs,
        options.jobs,
        watch.cancel,
        || InputReader::new(options),
        |reader, input| {
            let values = of_file(input, datasets, reader);
            watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes: 0, items: 1 });
            Ok::<_, MergeError>(values)
        },
    )?;
    scanning.finish();
    Ok(comparable(values, datasets))
}

/// Makes first values comparable: times whose units differ become instants. Values whose meaning differs otherwise from
/// that of the first input are replaced by an error.
fn comparable(mut values: Vec<FirstValues>, datasets: &[Vec<u8>]) -> Vec<FirstValues> {
    for (at, dataset) in datasets.iter().enumerate() {
        let of_inputs = || values.iter().filter_map(|values| Some(&values.as_ref().ok()?[at]));
        let Some(first) = of_inputs().next() else { continue };
        let (meaning, calendar) = (first.meaning.clone(), first.instant.as_ref().map(|(calendar, _)| *calendar));
        let is_alike = |value: &FirstValue| value.meaning == meaning;
        if of_inputs().all(is_alike) {
            continue;
        }
        let is_instant = |value: &FirstValue| value.instant.as_ref().is_some_and(|(found, _)| Some(*found) == calendar);
        for values in &mut values {
            let Ok(found) = values else { continue };
            match &found[at].instant {
                Some((_, instant)) if is_instant(&found[at]) => found[at].key = instant.clone(),
                _ if is_alike(&found[at]) => {}
                _ => *values = Err(NoKey::Missing { dataset: display_path(dataset), reason: OTHER_MEANING }),
            }
        }
    }
    values
}

/// Returns the first value of each dataset of one input.
fn of_file(path: &Path, datasets: &[Vec<u8>], reader: &InputReader) -> FirstValues {
    let file = InputFile::open(path)?;
    let tree = reader.read_whole_tree(path)?;
    datasets.iter().map(|name| key(&file, &tree, name, reader)).collect()
}

fn key(file: &InputFile, tree: &FileTree, name: &[u8], reader: &InputReader) -> std::result::Result<FirstValue, NoKey> {
    let refused = |reason| NoKey::Missing { dataset: display_path(name), reason };
    let found = find_object(tree, name).ok_or_else(|| refused("does not exist"))?;
    if let TypeClass::VariableString { .. } = &*found.1.datatype.class {
        return Err(refused("is a string of variable length; sort by numbers or by strings of fixed length"));
    }
    match first_value(file, tree, found, name, reader).map_err(|error| error.in_object(display_path(name)))? {
        Found::Value(value) => Ok(value),
        Found::Empty => Err(NoKey::Empty { dataset: display_path(name) }),
        Found::Unordered => Err(refused("is neither a number nor a string of fixed length")),
    }
}

/// Returns the dataset at an absolute path, following hard and soft links.
pub(crate) fn find<'t>(tree: &'t FileTree, path: &[u8]) -> Option<&'t Dataset> {
    find_object(tree, path).map(|(_, dataset)| dataset)
}

/// Returns the object at an absolute path, following hard and soft links, if it is a dataset.
fn find_object<'t>(tree: &'t FileTree, path: &[u8]) -> Option<(&'t Object, &'t Dataset)> {
    let Ok(ResolvedPath::Object(index)) = find_in(tree, path) else { return None };
    let object = tree.objects.get(index as usize)?;
    match &object.kind {
        ObjectKind::Dataset(dataset) => Some((object, dataset)),
        _ => None,
    }
}
