//! Files made by libhdf5 for these tests, small enough to damage at every byte.

use hdf5_metno_sys::h5a::{H5Aclose, H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{H5Dclose, H5Dcreate2};
use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5F_LIBVER_LATEST, H5F_libver_t, H5Fclose, H5Fcreate};
use hdf5_metno_sys::h5g::{H5Gclose, H5Gcreate2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{H5Lcreate_external, H5Lcreate_hard, H5Lcreate_soft};
use hdf5_metno_sys::h5o::{H5O_SHMESG_ALL_FLAG, H5Oclose, H5Oopen};
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::{H5S_UNLIMITED, H5Sclose, H5Screate_simple};
use hdf5_metno_sys::h5t::{H5T_IEEE_F64LE, H5T_STD_I32BE, H5T_STD_I32LE, H5T_STD_U8LE, H5Tclose, H5Tcommit2, H5Tcopy};
use raddle_hdf5::ffi::Library;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{from_ref, null};

/// Formats that libhdf5 may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Earliest,
    Latest,
}

/// Settings of a file to be created.
#[derive(Debug, Clone, Copy)]
pub struct FileSpec {
    pub format: Format,
    pub userblock: u64,
    /// Whether messages are put into the shared message heap where possible.
    pub shared_messages: bool,
}

impl FileSpec {
    pub fn of(format: Format) -> Self {
        Self { format, userblock: 0, shared_messages: false }
    }
}

/// A file under construction, which holds the lock of libhdf5.
pub struct Maker {
    file: hid_t,
    _library: Library,
}

/// Creation order that a group keeps of links and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    ByName,
    Tracked,
}

fn name(name: &str) -> CString {
    CString::new(name).unwrap()
}

fn ok(status: i32) {
    assert!(status >= 0, "libhdf5 call failed");
}

fn id(id: hid_t) -> hid_t {
    assert!(id >= 0, "libhdf5 call failed");
    id
}

// SAFETY of all blocks below: the lock is held by `Maker`, identifiers come from the preceding call and are closed
// once, names are zero-terminated and live through the call, and buffers have the size that the dataspace requires.
impl Maker {
    pub fn create(path: &Path, spec: FileSpec) -> Self {
        let library = Library::lock();
        let path = name(path.to_str().unwrap());
        // SAFETY: see above.
        let file = unsafe {
            let access = id(H5Pcreate(*H5P_CLS_FILE_ACCESS));
            let low = match spec.format {
                Format::Earliest => H5F_libver_t::H5F_LIBVER_EARLIEST,
                Format::Latest => H5F_LIBVER_LATEST,
            };
            ok(H5Pset_libver_bounds(access, low, H5F_LIBVER_LATEST));
            let creation = id(H5Pcreate(*H5P_CLS_FILE_CREATE));
            ok(H5Pset_userblock(creation, spec.userblock));
            if spec.shared_messages {
                ok(H5Pset_shared_mesg_nindexes(creation, 1));
                ok(H5Pset_shared_mesg_index(creation, 0, H5O_SHMESG_ALL_FLAG, 8));
            }
            let file = id(H5Fcreate(path.as_ptr(), H5F_ACC_TRUNC, creation, access));
            ok(H5Pclose(access));
            ok(H5Pclose(creation));
            file
        };
        Self { file, _library: library }
    }

    /// Creates a group; intermediate groups must exist.
    pub fn group(&self, path: &str, order: Order) {
        let path = name(path);
        // SAFETY: see above.
        unsafe {
            let list = id(H5Pcreate(*H5P_CLS_GROUP_CREATE));
            if order == Order::Tracked {
                ok(H5Pset_link_creation_order(list, 3));
                ok(H5Pset_attr_creation_order(list, 3));
            }
            ok(H5Gclose(id(H5Gcreate2(self.file, path.as_ptr(), H5P_DEFAULT, list, H5P_DEFAULT))));
            ok(H5Pclose(list));
        }
    }

    /// Creates a chunked, filtered dataset with a fill value; its chunks are not allocated.
    pub fn dataset(&self, path: &str) {
        let path = name(path);
        // SAFETY: see above.
        unsafe {
            let space = id(H5Screate_simple(2, [10, 4].as_ptr(), [H5S_UNLIMITED, 4].as_ptr()));
            let list = id(H5Pcreate(*H5P_CLS_DATASET_CREATE));
            ok(H5Pset_chunk(list, 2, [5, 4].as_ptr()));
            ok(H5Pset_shuffle(list));
            ok(H5Pset_deflate(list, 6));
            ok(H5Pset_fill_value(list, *H5T_STD_I32LE, from_ref(&-7_i32).cast()));
            let kind = *H5T_STD_I32BE;
            let dataset = H5Dcreate2(self.file, path.as_ptr(), kind, space, H5P_DEFAULT, list, H5P_DEFAULT);
            ok(H5Dclose(id(dataset)));
            ok(H5Pclose(list));
            ok(H5Sclose(space));
        }
    }

    /// Creates a committed datatype at `path`, and an attribute `typed` of that type on `owner`.
    pub fn committed_datatype(&self, path: &str, owner: &str) {
        let path = name(path);
        // SAFETY: see above.
        unsafe {
            let kind = id(H5Tcopy(*H5T_IEEE_F64LE));
            ok(H5Tcommit2(self.file, path.as_ptr(), kind, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            self.write_attribute(owner, "typed", kind, 1, 1.5_f64.to_le_bytes().as_ref());
            ok(H5Tclose(kind));
        }
    }

    /// Creates an attribute of bytes.
    pub fn attribute(&self, owner: &str, attribute: &str, bytes: &[u8]) {
        // SAFETY: see above.
        unsafe { self.write_attribute(owner, attribute, *H5T_STD_U8LE, bytes.len() as u64, bytes) }
    }

    /// Writes an attribute.
    ///
    /// # Safety
    /// `kind` must be a datatype, and `bytes` must hold `count` elements of it.
    unsafe fn write_attribute(&self, owner: &str, attribute: &str, kind: hid_t, count: u64, bytes: &[u8]) {
        let (owner, attribute) = (name(owner), name(attribute));
        // SAFETY: see above.
        unsafe {
            let object = id(H5Oopen(self.file, owner.as_ptr(), H5P_DEFAULT));
            let space = id(H5Screate_simple(1, [count].as_ptr(), null()));
            let created = H5Acreate2(object, attribute.as_ptr(), kind, space, H5P_DEFAULT, H5P_DEFAULT);
            ok(H5Awrite(id(created), kind, bytes.as_ptr().cast()));
            ok(H5Aclose(created));
            ok(H5Sclose(space));
            ok(H5Oclose(object));
        }
    }

    pub fn soft_link(&self, path: &str, target: &str) {
        let (path, target) = (name(path), name(target));
        // SAFETY: see above.
        ok(unsafe { H5Lcreate_soft(target.as_ptr(), self.file, path.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) });
    }

    pub fn external_link(&self, path: &str, file: &str, target: &str) {
        let (path, file, target) = (name(path), name(file), name(target));
        // SAFETY: see above.
        ok(unsafe {
            H5Lcreate_external(file.as_ptr(), target.as_ptr(), self.file, path.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
        });
    }

    pub fn hard_link(&self, path: &str, target: &str) {
        let (path, target) = (name(path), name(target));
        // SAFETY: see above.
        ok(unsafe { H5Lcreate_hard(self.file, target.as_ptr(), self.file, path.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) });
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // SAFETY: the lock is held; the file is closed once.
        unsafe { H5Fclose(self.file) };
    }
}

/// Creates a file of about 10 kB with objects of many kinds.
pub fn make_sampler(path: &Path, spec: FileSpec) {
    let maker = Maker::create(path, spec);
    maker.group("/many", Order::ByName);
    for number in 0..12 {
        maker.group(&format!("/many/g{}", number * 7 % 12), Order::ByName);
    }
    maker.group("/tracked", Order::Tracked);
    maker.soft_link("/tracked/z", "/many/g3");
    maker.external_link("/tracked/a", "other.h5", "/x");
    maker.hard_link("/tracked/loop", "/");
    maker.dataset("/tracked/data");
    maker.committed_datatype("/kind", "/tracked/data");
    for number in 0..10 {
        maker.attribute("/tracked", &format!("a{}", number * 3 % 10), &vec![number; usize::from(number) * 20 + 8]);
    }
    maker.attribute("/many", "small", &[1, 2, 3]);
}
