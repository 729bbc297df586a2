//! The class `File` of the module, which takes numbers of objects and returns plain values.

use crate::attached::{no_signal, reading};
use crate::describe::describe;
use crate::{errors, reused};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::ahead::WholeReader;
use raddle_hdf5::bulk::AxisSelection;
use raddle_hdf5::dimensions::is_without_values;
use raddle_hdf5::model::{Dataspace, Layout, LinkTarget, ObjectKind, TypeClass};
use raddle_hdf5::open_file::{Axes, OpenFile, cut_canonical};
use raddle_hdf5::paths::ResolvedPath;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A file opened for reading.
#[pyclass(frozen, module = "raddle._core")]
pub struct File {
    inner: Arc<OpenFile>,
    whole: WholeReader,
    types: Mutex<Types>,
    /// Outlines shared by datasets, indexed by the address of the template and the number of rows.
    outlines: Mutex<HashMap<(usize, u64), Py<PyTuple>>>,
}

/// Numbered types: a numpy type is created once per type, not per dataset.
#[derive(Default)]
struct Types {
    /// Numbers of types by their address, which cannot change while `all` holds them.
    by_place: HashMap<usize, usize>,
    all: Vec<Arc<TypeClass>>,
}

/// Selected elements of one axis, as passed by Python.
#[derive(FromPyObject)]
enum Axis<'py> {
    Range((u64, u64, u64)),
    Listed(PyReadonlyArray1<'py, u64>),
}

impl Axis<'_> {
    fn selection(&self) -> AxisSelection {
        match self {
            Self::Range((start, count, step)) => AxisSelection::Range { start: *start, count: *count, step: *step },
            Self::Listed(elements) => AxisSelection::Listed(elements.as_array().to_vec()),
        }
    }
}

fn selections(axes: &[Axis<'_>]) -> Vec<AxisSelection> {
    axes.iter().map(Axis::selection).collect()
}

#[pymethods]
impl File {
    /// Opens the file and reads its metadata.
    #[new]
    #[pyo3(signature = (path, threads=None))]
    fn new(py: Python<'_>, path: PathBuf, threads: Option<usize>) -> PyResult<Self> {
        let open = || OpenFile::open(&path, threads).and_then(|file| file.check_no_writer().map(|()| file));
        let opened = reading(py, open)?.map_err(|error| errors::of_hdf5(py, &error))?;
        let inner = Arc::new(opened);
        let whole = WholeReader::new(Arc::clone(&inner));
        Ok(Self { inner, whole, types: Mutex::default(), outlines: Mutex::default() })
    }

    /// Checks that the path of the file still leads to it, which readers that open the path again depend on.
    fn check_not_replaced(&self, py: Python<'_>) -> PyResult<()> {
        self.reported(py, self.inner.check_not_replaced())
    }

    /// Returns the number of objects.
    fn __len__(&self) -> usize {
        self.inner.tree().objects.len()
    }

    /// Finds the target of a path over at most `max_links` links: an object's number, `(file, path, links left)` for
    /// an external link, or None.
    fn find<'py>(&self, py: Python<'py>, start: u32, path: &[u8], max_links: u32) -> PyResult<Bound<'py, PyAny>> {
        match self.reported(py, self.inner.find(start, path, max_links))? {
            ResolvedPath::Object(object) => Ok(object.into_pyobject(py)?.into_any()),
            ResolvedPath::External { file, path, links_left } => {
                Ok((PyBytes::new(py, &file), PyBytes::new(py, &path), links_left).into_pyobject(py)?.into_any())
            }
            ResolvedPath::TooManyLinks => Err(errors::too_many_links(py, &String::from_utf8_lossy(path))),
            ResolvedPath::Nothing => Ok(py.None().into_bound(py)),
        }
    }

    /// Returns the kind of an object and the address of its header in the file, which is equal for two names of one
    /// object.
    fn kind(&self, py: Python<'_>, object: u32) -> PyResult<(&'static str, u64)> {
        let object = self.reported(py, self.inner.object(object))?;
        Ok((kind(&object.kind), object.address))
    }

    /// Returns the reason why an object cannot be read.
    fn reason(&self, py: Python<'_>, object: u32) -> PyResult<String> {
        Ok(match &self.reported(py, self.inner.object(object))?.kind {
            ObjectKind::Unreadable { reason, .. } => reason.clone(),
            _ => String::new(),
        })
    }

    /// Returns the names of a group's links.
    fn names<'py>(&self, py: Python<'py>, group: u32) -> PyResult<Bound<'py, PyList>> {
        let names = PyList::empty(py);
        for link in self.reported(py, self.inner.links(group))? {
            names.append(text(py, &link.name)?)?;
        }
        Ok(names)
    }

    /// Returns name, object number, kind and outline of each link of a group; number and kind are None for links that
    /// are not hard, and the outline is None unless the object is a dataset.
    fn children<'py>(&self, py: Python<'py>, group: u32) -> PyResult<Bound<'py, PyList>> {
        let children = PyList::empty(py);
        for link in self.reported(py, self.inner.links(group))? {
            let name = text(py, &link.name)?;
            match &link.target {
                LinkTarget::Hard(target) => {
                    let word = kind(&self.reported(py, self.inner.object(*target))?.kind);
                    children.append((name, *target, word, self.shared_outline(py, *target)?))?;
                }
                _ => children.append((name, py.None(), py.None(), py.None()))?,
            }
        }
        Ok(children)
    }

    /// Returns the number of a group's links.
    fn link_count(&self, py: Python<'_>, group: u32) -> PyResult<usize> {
        Ok(self.reported(py, self.inner.links(group))?.len())
    }

    /// Describes a link of a group: `("hard", number)`, `("soft", path)`, `("external", file, path)`, `("user",)` or
    /// None.
    fn link<'py>(&self, py: Python<'py>, group: u32, name: &[u8]) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(link) = self.reported(py, self.inner.link(group, name))? else { return Ok(None) };
        Ok(Some(match &link.target {
            LinkTarget::Hard(target) => ("hard", *target).into_pyobject(py)?,
            LinkTarget::Soft(path) => ("soft", text(py, path)?).into_pyobject(py)?,
            LinkTarget::External { file, path } => ("external", text(py, file)?, text(py, path)?).into_pyobject(py)?,
            _ => ("user",).into_pyobject(py)?,
        }))
    }

    /// Returns the shape of a dataset (None for a null dataspace), its maximum shape, and the number of its type.
    fn outline<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Bound<'py, PyTuple>> {
        self.shared_outline(py, dataset)?.ok_or_else(|| errors::usage(py, "not a dataset"))
    }

    /// Returns, for each dataset, the names of its dimensions (None for unnamed ones) and whether it has values of its
    /// own.
    fn dimensions<'py>(&self, py: Python<'py>, datasets: Vec<u32>) -> PyResult<Bound<'py, PyList>> {
        let described = PyList::empty(py);
        for Axes { names, has_values } in self.reported(py, self.inner.axes(&datasets))? {
            let axes = PyList::empty(py);
            for name in names {
                axes.append(name.map(|name| text(py, &name)).transpose()?)?;
            }
            described.append((axes, has_values))?;
        }
        Ok(described)
    }

    /// Returns whether each dataset has values of its own, instead of only standing for a netCDF dimension.
    fn have_values(&self, py: Python<'_>, datasets: Vec<u32>) -> PyResult<Vec<bool>> {
        let objects = datasets.iter().map(|&dataset| self.reported(py, self.inner.object(dataset)));
        objects.map(|object| object.map(|object| !is_without_values(object))).collect()
    }

    /// Returns the number of the type of a committed datatype.
    fn committed(&self, py: Python<'_>, datatype: u32) -> PyResult<usize> {
        match &self.reported(py, self.inner.object(datatype))?.kind {
            ObjectKind::CommittedDatatype(datatype) => Ok(self.number_of_type(&datatype.class)),
            _ => Err(errors::usage(py, "not a committed datatype")),
        }
    }

    /// Describes a type as nested tuples; also returns whether its elements refer to other parts of the file.
    fn datatype<'py>(&self, py: Python<'py>, number: usize) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let class = self.types.lock().unwrap_or_else(PoisonError::into_inner).all.get(number).cloned();
        let class = class.ok_or_else(|| errors::usage(py, "no such type"))?;
        Ok((describe(py, &class)?, class.is_file_local()))
    }

    /// Returns layout, chunk shape and filters `(number, name, parameters)` of a dataset, and whether its values are
    /// read natively.
    fn storage<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Bound<'py, PyTuple>> {
        let prepared = self.reported(py, self.inner.prepared(dataset))?;
        let (layout, chunks) = match &prepared.dataset.layout {
            Layout::Compact(_) => ("compact", None),
            Layout::Contiguous { .. } => ("contiguous", None),
            Layout::Chunked { chunk_shape, .. } => ("chunked", Some(PyTuple::new(py, chunk_shape)?)),
            Layout::External { .. } => ("external", None),
            Layout::Virtual => ("virtual", None),
            _ => ("unknown", None),
        };
        let filters = PyList::empty(py);
        for filter in &prepared.dataset.filters {
            filters.append((filter.id, text(py, &filter.name)?, PyTuple::new(py, &filter.parameters)?))?;
        }
        (layout, chunks, filters, self.inner.reads_natively(&prepared)).into_pyobject(py)
    }

    /// Returns the location of the stored bytes of rows `start` to `end`: for each chunk its origin, file offset,
    /// length and filter mask, concatenated ([`OpenFile::places`]).
    fn places<'py>(&self, py: Python<'py>, dataset: u32, start: u64, end: u64) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let prepared = self.reported(py, self.inner.prepared(dataset))?;
        let places = reading(py, || self.inner.places(&prepared, start..end))?;
        Ok(self.reported(py, places)?.into_pyarray(py))
    }

    /// Returns the fill value of a dataset as the bytes of one element; None for zeros. For types of variable length it
    /// is a list of one item.
    fn fill<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        let prepared = self.reported(py, self.inner.prepared(dataset))?;
        let fill = &prepared.dataset.fill;
        match fill.value.as_ref().filter(|_| !fill.undefined) {
            None => Ok(None),
            Some(value) => {
                let class = &prepared.dataset.datatype.class;
                let bytes = self.reported(py, self.inner.inline(class, value))?;
                values(py, class, &bytes).map(Some)
            }
        }
    }

    /// Returns the names of an object's attributes.
    fn attribute_names<'py>(&self, py: Python<'py>, object: u32) -> PyResult<Bound<'py, PyList>> {
        let names = PyList::empty(py);
        for attribute in self.reported(py, self.inner.attributes(object))? {
            names.append(text(py, &attribute.name)?)?;
        }
        Ok(names)
    }

    /// Returns type, shape and values of an attribute, or None. Values are bytes, or a list of bytes for types of
    /// variable length, or None for types that support neither.
    fn attribute<'py>(&self, py: Python<'py>, object: u32, name: &[u8]) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let object = self.reported(py, self.inner.object(object))?;
        let Some(attribute) = object.attribute(name) else { return Ok(None) };
        let class = &attribute.datatype.class;
        let values = match has_form(class) {
            true => Some(values(py, class, &self.reported(py, self.inner.inline(class, &attribute.data))?)?),
            false => {
                self.reported(py, self.inner.check_inline(class, &attribute.data))?;
                None
            }
        };
        let described = (self.number_of_type(class), shape(py, &attribute.dataspace)?, values);
        described.into_pyobject(py).map(Some)
    }

    /// Reads selections of datasets into byte arrays, in one parallel pass.
    fn read(&self, py: Python<'_>, wanted: Vec<(u32, Vec<Axis<'_>>, PyReadwriteArray1<'_, u8>)>) -> PyResult<()> {
        let mut wanted = wanted;
        let mut requests = Vec::with_capacity(wanted.len());
        for (dataset, axes, out) in &mut wanted {
            let out = out.as_slice_mut().map_err(|_| errors::usage(py, "the output is not contiguous"))?;
            requests.push((*dataset, selections(axes), out));
        }
        let mut raised = None;
        let read = reading(py, || self.inner.read(requests, &mut || no_signal(&mut raised)))?;
        self.finished(py, read, raised)
    }

    /// Reads all values of a dataset, as a byte array; datasets that follow may be read in the background.
    fn read_whole<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let mut raised = None;
        let read = reading(py, || self.whole.read(dataset, &mut || no_signal(&mut raised)))?;
        reused::array(py, self.finished(py, read, raised)?)
    }

    /// Reads a selection of a dataset with a variable-length type, as the bytes of each element.
    fn read_items<'py>(&self, py: Python<'py>, dataset: u32, axes: Vec<Axis<'py>>) -> PyResult<Bound<'py, PyAny>> {
        let axes = selections(&axes);
        let mut raised = None;
        let read = reading(py, || self.inner.read_canonical(dataset, &axes, &mut || no_signal(&mut raised)))?;
        let canonical = self.finished(py, read, raised)?;
        let prepared = self.reported(py, self.inner.prepared(dataset))?;
        values(py, &prepared.dataset.datatype.class, &canonical)
    }

    /// Reads values of a dataset through libhdf5 in a child process: all values, or rows `start` to `end`.
    #[pyo3(signature = (dataset, path, rows=None))]
    fn read_through_library<'py>(
        &self,
        py: Python<'py>,
        dataset: u32,
        path: &[u8],
        rows: Option<(u64, u64)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = rows.map(|(start, end)| start..end);
        let read = reading(py, || self.inner.read_through_library(dataset, path, rows))?;
        let bytes = self.reported(py, read)?;
        let prepared = self.reported(py, self.inner.prepared(dataset))?;
        values(py, &prepared.dataset.datatype.class, &bytes)
    }
}

impl File {
    /// Returns the file that this object wraps.
    pub(crate) fn open_file(&self) -> &OpenFile {
        &self.inner
    }

    /// Returns the outline of a dataset, shared by all datasets with the same template and number of rows; `None` if
    /// the object is not a dataset.
    fn shared_outline<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ObjectKind::Templated(templated) = &self.reported(py, self.inner.object(dataset))?.kind else {
            return self.new_outline(py, dataset);
        };
        let key = (Arc::as_ptr(&templated.form) as usize, templated.place.rows);
        let known =
            self.outlines.lock().unwrap_or_else(PoisonError::into_inner).get(&key).map(|known| known.clone_ref(py));
        if let Some(known) = known {
            return Ok(Some(known.into_bound(py)));
        }
        let outline = self.new_outline(py, dataset)?;
        if let Some(outline) = &outline {
            let mut outlines = self.outlines.lock().unwrap_or_else(PoisonError::into_inner);
            outlines.insert(key, outline.clone().unbind());
        }
        Ok(outline)
    }

    fn new_outline<'py>(&self, py: Python<'py>, dataset: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((dataspace, class)) = self.reported(py, self.inner.outline(dataset))? else { return Ok(None) };
        let largest = match &dataspace {
            Dataspace::Simple { max_dims, .. } => {
                let largest = max_dims.iter().map(|&dim| (dim != u64::MAX).then_some(dim));
                Some(PyTuple::new(py, largest.collect::<Vec<_>>())?)
            }
            _ => None,
        };
        Ok(Some((shape(py, &dataspace)?, largest, self.number_of_type(&class)).into_pyobject(py)?))
    }

    fn number_of_type(&self, class: &Arc<TypeClass>) -> usize {
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::as_ptr(class) as usize;
        let next = types.all.len();
        let number = *types.by_place.entry(place).or_insert(next);
        if number == next {
            types.all.push(Arc::clone(class));
        }
        number
    }

    fn reported<T>(&self, py: Python<'_>, result: Result<T, Hdf5Error>) -> PyResult<T> {
        result.map_err(|error| errors::of_hdf5(py, &error))
    }

    /// Converts the result of a read that a signal may have stopped.
    fn finished<T>(&self, py: Python<'_>, read: Result<Option<T>, Hdf5Error>, raised: Option<PyErr>) -> PyResult<T> {
        match (self.reported(py, read)?, raised) {
            (_, Some(error)) => Err(error),
            (Some(done), None) => Ok(done),
            (None, None) => Err(errors::internal(py, "a read stopped without a reason")),
        }
    }
}

/// Returns the kind of an object as a word.
fn kind(kind: &ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Group(_) => "group",
        ObjectKind::Dataset(_) | ObjectKind::Templated(_) => "dataset",
        ObjectKind::CommittedDatatype(_) => "datatype",
        _ => "unreadable",
    }
}

/// Returns whether values of the type are passed as bytes or as a list of bytes.
fn has_form(class: &TypeClass) -> bool {
    match class {
        TypeClass::VariableString { .. } => true,
        TypeClass::Sequence { base, .. } => !base.is_file_local(),
        class => !class.is_file_local(),
    }
}

/// Converts canonical bytes for Python: bytes, or a list of bytes for types of variable length.
fn values<'py>(py: Python<'py>, class: &TypeClass, canonical: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if !class.is_file_local() {
        return Ok(PyBytes::new(py, canonical).into_any());
    }
    match cut_canonical(class, canonical) {
        Some(elements) => {
            Ok(PyList::new(py, elements.into_iter().map(|element| PyBytes::new(py, element)))?.into_any())
        }
        None => Err(errors::internal(py, "values of a type without a form")),
    }
}

/// Decodes a name that need not be UTF-8 in the same way as Python's own functions.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into_pyobject(py)?.into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

fn shape<'py>(py: Python<'py>, dataspace: &Dataspace) -> PyResult<Option<Bound<'py, PyTuple>>> {
    match dataspace {
        Dataspace::Null => Ok(None),
        other => PyTuple::new(py, other.dims()).map(Some),
    }
}
