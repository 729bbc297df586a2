//! Sorting of files by the first values of some of their datasets, usually run and subrun.
//!
//! Only metadata and one element of each dataset are read. Invariant: files with equal values keep their order.

use crate::error::{BadInput, MergeError, MissingKey, Result};
use crate::inputs::reader::InputReader;
use crate::number;
use crate::options::{MergeOptions, Watch};
use crate::schema::display_path;
use raddle_codec::Pipeline;
use raddle_core::parallel;
use raddle_core::report::progress::{Event, RunningStage, Stage};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{Dataset, FileTree, Layout, LinkTarget, ObjectKind, TypeClass};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
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

/// First value of a dataset, comparable with first values of the same dataset in other inputs.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Integer(i128),
    Float(f64),
    Text(Vec<u8>),
}

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

type FirstValues = std::result::Result<Vec<Key>, NoKey>;

impl Key {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Float(left), Self::Float(right)) => left.total_cmp(right),
            (Self::Integer(left), Self::Float(right)) => (*left as f64).total_cmp(right),
            (Self::Float(left), Self::Integer(right)) => left.total_cmp(&(*right as f64)),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Text(_), _) => Ordering::Greater,
            (_, Self::Text(_)) => Ordering::Less,
        }
    }
}

fn compare(left: &[Key], right: &[Key]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs.map(|(left, right)| left.compare(right)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
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
    Ok(values)
}

/// Returns the first value of each dataset of one input.
fn of_file(path: &Path, datasets: &[Vec<u8>], reader: &InputReader) -> FirstValues {
    let file = InputFile::open(path)?;
    let tree = reader.read_whole_tree(path)?;
    datasets.iter().map(|name| key(&file, &tree, name, reader)).collect()
}

fn key(file: &InputFile, tree: &FileTree, name: &[u8], reader: &InputReader) -> std::result::Result<Key, NoKey> {
    let refused = |reason| NoKey::Missing { dataset: display_path(name), reason };
    let dataset = find(tree, name).ok_or_else(|| refused("does not exist"))?;
    if let TypeClass::VariableString { .. } = &*dataset.datatype.class {
        return Err(refused("is a string of variable length; sort by numbers or by strings of fixed length"));
    }
    let first =
        first_element(file, tree, dataset, name, reader).map_err(|error| error.in_object(display_path(name)))?;
    let value = first.ok_or_else(|| NoKey::Empty { dataset: display_path(name) })?;
    match &*dataset.datatype.class {
        class @ TypeClass::Integer { .. } => number::integer(class, &value).map(Key::Integer),
        class @ TypeClass::Float { .. } => number::float(class, &value).map(|number| Key::Float(number.value)),
        TypeClass::FixedString { .. } => Some(Key::Text(value)),
        _ => None,
    }
    .ok_or_else(|| refused("is neither a number nor a string of fixed length"))
}

/// Returns the dataset at an absolute path, following hard links.
pub(crate) fn find<'t>(tree: &'t FileTree, path: &[u8]) -> Option<&'t Dataset> {
    let mut object = tree.objects.first()?;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        let ObjectKind::Group(group) = &object.kind else { return None };
        let LinkTarget::Hard(index) = group.links.iter().find(|link| link.name == name)?.target else { return None };
        object = &tree.objects[index as usize];
    }
    match &object.kind {
        ObjectKind::Dataset(dataset) => Some(dataset),
        _ => None,
    }
}

/// Returns the first element of a dataset, as stored; `None` if it has no elements.
fn first_element(
    file: &InputFile,
    tree: &FileTree,
    dataset: &Dataset,
    name: &[u8],
    reader: &InputReader,
) -> raddle_hdf5::Result<Option<Vec<u8>>> {
    let dims = dataset.dataspace.dims();
    if dataset.dataspace.element_count().unwrap_or(0) == 0 {
        return Ok(None);
    }
    let len_bytes = dataset.datatype.class.len_bytes() as usize;
    if matches!(dataset.layout, Layout::Virtual | Layout::External { .. }) {
        let rows = (!dims.is_empty()).then_some(0..1);
        let mut values = reader.read_values(file.path(), name, rows)?;
        values.truncate(len_bytes);
        return Ok(Some(values));
    }
    let pipeline = Pipeline::new(&dataset.filters, len_bytes).map_err(|error| Hdf5Error::Unsupported {
        path: file.path().to_path_buf(),
        address: 0,
        what: error.to_string(),
    })?;
    let source = DatasetSource { file, encoding: Encoding::of(tree), dataset, pipeline: &pipeline };
    let (start, count) = (vec![0; dims.len()], vec![1; dims.len()]);
    let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &start };
    let mut element = vec![0; len_bytes];
    DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, &mut element)?;
    Ok(Some(element))
}
