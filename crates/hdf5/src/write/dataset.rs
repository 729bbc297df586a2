//! Datasets of an output: creation, chunks at claimed addresses, and values written through libhdf5.

use super::links::NewLink;
use super::output::OutputFile;
use super::specs::{AttributeSpec, DatasetSpec, OutputLayout};
use super::{dataspace, datatype, filters, memory, not_writable, predict, properties};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use crate::model::{Dataspace, TypeClass};
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dget_type, H5Dopen2, H5Dwrite, H5Dwrite_chunk};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_ACCESS, H5Pcreate, H5Pset_chunk_cache};
use hdf5_metno_sys::h5s::H5S_ALL;
use std::sync::Arc;

/// A dataset of an open output.
pub struct OutputDataset<'f> {
    file: &'f mut OutputFile,
    path: Arc<[u8]>,
    handle: Handle,
    /// Memory type of the values that are passed.
    datatype: Handle,
    class: Arc<TypeClass>,
    dataspace: Dataspace,
    layout: OutputLayout,
    filter_count: usize,
    element_count: u64,
    index: predict::IndexRoom,
    /// Space that chunks in libhdf5's cache may take when they are evicted, at the latest when the dataset is closed.
    cached_len_bytes: u64,
}

/// Size of the chunk cache. Values of file-local types and small values are written through it, a run of rows at a
/// time. It must hold the chunks of a run; otherwise each chunk would be filtered, stored, and read back for the next
/// run. Whole chunks need no more than this, which is also libhdf5's default.
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
                return Err(not_writable(
                    call,
                    format!("its chunk shape has {} dimensions, but its rank is {rank}", chunk_shape.len()),
                ));
            }
            let element_count = spec.dataspace.element_count();
            let element_count = element_count.ok_or_else(|| not_writable(call, "its extent overflows".to_owned()))?;
            let creation = properties::dataset_creation(call, spec, &datatype, file.id.as_ref())?;
            let access = access(call, spec)?;
            let name = call.c_string("H5Dcreate2", name)?;
            // SAFETY: valid handles and name, lock held; we own the dataset.
            let handle = unsafe {
                let (datatype, space) = (datatype.id(), space.id());
                let access = access.as_ref().map_or(H5P_DEFAULT, Handle::id);
                let id = H5Dcreate2(parent, name.as_ptr(), datatype, space, link_list, creation.id(), access);
                call.handle("H5Dcreate2", id)
            }?;
            // Done first, because the file is closed and its headers are encoded even after a failure.
            filters::encode_names(call, &handle, &spec.filters)?;
            filters::check(call, &handle, &spec.filters)?;
            file.ledger.created(link.path, spec.attribute_order);
            Ok((handle, element_count))
        });
        let (handle, element_count) = self.settle(result)?;
        let index = predict::IndexRoom::of_created(self.compat(), spec);
        self.opened(link.path, spec, handle, element_count, index)
    }

    /// Opens a dataset that [`OutputFile::create_dataset`] created from the same `spec`, to add chunks or values later.
    pub fn open_dataset(&mut self, path: &[u8], spec: &DatasetSpec) -> Result<OutputDataset<'_>> {
        let _library = Library::lock();
        let file_path = self.shared_path();
        let call = Call::of_object(&file_path, path);
        let name = call.c_string("H5Dopen2", path)?;
        let access = access(call, spec)?;
        // SAFETY: valid handle and name, lock held; we own the dataset.
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
        // The type in which values are passed. Bytes of fixed types must be stored unchanged, so only the dataset's own
        // type will do: with any other, libhdf5 would convert. File-local types are passed in memory form; the
        // dataset's own type may be in file form (if committed).
        let class = Arc::clone(spec.datatype.class());
        let file_path = self.shared_path();
        let call = Call::of_object(&file_path, path);
        let datatype = if class.is_file_local() {
            datatype::build(call, &class)?
        } else {
            // SAFETY: valid handle, the caller holds the lock; we own the identifier.
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
    // SAFETY: for the block: the caller holds the lock; we own the list.
    unsafe {
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_ACCESS))?;
        // Claimed chunks bypass the cache, so it is disabled for them. For the others, 521 slots and a preemption of 1
        // (completely written chunks are evicted first) are suitable.
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
    /// Reserves metadata space for `count` chunks that will be inserted in order of their origins, or fails with
    /// [`Hdf5Error::MetadataRegionFull`]. After success none of them is refused. Without a reservation, the maximum for
    /// a single chunk is required for each, and the last pages of the region stay unused.
    pub fn expect_chunks(&mut self, count: u64) -> Result<()> {
        let _library = Library::lock();
        self.file.ledger.promise(self.cached_len_bytes);
        self.file.require(self.index.for_expected(count))?;
        self.index.promise(count);
        self.keep_promises();
        Ok(())
    }

    /// Records that the chunk whose first element is `origin` lies at `address` with `len_bytes` stored bytes, encoded
    /// by the pipeline except for the filters in `filter_mask`. The caller may write the bytes before or after, from
    /// any thread or process.
    pub fn insert(&mut self, origin: &[u64], address: u64, len_bytes: u64, filter_mask: u32) -> Result<()> {
        let _library = Library::lock();
        let (path, object) = (self.file.shared_path(), Arc::clone(&self.path));
        let call = Call::of_object(&path, &object);
        self.check_claim(call, address, len_bytes)?;
        if self.dataspace.dims().len() != origin.len() {
            return Err(
                self.not_writable(format!("a chunk origin with {} coordinates does not match its rank", origin.len()))
            );
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
        // SAFETY: valid handle, lock held; `origin` has one number per dimension of the dataset. libhdf5 passes the
        // placeholder to the driver without reading it (reading it would fault, by design of the placeholder).
        let status = unsafe {
            H5Dwrite_chunk(self.handle.id(), H5P_DEFAULT, filter_mask, origin.as_ptr(), len_bytes as usize, placeholder)
        };
        let result = call.status("H5Dwrite_chunk", status).map(drop);
        self.taken(call, address, len_bytes, result)?;
        self.index.inserted(origin, self.file.taken_since(before));
        self.keep_promises();
        Ok(())
    }

    /// Records that the contiguous dataset's values lie at `address`. The bytes may be written before or after.
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
        // SAFETY: as in `insert`: the whole dataset in its own type is written by one call of the driver, because
        // neither a conversion nor a sieve buffer (which the driver does not advertise) intervenes.
        let status =
            unsafe { H5Dwrite(self.handle.id(), self.datatype.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, placeholder) };
        let result = call.status("H5Dwrite", status).map(drop);
        self.taken(call, address, len_bytes, result)
    }

    /// Writes all elements through libhdf5: for small datasets, scalars, and file-local types that fit in memory.
    /// `value` holds stored bytes for fixed types, and canonical bytes for file-local ones.
    pub fn write(&mut self, value: &[u8]) -> Result<()> {
        let rows = self.dataspace.dims().first().copied().unwrap_or(1);
        self.write_rows(0, rows, value)
    }

    /// Writes `rows` rows of axis 0 from `start_row` through libhdf5. For a scalar, `start_row` is 0 and `rows` is 1.
    /// Write whole chunks at a time, in order: a chunk that is filtered again wastes its old space. `value` is as for
    /// [`OutputDataset::write`].
    pub fn write_rows(&mut self, start_row: u64, rows: u64, value: &[u8]) -> Result<()> {
        let _library = Library::lock();
        let (path, object) = (self.file.shared_path(), Arc::clone(&self.path));
        let call = Call::of_object(&path, &object);
        let (count, selection) = match self.dataspace.dims() {
            [] => (self.element_count, None),
            dims => {
                let end = start_row.checked_add(rows);
                if end.is_none_or(|end| end > dims[0]) {
                    return Err(self.not_writable(format!("{rows} rows from row {start_row} do not lie in it")));
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
            return Err(self.not_writable(format!("got {} bytes for {count} elements", value.len())));
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
        // The space for cached chunks is already reserved, including the index.
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
        // SAFETY: valid handles, lock held; the image holds as many elements in memory form as are selected, as checked
        // by the caller.
        let status = unsafe {
            let bytes = image.bytes().as_ptr().cast();
            H5Dwrite(self.handle.id(), self.datatype.id(), in_memory, in_file, H5P_DEFAULT, bytes)
        };
        call.status("H5Dwrite", status).map(drop)
    }

    /// Writes an attribute of this dataset, without looking the dataset up by path.
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

    /// Refuses claims that would overlap metadata.
    fn check_claim(&self, call: Call<'_>, address: u64, len_bytes: u64) -> Result<()> {
        let placement = |what| Err(Hdf5Error::Placement { path: call.path.to_path_buf(), address, len_bytes, what });
        let end = address.checked_add(len_bytes).filter(|&end| end <= i64::MAX as u64 / 2);
        match end {
            None => placement("a claim extends beyond the maximum file size"),
            Some(_) if len_bytes == 0 => placement("a claim is empty"),
            Some(_) if address < self.file.raw_start() => placement("a claim lies in the metadata region"),
            Some(end) if self.file.raw_end().is_some_and(|raw_end| end > raw_end) => {
                placement("a claim lies beyond the end of the raw region")
            }
            Some(_) => Ok(()),
        }
    }

    /// Checks that a call with this result has succeeded and taken the claim.
    fn taken(&mut self, call: Call<'_>, address: u64, len_bytes: u64, result: Result<()>) -> Result<()> {
        let taken = self.file.plan(call)?.take_claim();
        self.file.settle(result)?;
        if taken {
            return Ok(());
        }
        // For example, the chunk already exists, or libhdf5 reused space freed by raw data.
        let path = call.path.to_path_buf();
        Err(Hdf5Error::Placement { path, address, len_bytes, what: "libhdf5 did not take the claimed address" })
    }

    fn not_writable(&self, what: String) -> Hdf5Error {
        not_writable(Call::of_object(self.file.path(), &self.path), what)
    }
}
