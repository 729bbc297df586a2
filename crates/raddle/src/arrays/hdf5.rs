//! Arrays stored as datasets in HDF5 files.

use super::{ArraySource, ArrayValues, refused};
use crate::error::Error;
use crate::number::idx_number;
use crate::options::ReaderOptions;
use crate::text::escape;
use raddle_codec::Pipeline;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::child::{ChildReader, ObjectName};
use raddle_hdf5::metadata::{MetadataReader, NativeReader, complete};
use raddle_hdf5::model::{Dataset, FileTree, LinkTarget, ObjectKind};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::paths::{MAX_LINKS, ResolvedPath, find_in};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use raddle_idx::dataset::sample::Number;
use std::ops::Range;
use std::path::Path;

/// Maximum number of datasets listed if the user has to choose one.
const MAX_CHOICES: usize = 10;

/// Maximum length of values that are requested from libhdf5 at once. They are held in memory twice. Most chunks are far
/// shorter.
const MAX_ANSWER_LEN_BYTES: u64 = 64 << 20;

/// A dataset of numbers.
#[derive(Debug)]
pub(super) struct Hdf5Values {
    file: InputFile,
    dataset: Dataset,
    way: Way,
    is_big_endian: bool,
}

/// Method of reading the values.
#[derive(Debug)]
enum Way {
    Native {
        encoding: Encoding,
        pipeline: Pipeline,
    },
    /// Through libhdf5 in a separate process, for virtual datasets and external storage.
    Library {
        child: Box<ChildReader>,
        object: ObjectName,
    },
}

impl Hdf5Values {
    /// Fills `out` with rows of the slowest axis; returns whether the values are big-endian.
    pub(super) fn read(&self, shape: &[u64], rows: Range<u64>, out: &mut [u8]) -> Result<bool, Error> {
        let read = match &self.way {
            Way::Native { encoding, pipeline } => self.read_natively(*encoding, pipeline, shape, rows, out),
            Way::Library { child, object } => self.read_through(child, object, rows, out),
        };
        let read = read.and_then(|()| self.file.check_unchanged());
        read.map_err(|error| of_values(&error)).map(|()| self.is_big_endian)
    }

    fn read_natively(
        &self,
        encoding: Encoding,
        pipeline: &Pipeline,
        shape: &[u64],
        rows: Range<u64>,
        out: &mut [u8],
    ) -> raddle_hdf5::Result<()> {
        let (mut start, mut count) = (vec![0; shape.len()], shape.to_vec());
        (start[0], count[0]) = (rows.start, rows.end - rows.start);
        let origin = vec![0; shape.len()];
        let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &origin };
        let source = DatasetSource { file: &self.file, encoding, dataset: &self.dataset, pipeline };
        DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, out).map(drop)
    }

    fn read_through(
        &self,
        child: &ChildReader,
        object: &ObjectName,
        rows: Range<u64>,
        out: &mut [u8],
    ) -> raddle_hdf5::Result<()> {
        let row_len = out.len() / (rows.end - rows.start).max(1) as usize;
        let most_rows = (MAX_ANSWER_LEN_BYTES / row_len.max(1) as u64).max(1);
        let (mut row, mut rest) = (rows.start, out);
        while row < rows.end && !rest.is_empty() {
            let end = rows.end.min(row + most_rows);
            let values = child.read_values(self.file.path(), object.clone(), Some(row..end))?;
            let len = (end - row) as usize * row_len;
            if values.len() != len {
                let path = self.file.path().to_path_buf();
                return Err(Hdf5Error::Changed { path, what: "the length of a row" });
            }
            let (part, behind) = rest.split_at_mut(len);
            part.copy_from_slice(&values);
            (row, rest) = (end, behind);
        }
        Ok(())
    }
}

/// Converts an error of reading values.
fn of_values(error: &Hdf5Error) -> Error {
    let failure = Error::of_input(error);
    match error {
        Hdf5Error::ForeignFile { .. } => failure.hint(
            "copy the values with `raddle merge --follow-foreign-files` and write from the copy, or name the dataset that it \
             refers to",
        ),
        Hdf5Error::MissingSource { .. } => failure.hint("put the missing files where they are expected"),
        _ => failure,
    }
}

/// Opens the dataset at `name`, or the only numeric dataset with an axis.
pub(super) fn open(path: &Path, name: Option<&str>, reader: &ReaderOptions) -> Result<ArraySource, Error> {
    // Opened first: every read of values then notices if the metadata belongs to a later file.
    let file = InputFile::open(path).map_err(|error| Error::of_input(&error))?;
    file.check_no_writer().map_err(|error| Error::of_input(&error))?;
    let native = NativeReader::default().read_tree(path);
    let child = reader.child();
    let tree = match &child {
        Some(child) => complete(native, path, child),
        None => native,
    };
    let tree = tree.map_err(|error| match error {
        Hdf5Error::NotHdf5 { .. } => Error::of_input(&error).hint("a raw file needs --shape and --dtype"),
        error => Error::of_input(&error),
    })?;
    let (name, dataset) = match name {
        Some(name) => (name.to_owned(), named(&tree, path, name)?),
        None => only(&tree, path)?,
    };
    let (number, is_big_endian) = readable(dataset).map_err(|(why, hint)| {
        let failure = refused(path, &format!("dataset {name} {why}"));
        failure.hint(hint)
    })?;
    let way = if dataset.layout.is_through_library() {
        let child =
            child.ok_or_else(|| refused(path, &format!("{name}: must be read by libhdf5, which cannot be started")))?;
        let object = ObjectName::Path(name.clone().into_bytes());
        // Reads no values, but looks up everything the dataset refers to.
        child.read_values(path, object.clone(), Some(0..0)).map_err(|error| of_values(&error))?;
        Way::Library { child: Box::new(child), object }
    } else {
        let encoding = Encoding {
            base: tree.userblock_len_bytes,
            address_len_bytes: tree.address_len_bytes,
            length_len_bytes: tree.length_len_bytes,
        };
        let pipeline = Pipeline::new(&dataset.filters, number.len_bytes())
            .map_err(|error| refused(path, &format!("{name}: {error}")))?;
        Way::Native { encoding, pipeline }
    };
    let shape = dataset.dataspace.dims().to_vec();
    let values = Hdf5Values { file, dataset: dataset.clone(), way, is_big_endian };
    Ok(ArraySource {
        path: path.to_path_buf(),
        name: name.rsplit('/').next().unwrap_or(&name).to_owned(),
        dataset: Some(name),
        shape,
        number,
        stored_as: None,
        values: ArrayValues::Hdf5(Box::new(values)),
    })
}

/// Finds the dataset at a path, following hard and soft links in this file.
fn named<'t>(tree: &'t FileTree, path: &Path, name: &str) -> Result<&'t Dataset, Error> {
    let object = match find_in(tree, name.as_bytes()).map_err(|error| Error::of_input(&error))? {
        ResolvedPath::Object(index) => tree.objects.get(index as usize),
        ResolvedPath::External { file, path: within, .. } => {
            let (file, within) = (escape::bytes(&file), escape::bytes(&within));
            return Err(refused(path, &format!("{name} is a link to {within} of the file {file}"))
                .hint(&format!("name it as {file}:{within}; files of links are not opened here")));
        }
        ResolvedPath::TooManyLinks => {
            return Err(refused(
                path,
                &format!("{name} leads through more than {MAX_LINKS} links, possibly in a cycle"),
            ));
        }
        ResolvedPath::Nothing => None,
    };
    match object.map(|object| &object.kind) {
        Some(ObjectKind::Dataset(dataset)) => Ok(dataset),
        Some(ObjectKind::Unreadable { reason, .. }) => Err(refused(path, &format!("{name} cannot be read: {reason}"))),
        Some(_) => Err(refused(path, &format!("{name} is not a dataset; the file has {}", choice(&arrays(tree))))),
        None => Err(refused(path, &format!("has no dataset {name}; it has {}", choice(&arrays(tree))))),
    }
}

/// Finds the only numeric dataset with an axis.
fn only<'t>(tree: &'t FileTree, path: &Path) -> Result<(String, &'t Dataset), Error> {
    let mut all = arrays(tree);
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        _ => Err(refused(path, &format!("name a dataset, as FILE:/PATH; the file has {}", choice(&all)))),
    }
}

/// Returns the type of a dataset's numbers and whether they are big-endian, or the reason why they are not read and a
/// remedy.
fn readable(dataset: &Dataset) -> Result<(Number, bool), (&'static str, &'static str)> {
    if dataset.dataspace.dims().is_empty() {
        return Err(("has no axis", "name an array"));
    }
    idx_number(&dataset.datatype.class).ok_or((
        "holds no numbers that IDX supports: integers of 1, 2, 4 or 8 bytes, float32 and float64",
        "convert it, or name another dataset",
    ))
}

/// Lists the numeric datasets with an axis, with their paths.
fn arrays(tree: &FileTree) -> Vec<(String, &Dataset)> {
    let mut found = Vec::new();
    let mut seen = vec![false; tree.objects.len()];
    let mut open = vec![(0u32, String::new())];
    while let Some((index, path)) = open.pop() {
        let Some(object) = tree.objects.get(index as usize) else { continue };
        if std::mem::replace(&mut seen[index as usize], true) {
            continue;
        }
        match &object.kind {
            ObjectKind::Group(group) => open.extend(group.links.iter().rev().filter_map(|link| match link.target {
                LinkTarget::Hard(child) => Some((child, format!("{path}/{}", String::from_utf8_lossy(&link.name)))),
                _ => None,
            })),
            ObjectKind::Dataset(dataset)
                if idx_number(&dataset.datatype.class).is_some() && !dataset.dataspace.dims().is_empty() =>
            {
                found.push((path, dataset.as_ref()));
            }
            _ => {}
        }
    }
    found
}

fn choice(all: &[(String, &Dataset)]) -> String {
    let names: Vec<&str> = all.iter().take(MAX_CHOICES).map(|(name, _)| name.as_str()).collect();
    match (names.is_empty(), all.len() - names.len()) {
        (true, _) => "none".to_owned(),
        (_, 0) => names.join(", "),
        (_, more) => format!("{} and {more} more", names.join(", ")),
    }
}
