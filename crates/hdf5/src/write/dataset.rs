//! Datasets of an output: creation, chunks at claimed addresses, values that go through libhdf5.

use super::{
    AttributeSpec, Mapping, NewLink, OutputFile, TypeRef, dataspace, datatype, filters, memory, not_writable, predict,
    properties,
};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use crate::model::{CreationOrder, Dataspace, FillValue, Filter, TypeClass};
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dget_type, H5Dopen2, H5Dwrite, H5Dwrite_chunk};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_ACCESS, H5Pcreate, H5Pset_chunk_cache};
use hdf5_metno_sys::h5s::H5S_ALL;
use std::sync::Arc;

/// A dataset to be created.
#[derive(Debug, Clone)]
pub struct DatasetSpec {
    /// Type of one element.
    pub datatype: TypeRef,
    /// Extent.
    pub dataspace: Dataspace,
    /// Storage.
    pub layout: OutputLayout,
    /// Filter pipeline, written down exactly as given; chunks arrive already filtered.
    pub filters: Vec<Filter>,
    /// Fill value. When storage is allocated follows from the layout, whatever `allocation_time` says. With
    /// `write_time` never, readers do not see the fill value in chunks that were not inserted.
    pub fill: FillValue,
    /// Creation order of attributes.
    pub attribute_order: CreationOrder,
    /// Whether attributes will be written: room for them is then kept in the object header.
    pub has_attributes: bool,
}

/// Storage of a dataset to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputLayout {
    /// In the object header; at most 64 KiB.
    Compact,
    /// In one run: [`OutputDataset::place`], or [`OutputDataset::write`] where the values are small.
    Contiguous,
    /// In chunks. libhdf5 refuses a chunk larger than a dimension of fixed size: clamp it.
    Chunked {
        /// Chunk shape in elements.
        chunk_shape: Vec<u64>,
    },
    /// In datasets of other files; rows without a mapping read as the fill value. Takes no values, chunks or filters.
    Virtual(Vec<Mapping>),
}

/// A dataset of an output that is still open.
pub struct OutputDataset<'f> {
    file: &'f mut OutputFile,
    path: Arc<[u8]>,
    handle: Handle,
    /// For writing values.
    datatype: Handle,
    class: Arc<TypeClass>,
    dataspace: Dataspace,
    layout: OutputLayout,
    filter_count: usize,
    element_count: u64,
    index: predict::IndexRoom,
    /// What chunks in libhdf5's cache may take when they leave it: at the latest when the dataset is closed.
    cached_len_bytes: u64,
}

/// Values of file-local types and small values are written a run of rows at a time through the chunk cache. It must
/// hold the chunks of a run, or each would be filtered, stored, and read back for the next run; whole chunks need no
/// more than this, which is also libhdf5's own default.
const CHUNK_CACHE_LEN_BYTES: usize = 8 << 20;

impl OutputFile {
    /// Creates a dataset; its parent must exist.
    pub fn create_dataset<'a>(
        &mut self,
        link: impl Into<NewLink<'a>>,
        spec: &DatasetSpec,
    ) -> Result<OutputDataset<'_>> {
        let link = link.into();
        let _library = Library::lock();
        self.require(self.ledger.dataset_room(spec).saturating_add(self.link_room(link, 0)))?;
        let result = self.linked(link, 0, |file, call, parent, name, link_list| {
            let datatype = file.datatype(call, &spec.datatype)?;
            let space = dataspace::build(call, &spec.dataspace)?;
            if let OutputLayout::Chunked { chunk_shape } = &spec.layout
                && chunk_shape.len() != spec.dataspace.dims().len()
            {
                let rank = spec.dataspace.dims().len();
                return Err(not_writable(call, format!("its chunks have {} sizes, it has {rank}", chunk_shape.len())));
            }
            let element_count = spec.dataspace.element_count();
            let element_count = element_count.ok_or_else(|| not_writable(call, "its extent overflows".to_owned()))?;
            let creation = properties::dataset_creation(call, spec, &datatype, file.id.as_ref())?;
            let access = access(call, spec)?;
            let name = call.c_string("H5Dcreate2", name)?;
            // SAFETY: valid handles and name, lock held; the dataset is ours.
            let handle = unsafe {
                let (datatype, space) = (datatype.id(), space.id());
                let access = access.as_ref().map_or(H5P_DEFAULT, Handle::id);
                let id = H5Dcreate2(parent, name.as_ptr(), datatype, space, link_list, creation.id(), access);
                call.handle("H5Dcreate2", id)
            }?;
            // First, for the file is closed, and its headers encoded, after a refusal too.
            filters::encode_names(call, &handle, &spec.filters)?;
            filters::check(call, &handle, &spec.filters)?;
            file.ledger.made(link.path, spec.attribute_order);
            Ok((handle, element_count))
        });
        let (handle, element_count) = self.settle(result)?;
        let index = predict::IndexRoom::of_created(self.compat(), spec);
        self.opened(link.path, spec, handle, element_count, index)
    }

    /// Opens a dataset that [`OutputFile::create_dataset`] made with the same `spec`, to give it chunks or values
    /// later.
    pub fn open_dataset(&mut self, path: &[u8], spec: &DatasetSpec) -> Result<OutputDataset<'_>> {
        let _library = Library::lock();
        let own_path = self.shared_path();
        let call = Call::of_object(&own_path, path);
        let name = call.c_string("H5Dopen2", path)?;
        let access = access(call, spec)?;
        // SAFETY: valid handle and name, lock held; the dataset is ours.
        let handle = unsafe {
            let id = H5Dopen2(self.id(call)?, name.as_ptr(), access.as_ref().map_or(H5P_DEFAULT, Handle::id));
            call.handle("H5Dopen2", id)
        };
        let handle = self.settle(handle)?;
        let index = predict::IndexRoom::of_opened(self.compat(), spec);
        self.opened(path, spec, handle, spec.dataspace.element_count().unwrap_or(u64::MAX), index)
    }

    fn opened(
        &mut self,
        path: &[u8],
        spec: &DatasetSpec,
        handle: Handle,
        element_count: u64,
        index: predict::IndexRoom,
    ) -> Result<OutputDataset<'_>> {
        // The type in which values are given. Bytes of fixed types must arrive as they are, so no other than what the
        // dataset itself has will do: libhdf5 would convert. File-local types are given in memory form; the dataset's own may be in file form (committed).
        let class = Arc::clone(spec.datatype.class());
        let own_path = self.shared_path();
        let call = Call::of_object(&own_path, path);
        let datatype = if class.is_file_local() {
            datatype::build(call, &class)?
        } else {
            // SAFETY: valid handle, the caller holds the lock; the identifier is ours.
            unsafe { call.handle("H5Dget_type", H5Dget_type(handle.id())) }?
        };
        Ok(OutputDataset {
            path: Arc::from(path),
            handle,
            datatype,
            class,
            dataspace: spec.dataspace.clone(),
            layout: spec.layout.clone(),
            filter_count: spec.filters.len(),
            element_count,
            index,
            cached_len_bytes: 0,
            file: self,
        })
    }
}

fn access(call: Call<'_>, spec: &DatasetSpec) -> Result<Option<Handle>> {
    let OutputLayout::Chunked { .. } = spec.layout else { return Ok(None) };
    // SAFETY: for the block: the caller holds the lock; the list is ours.
    unsafe {
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_ACCESS))?;
        // Claimed chunks pass the cache by: none is kept for them. 521 slots and a preemption of 1 (chunks that were
        // written to the end go first) suit the others.
        let (slots, len_bytes) =
            if spec.datatype.class().is_file_local() { (521, CHUNK_CACHE_LEN_BYTES) } else { (0, 0) };
        call.status("H5Pset_chunk_cache", H5Pset_chunk_cache(list.id(), slots, len_bytes, 1.0))?;
        Ok(Some(list))
    }
}

impl Drop for OutputDataset<'_> {
    fn drop(&mut self) {
        self.file.ledger.promise(0);
    }
}

impl OutputDataset<'_> {
    /// Keeps metadata room free for `count` chunks that will be inserted in order of their origins, or fails with
    /// [`Hdf5Error::MetadataRegionFull`]. None of them is refused then; without this, each is bounded by the most
    /// that a single chunk can take, and the last pages of the region stay unused.
    pub fn expect_chunks(&mut self, count: u64) -> Result<()> {
        let _library = Library::lock();
        self.file.ledger.promise(self.cached_len_bytes);
        self.file.require(self.index.for_expected(count))?;
        self.index.promise(count);
        self.keep_promises();
        Ok(())
    }

    /// Tells that the chunk whose first element is `origin` lies at `address`, `len_bytes` long as stored, encoded
    /// with the pipeline but for the filters in `filter_mask`. The bytes may be written before or after, by anyone.
    pub fn insert(&mut self, origin: &[u64], address: u64, len_bytes: u64, filter_mask: u32) -> Result<()> {
        let _library = Library::lock();
        let (path, object) = (self.file.shared_path(), Arc::clone(&self.path));
        let call = Call::of_object(&path, &object);
        self.check_claim(call, address, len_bytes)?;
        if self.dataspace.dims().len() != origin.len() {
            return Err(self.not_writable(format!("a chunk origin of {} numbers does not fit it", origin.len())));
        }
        if self.index.is_promised(origin) {
            self.file.allow(self.index.promised_len_bytes());
        } else {
            self.file.require(self.index.for_chunk(origin))?;
        }
        let before = self.file.front();
        let plan = self.file.plan(call)?;
        plan.claim(address, len_bytes);
        let placeholder = plan.placeholder();
        // SAFETY: valid handle, lock held; `origin` has as many numbers as the dataset has dimensions. libhdf5 passes
        // the placeholder on to the driver without reading it (else: a fault, by design of the placeholder).
        let status = unsafe {
            H5Dwrite_chunk(self.handle.id(), H5P_DEFAULT, filter_mask, origin.as_ptr(), len_bytes as usize, placeholder)
        };
        let result = call.status("H5Dwrite_chunk", status).map(drop);
        self.taken(call, address, len_bytes, result)?;
        self.index.inserted(origin, self.file.taken_since(before));
        self.keep_promises();
        Ok(())
    }

    /// Tells that the contiguous dataset's values lie at `address`. The bytes may be written before or after.
    pub fn place(&mut self, address: u64) -> Result<()> {
        let _library = Library::lock();
        let (path, object) = (self.file.shared_path(), Arc::clone(&self.path));
        let call = Call::of_object(&path, &object);
        let len_bytes = self.element_count.checked_mul(self.class.len_bytes());
        let len_bytes = len_bytes.ok_or_else(|| self.not_writable("its size overflows".to_owned()))?;
        if self.class.is_file_local() {
            return Err(self.not_writable("its values cannot be placed as bytes: they point into the file".to_owned()));
        }
        self.check_claim(call, address, len_bytes)?;
        let plan = self.file.plan(call)?;
        plan.claim(address, len_bytes);
        let placeholder = plan.placeholder();
        // SAFETY: as in `insert`: the whole dataset in its own type is written by one call of the driver, for neither
        // a conversion nor a sieve buffer (which the driver does not advertise) stands between.
        let status =
            unsafe { H5Dwrite(self.handle.id(), self.datatype.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, placeholder) };
        let result = call.status("H5Dwrite", status).map(drop);
        self.taken(call, address, len_bytes, result)
    }

    /// Writes all elements through libhdf5: for small datasets, scalars, and file-local types that fit in memory.
    /// `value` holds stored bytes for fixed types, canonical bytes for file-local ones.
    pub fn write(&mut self, value: &[u8]) -> Result<()> {
        let rows = self.dataspace.dims().first().copied().unwrap_or(1);
        self.write_rows(0, rows, value)
    }

    /// Writes `rows` rows of axis 0 from `start_row` through libhdf5; for a scalar, 0 and 1. Whole chunks at a time,
    /// in order, or their space is wasted when they are filtered again. `value` as for [`OutputDataset::write`].
    pub fn write_rows(&mut self, start_row: u64, rows: u64, value: &[u8]) -> Result<()> {
        let _library = Library::lock();
        let (path, object) = (self.file.shared_path(), Arc::clone(&self.path));
        let call = Call::of_object(&path, &object);
        let (count, selection) = match self.dataspace.dims() {
            [] => (self.element_count, None),
            dims => {
                let end = start_row.checked_add(rows);
                if end.is_none_or(|end| end > dims[0]) {
                    return Err(self.not_writable(format!("rows {start_row} and {rows} more do not lie in it")));
                }
                let (mut start, mut count) = (vec![0; dims.len()], dims.to_vec());
                (start[0], count[0]) = (start_row, rows);
                (count.iter().product(), Some((start, count)))
            }
        };
        let image = if self.class.is_file_local() {
            memory::Image::of_canonical(call, &self.class, value, count, self.file.handle())?
        } else {
            memory::Image::of_stored(value.to_vec())
        };
        let wanted_len_bytes = count.checked_mul(datatype::memory_len_bytes(&self.class));
        if wanted_len_bytes != Some(image.bytes().len() as u64) {
            return Err(self.not_writable(format!("{} bytes are given for {count} elements", value.len())));
        }
        if count == 0 {
            return Ok(());
        }
        let (class, dataspace) = (&self.class, &self.dataspace);
        let stored_len_bytes = predict::values_len_bytes(
            class,
            &self.layout,
            self.filter_count,
            dataspace,
            start_row,
            rows,
            value.len() as u64,
        );
        // What is in the cache is already promised, with the index.
        let index_len_bytes = if self.cached_len_bytes == 0 { self.index.for_all() } else { 0 };
        let needed_len_bytes = stored_len_bytes.saturating_add(index_len_bytes);
        self.file.require(needed_len_bytes)?;
        let before = self.file.front();
        let result = self.write_image(call, &image, selection.as_ref());
        self.file.settle(result)?;
        if self.class.is_file_local() && matches!(self.layout, OutputLayout::Chunked { .. }) {
            let taken_len_bytes = self.file.taken_since(before);
            let promised_len_bytes = self.cached_len_bytes.saturating_add(needed_len_bytes);
            self.cached_len_bytes = promised_len_bytes.saturating_sub(taken_len_bytes);
            self.keep_promises();
        }
        Ok(())
    }

    fn keep_promises(&mut self) {
        self.file.ledger.promise(self.index.promised_len_bytes().saturating_add(self.cached_len_bytes));
    }

    fn write_image(
        &self,
        call: Call<'_>,
        image: &memory::Image,
        selection: Option<&(Vec<u64>, Vec<u64>)>,
    ) -> Result<()> {
        let spaces = match selection {
            Some((start, count)) => {
                let extent = |dims: &[u64]| Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() };
                let in_file = dataspace::build(call, &extent(self.dataspace.dims()))?;
                dataspace::select_box(call, &in_file, start, count, false)?;
                Some((dataspace::build(call, &extent(count))?, in_file))
            }
            None => None,
        };
        let (in_memory, in_file) =
            spaces.as_ref().map_or((H5S_ALL, H5S_ALL), |(in_memory, in_file)| (in_memory.id(), in_file.id()));
        // SAFETY: valid handles, lock held; the image holds as many elements in memory form as are selected, which
        // the caller has checked.
        let status = unsafe {
            let bytes = image.bytes().as_ptr().cast();
            H5Dwrite(self.handle.id(), self.datatype.id(), in_memory, in_file, H5P_DEFAULT, bytes)
        };
        call.status("H5Dwrite", status).map(drop)
    }

    /// Writes an attribute of this dataset; cheaper than by path.
    pub fn write_attribute(&mut self, attribute: &AttributeSpec<'_>) -> Result<()> {
        let _library = Library::lock();
        let attributes = std::slice::from_ref(attribute);
        self.file.require(self.file.ledger.attributes_room(&self.path, attributes))?;
        let call = Call::of_object(self.file.path(), &self.path);
        let result = self.file.attach(call, self.handle.id(), attributes);
        self.file.settle(result)?;
        self.file.ledger.attached(&self.path, attributes);
        Ok(())
    }

    /// Refuses claims that would meet metadata.
    fn check_claim(&self, call: Call<'_>, address: u64, len_bytes: u64) -> Result<()> {
        let placement = |what| Err(Hdf5Error::Placement { path: call.path.to_path_buf(), address, len_bytes, what });
        let end = address.checked_add(len_bytes).filter(|&end| end <= i64::MAX as u64 / 2);
        match end {
            None => placement("a claim reaches beyond what a file can hold"),
            Some(_) if len_bytes == 0 => placement("a claim is empty"),
            Some(_) if address < self.file.raw_start() => placement("a claim lies in the metadata region"),
            Some(end) if self.file.raw_end().is_some_and(|raw_end| end > raw_end) => {
                placement("a claim lies behind the end of the raw region")
            }
            Some(_) => Ok(()),
        }
    }

    /// The result of a call that should have taken the claim.
    fn taken(&mut self, call: Call<'_>, address: u64, len_bytes: u64, result: Result<()>) -> Result<()> {
        let taken = self.file.plan(call)?.take_claim();
        self.file.settle(result)?;
        if taken {
            return Ok(());
        }
        // For example: the chunk is there already, or libhdf5 found room in space that raw data had left.
        let path = call.path.to_path_buf();
        Err(Hdf5Error::Placement { path, address, len_bytes, what: "libhdf5 did not take the claimed address" })
    }

    fn not_writable(&self, what: String) -> Hdf5Error {
        not_writable(Call::of_object(self.file.path(), &self.path), what)
    }
}
