//! Ordering files by what they begin with: the first values of some of their datasets, run and subrun usually.
//!
//! Only metadata and one row of each dataset are read. Invariant: files with equal values, and those without rows (which
//! come last), keep their order.

use crate::error::{BadInput, MergeError, Result};
use crate::keys::ids::number;
use crate::options::{MergeOptions, Watch};
use crate::parallel;
use crate::readers::InputReader;
use raddle_codec::Pipeline;
use raddle_core::progress::{Event, Stage};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{Dataset, FileTree, Layout, LinkTarget, ObjectKind};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a file begins with: one number per dataset; nothing where one of them has no rows.
pub type FirstValues = Option<Vec<i128>>;

/// Files in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedInputs {
    /// All of them.
    pub paths: Vec<PathBuf>,
    /// Those that have no rows and so came last.
    pub without_rows: Vec<PathBuf>,
}

/// Orders `inputs` by the first values of the datasets at `columns`, the most significant first.
///
/// # Errors
/// [`MergeError::BadInputs`] with all files that cannot be read or lack one of the datasets.
pub fn sort(
    inputs: &[PathBuf],
    columns: &[String],
    descending: bool,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<SortedInputs> {
    let values = first_values(inputs, columns, options, watch)?;
    let mut order: Vec<(&FirstValues, &PathBuf)> = values.iter().zip(inputs).collect();
    order.sort_by(|(left, _), (right, _)| match (left, right) {
        (Some(left), Some(right)) if descending => right.cmp(left),
        (Some(left), Some(right)) => left.cmp(right),
        (left, right) => left.is_none().cmp(&right.is_none()),
    });
    let without_rows = order.iter().filter(|(values, _)| values.is_none()).map(|(_, path)| (*path).clone()).collect();
    Ok(SortedInputs { paths: order.into_iter().map(|(_, path)| path.clone()).collect(), without_rows })
}

/// The first values of each of `inputs`.
///
/// # Errors
/// As [`sort`].
pub fn first_values(
    inputs: &[PathBuf],
    columns: &[String],
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Vec<FirstValues>> {
    let started = std::time::Instant::now();
    watch.observer.event(&Event::StageStarted { stage: Stage::Scan, total_bytes: None });
    let slots: Vec<Mutex<Option<raddle_hdf5::Result<FirstValues>>>> = inputs.iter().map(|_| Mutex::new(None)).collect();
    let places: Vec<usize> = (0..inputs.len()).collect();
    parallel::for_each(
        &places,
        options.jobs,
        watch.cancel,
        || InputReader::new(options),
        |reader, &place| {
            let values = of_file(&inputs[place], columns, reader);
            watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes: 0, items: 1 });
            *slots[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(values);
            Ok(())
        },
    )?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Scan, elapsed_s: started.elapsed().as_secs_f64() });
    let (mut values, mut bad) = (Vec::with_capacity(inputs.len()), Vec::new());
    for (slot, path) in slots.into_iter().zip(inputs) {
        match slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(of_file)) => values.push(of_file),
            Some(Err(error)) => bad.push(BadInput { path: path.clone(), error }),
            None => return Err(MergeError::Cancelled),
        }
    }
    if bad.is_empty() { Ok(values) } else { Err(MergeError::BadInputs { bad }) }
}

fn of_file(path: &Path, columns: &[String], reader: &InputReader) -> raddle_hdf5::Result<FirstValues> {
    let tree = reader.read_tree(path)?;
    let file = InputFile::open(path)?;
    let (mut values, mut has_rows) = (Vec::with_capacity(columns.len()), true);
    for column in columns {
        let refuse = |address, what: &str| {
            let what = format!("{column} {what}");
            Hdf5Error::Unsupported { path: path.to_path_buf(), address, what }
        };
        let Some(dataset) = find(&tree, column.as_bytes()) else {
            return Err(refuse(0, "is not there, so the file has no place in the order"));
        };
        match first_element(&file, &tree, dataset, column, reader)? {
            None => has_rows = false,
            Some(element) => {
                let value = number(&dataset.datatype.class, &element);
                values.push(value.ok_or_else(|| refuse(0, "does not hold plain integers"))?);
            }
        }
    }
    Ok(has_rows.then_some(values))
}

/// The dataset at an absolute path, hard links followed.
fn find<'t>(tree: &'t FileTree, path: &[u8]) -> Option<&'t Dataset> {
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

/// The first element of a dataset, as stored; `None` where there is none.
fn first_element(
    file: &InputFile,
    tree: &FileTree,
    dataset: &Dataset,
    path: &str,
    reader: &InputReader,
) -> raddle_hdf5::Result<Option<Vec<u8>>> {
    let dims = dataset.dataspace.dims();
    if dataset.dataspace.element_count().unwrap_or(0) == 0 {
        return Ok(None);
    }
    let len_bytes = dataset.datatype.class.len_bytes() as usize;
    if matches!(dataset.layout, Layout::Virtual | Layout::External { .. }) {
        let rows = (!dims.is_empty()).then_some(0..1);
        let mut values = reader.read_values(file.path(), path.as_bytes(), rows)?;
        values.truncate(len_bytes);
        return Ok(Some(values));
    }
    let pipeline = Pipeline::new(&dataset.filters, len_bytes).map_err(|error| Hdf5Error::Unsupported {
        path: file.path().to_path_buf(),
        address: 0,
        what: format!("{path}: {error}"),
    })?;
    let source = DatasetSource { file, encoding: Encoding::of(tree), dataset, pipeline: &pipeline };
    let (start, count) = (vec![0; dims.len()], vec![1; dims.len()]);
    let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &start };
    let mut element = vec![0; len_bytes];
    DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, &mut element)?;
    Ok(Some(element))
}
