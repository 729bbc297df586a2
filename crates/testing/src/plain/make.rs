//! Writes a [`FileSpec`]: first all objects, then all values and attributes, so that references find their targets.

use super::numbers;
use super::types::build;
use super::values::{Arena, memory_type, to_memory};
use crate::canonical::Cursor;
use crate::content::escape_bytes;
use crate::spec::{AttributeSpec, DatasetSpec, FileSpec, FilterSpec, Format, LayoutSpec, ObjectSpec, What};
use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::*;
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5l::{H5Lcreate_external, H5Lcreate_hard, H5Lcreate_soft};
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::{H5T_cset_t, H5Tcommit2, H5Topen2};
use hdf5_metno_sys::h5z::H5Z_SO_INT_MINBITS_DEFAULT;
use hdf5_metno_sys::h5z::H5Z_SO_scale_type_t;
use raddle_hdf5::Result;
use raddle_hdf5::ffi::{Call, Handle, Library};
use raddle_hdf5::model::{CreationOrder, Dataspace, TypeClass};
use std::ffi::{c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Writes each spec to a file in `folder` and returns the paths, whose names sort in the same order.
pub fn make_all(folder: &Path, specs: &[FileSpec]) -> Result<Vec<PathBuf>> {
    let path = |number| folder.join(format!("input{number:03}.h5"));
    specs.iter().enumerate().map(|(number, spec)| make(&path(number), spec).map(|()| path(number))).collect()
}

/// Writes the columns of one table, as paths of datasets and their values, to a new file at `path`.
pub fn make_columns(path: &Path, columns: &[(&str, &[f64])]) -> Result<()> {
    let group = columns.first().and_then(|(path, _)| Some(ObjectSpec::group(path.rsplit_once('/')?.0)));
    let datasets = columns.iter().map(|(path, values)| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        DatasetSpec::plain(numbers::f64(), &[values.len() as u64], bytes).chunked(&[16], &[]).at(path)
    });
    make(path, &FileSpec { objects: group.into_iter().chain(datasets).collect(), ..FileSpec::default() })
}

/// Writes `spec` to a new file at `path`.
pub fn make(path: &Path, spec: &FileSpec) -> Result<()> {
    let library = Library::lock();
    let file = create_file(&library, path, spec)?;
    let maker = Maker { library: &library, path, file: &file };
    for object in &spec.objects {
        maker.create(object)?;
    }
    for object in &spec.objects {
        maker.fill(object)?;
    }
    // SAFETY: the lock is held; `into_raw` gives up ownership.
    Call::of_file(path).status("H5Fclose", unsafe { H5Fclose(file.into_raw()) })?;
    Ok(())
}

fn create_file(_library: &Library, path: &Path, spec: &FileSpec) -> Result<Handle> {
    let call = Call::of_file(path);
    let name = call.c_string("H5Fcreate", path.as_os_str().as_bytes())?;
    let (low, high) = match spec.format {
        Format::Earliest => (H5F_libver_t::H5F_LIBVER_EARLIEST, H5F_libver_t::H5F_LIBVER_V18),
        Format::V18 => (H5F_libver_t::H5F_LIBVER_V18, H5F_libver_t::H5F_LIBVER_V18),
        Format::V110 => (H5F_libver_t::H5F_LIBVER_V110, H5F_libver_t::H5F_LIBVER_V110),
        Format::Latest => (H5F_LIBVER_LATEST, H5F_LIBVER_LATEST),
    };
    // SAFETY: the lock is held, lists are open, and `name` outlives the calls.
    unsafe {
        let access = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_ACCESS))?;
        // A process that another test is just starting holds the lock until it runs its program.
        call.status("H5Pset_file_locking", H5Pset_file_locking(access.id(), 0, 1))?;
        call.status("H5Pset_libver_bounds", H5Pset_libver_bounds(access.id(), low, high))?;
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_CREATE))?;
        call.status("H5Pset_userblock", H5Pset_userblock(list.id(), spec.userblock_len_bytes))?;
        let flags = order_flags(spec.root_order);
        call.status("H5Pset_link_creation_order", H5Pset_link_creation_order(list.id(), flags))?;
        call.handle("H5Fcreate", H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, list.id(), access.id()))
    }
}

fn order_flags(order: CreationOrder) -> c_uint {
    let tracked = if order.tracked { H5P_CRT_ORDER_TRACKED } else { 0 };
    let indexed = if order.indexed { H5P_CRT_ORDER_INDEXED } else { 0 };
    tracked | indexed
}

struct Maker<'a> {
    library: &'a Library,
    path: &'a Path,
    file: &'a Handle,
}

impl Maker<'_> {
    fn create(&self, object: &ObjectSpec) -> Result<()> {
        let call = Call::of_object(self.path, &object.path);
        let name = call.c_string("creation", &object.path)?;
        let file = self.file.id();
        // SAFETY (all blocks): the lock is held (`self.library`), the file and all lists are open, and names outlive
        // the calls.
        match &object.what {
            What::Group(_) if object.path == b"/" => {}
            // SAFETY: the lock is held, the file and all lists are open, and names outlive the calls.
            What::Group(order) => unsafe {
                let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_GROUP_CREATE))?;
                let status = H5Pset_link_creation_order(list.id(), order_flags(*order));
                call.status("H5Pset_link_creation_order", status)?;
                let id = H5Gcreate2(file, name.as_ptr(), self.link_list(call, &name)?.id(), list.id(), H5P_DEFAULT);
                drop(call.handle("H5Gcreate2", id)?);
            },
            What::Dataset(spec) => self.create_dataset(call, &name, spec)?,
            // SAFETY: the lock is held, the file and all lists are open, and names outlive the calls.
            What::CommittedType(class) => unsafe {
                let datatype = build(self.library, call, class)?;
                let links = self.link_list(call, &name)?;
                let status = H5Tcommit2(file, name.as_ptr(), datatype.id(), links.id(), H5P_DEFAULT, H5P_DEFAULT);
                call.status("H5Tcommit2", status)?;
            },
            // SAFETY: the lock is held, the file and all lists are open, and names outlive the calls.
            What::HardLink(target) => unsafe {
                let target = call.c_string("H5Lcreate_hard", target)?;
                let links = self.link_list(call, &name)?;
                let status = H5Lcreate_hard(file, target.as_ptr(), file, name.as_ptr(), links.id(), H5P_DEFAULT);
                call.status("H5Lcreate_hard", status)?;
            },
            // SAFETY: the lock is held, the file and all lists are open, and names outlive the calls.
            What::SoftLink(text) => unsafe {
                let text = call.c_string("H5Lcreate_soft", text)?;
                let links = self.link_list(call, &name)?;
                let status = H5Lcreate_soft(text.as_ptr(), file, name.as_ptr(), links.id(), H5P_DEFAULT);
                call.status("H5Lcreate_soft", status)?;
            },
            // SAFETY: the lock is held, the file and all lists are open, and names outlive the calls.
            What::ExternalLink { file: other, path } => unsafe {
                let other = call.c_string("H5Lcreate_external", other)?;
                let path = call.c_string("H5Lcreate_external", path)?;
                let links = self.link_list(call, &name)?;
                let (other, path) = (other.as_ptr(), path.as_ptr());
                let status = H5Lcreate_external(other, path, file, name.as_ptr(), links.id(), H5P_DEFAULT);
                call.status("H5Lcreate_external", status)?;
            },
        }
        Ok(())
    }

    /// Creates a link creation list: names that are not ASCII are marked as UTF-8.
    fn link_list(&self, call: Call<'_>, name: &std::ffi::CStr) -> Result<Handle> {
        // SAFETY: the lock is held; the new list is open.
        unsafe {
            let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_LINK_CREATE))?;
            call.status("H5Pset_char_encoding", H5Pset_char_encoding(list.id(), charset(name.to_bytes())))?;
            Ok(list)
        }
    }

    fn create_dataset(&self, call: Call<'_>, name: &std::ffi::CStr, spec: &DatasetSpec) -> Result<()> {
        let datatype = match &spec.committed {
            None => build(self.library, call, &spec.class)?,
            Some(path) => {
                let path = call.c_string("H5Topen2", path)?;
                // SAFETY: the lock is held, the file is open, and `path` outlives the call.
                unsafe { call.handle("H5Topen2", H5Topen2(self.file.id(), path.as_ptr(), H5P_DEFAULT))? }
            }
        };
        let space = self.space(call, &spec.dataspace)?;
        let list = self.dataset_list(call, spec)?;
        let links = self.link_list(call, name)?;
        // SAFETY: the lock is held, handles are open, and `name` outlives the calls.
        unsafe {
            let (file, name) = (self.file.id(), name.as_ptr());
            let id = H5Dcreate2(file, name, datatype.id(), space.id(), links.id(), list.id(), H5P_DEFAULT);
            drop(call.handle("H5Dcreate2", id)?);
        }
        Ok(())
    }

    fn space(&self, call: Call<'_>, dataspace: &Dataspace) -> Result<Handle> {
        // SAFETY: the lock is held; both arrays have `rank` entries and outlive the call.
        unsafe {
            match dataspace {
                Dataspace::Scalar => call.handle("H5Screate", H5Screate(H5S_class_t::H5S_SCALAR)),
                Dataspace::Null => call.handle("H5Screate", H5Screate(H5S_class_t::H5S_NULL)),
                Dataspace::Simple { dims, max_dims } => {
                    assert_eq!(dims.len(), max_dims.len(), "{}: ranks differ", escape_bytes(call.object));
                    let id = H5Screate_simple(dims.len() as c_int, dims.as_ptr(), max_dims.as_ptr());
                    call.handle("H5Screate_simple", id)
                }
            }
        }
    }

    fn dataset_list(&self, call: Call<'_>, spec: &DatasetSpec) -> Result<Handle> {
        // SAFETY: the lock is held, the list is open, arrays have the lengths of their counts, and the fill value is
        // one element of the type passed with it.
        unsafe {
            let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
            let id = list.id();
            match &spec.layout {
                LayoutSpec::Compact => call.status("H5Pset_layout", H5Pset_layout(id, H5D_layout_t::H5D_COMPACT))?,
                LayoutSpec::Contiguous => {
                    call.status("H5Pset_layout", H5Pset_layout(id, H5D_layout_t::H5D_CONTIGUOUS))?
                }
                LayoutSpec::Chunked(shape) => {
                    call.status("H5Pset_chunk", H5Pset_chunk(id, shape.len() as c_int, shape.as_ptr()))?
                }
            };
            for filter in &spec.filters {
                match filter {
                    FilterSpec::Deflate(level) => call.status("H5Pset_deflate", H5Pset_deflate(id, *level))?,
                    FilterSpec::Shuffle => call.status("H5Pset_shuffle", H5Pset_shuffle(id))?,
                    FilterSpec::Fletcher32 => call.status("H5Pset_fletcher32", H5Pset_fletcher32(id))?,
                    FilterSpec::Nbit => call.status("H5Pset_nbit", H5Pset_nbit(id))?,
                    FilterSpec::ScaleOffset => {
                        let (kind, bits) = (H5Z_SO_scale_type_t::H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
                        call.status("H5Pset_scaleoffset", H5Pset_scaleoffset(id, kind, bits as c_int))?
                    }
                };
            }
            if let Some(value) = &spec.fill {
                let datatype = build(self.library, call, &spec.class)?;
                assert_eq!(value.len() as u64, spec.class.len_bytes(), "a fill value is one element");
                let status = H5Pset_fill_value(id, datatype.id(), value.as_ptr().cast());
                call.status("H5Pset_fill_value", status)?;
            }
            if spec.early_allocation {
                let status = H5Pset_alloc_time(id, H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY);
                call.status("H5Pset_alloc_time", status)?;
            }
            Ok(list)
        }
    }

    /// Writes the values of an object and its attributes.
    fn fill(&self, object: &ObjectSpec) -> Result<()> {
        let call = Call::of_object(self.path, &object.path);
        if let What::Dataset(spec) = &object.what {
            self.write_values(call, spec)?;
        }
        if object.attributes.is_empty() {
            return Ok(());
        }
        let name = call.c_string("H5Oopen", &object.path)?;
        // SAFETY: the lock is held, the file is open, and `name` outlives the call.
        let opened = unsafe { call.handle("H5Oopen", H5Oopen(self.file.id(), name.as_ptr(), H5P_DEFAULT))? };
        object.attributes.iter().try_for_each(|attribute| self.write_attribute(call, &opened, attribute))
    }

    fn write_values(&self, call: Call<'_>, spec: &DatasetSpec) -> Result<()> {
        let rows = spec.dataspace.dims().first().copied();
        let written_rows = rows.map_or(u64::MAX, |rows| rows.min(spec.written_rows));
        let elements = spec.dataspace.element_count().unwrap_or(0);
        let elements = if spec.written_rows == 0 { 0 } else { elements };
        let elements = match rows {
            Some(rows) if rows > 0 => elements / rows * written_rows,
            _ => elements,
        };
        if elements == 0 {
            return Ok(());
        }
        let (memory, datatype, _arena) = self.memory_of(call, &spec.class, elements, &spec.values)?;
        let name = call.c_string("H5Dopen2", call.object)?;
        // SAFETY: the lock is held, handles are open, and `memory` holds `elements` elements of `datatype`, the number
        // selected.
        unsafe {
            let dataset = call.handle("H5Dopen2", H5Dopen2(self.file.id(), name.as_ptr(), H5P_DEFAULT))?;
            let file_space = call.handle("H5Dget_space", H5Dget_space(dataset.id()))?;
            let memory_space = match rows {
                None => self.space(call, &Dataspace::Scalar)?,
                Some(_) => {
                    let mut size = spec.dataspace.dims().to_vec();
                    size[0] = written_rows;
                    let start = vec![0; size.len()];
                    let (none, set) = (std::ptr::null(), H5S_seloper_t::H5S_SELECT_SET);
                    let status = H5Sselect_hyperslab(file_space.id(), set, start.as_ptr(), none, size.as_ptr(), none);
                    call.status("H5Sselect_hyperslab", status)?;
                    self.space(call, &Dataspace::Simple { max_dims: size.clone(), dims: size })?
                }
            };
            let (memory_space, file_space) = (memory_space.id(), file_space.id());
            let values = memory.as_ptr().cast();
            let status = H5Dwrite(dataset.id(), datatype.id(), memory_space, file_space, H5P_DEFAULT, values);
            call.status("H5Dwrite", status)?;
        }
        Ok(())
    }

    fn write_attribute(&self, call: Call<'_>, object: &Handle, spec: &AttributeSpec) -> Result<()> {
        let name = call.c_string("H5Acreate2", &spec.name)?;
        let space = self.space(call, &spec.dataspace)?;
        let elements = spec.dataspace.element_count().unwrap_or(0);
        let (memory, datatype, _arena) = self.memory_of(call, &spec.class, elements, &spec.values)?;
        let stored = build(self.library, call, &spec.class)?;
        // SAFETY: the lock is held, handles are open, `memory` holds all elements of the attribute.
        unsafe {
            let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_ATTRIBUTE_CREATE))?;
            call.status("H5Pset_char_encoding", H5Pset_char_encoding(list.id(), charset(&spec.name)))?;
            let (owner, stored) = (object.id(), stored.id());
            let id = H5Acreate2(owner, name.as_ptr(), stored, space.id(), list.id(), H5P_DEFAULT);
            let attribute = call.handle("H5Acreate2", id)?;
            if elements > 0 {
                call.status("H5Awrite", H5Awrite(attribute.id(), datatype.id(), memory.as_ptr().cast()))?;
            }
        }
        Ok(())
    }

    /// Converts the first `elements` of the canonical `values` to libhdf5's memory form.
    fn memory_of(
        &self,
        call: Call<'_>,
        class: &TypeClass,
        elements: u64,
        values: &[u8],
    ) -> Result<(Vec<u8>, Handle, Arena)> {
        let (form, datatype) = memory_type(self.library, call, class)?;
        let (mut from, mut arena, mut memory) = (Cursor::new(values), Arena::default(), Vec::new());
        for _ in 0..elements {
            to_memory(self.library, call, self.file, &form, &mut from, &mut arena, &mut memory)?;
        }
        Ok((memory, datatype, arena))
    }
}

fn charset(name: &[u8]) -> H5T_cset_t {
    if name.is_ascii() { H5T_cset_t::H5T_CSET_ASCII } else { H5T_cset_t::H5T_CSET_UTF8 }
}
