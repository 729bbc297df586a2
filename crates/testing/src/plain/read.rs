//! Reads the [`Content`] of a file, object by object, with everything converted to canonical bytes.

use super::types::describe;
use super::values::{from_memory, memory_type};
use crate::content::{AttributeContent, Attributes, Content, DatasetContent, Node, Path as ObjectPath, normal_form};
use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5a::{H5Aget_name, H5Aget_space, H5Aget_type, H5Aopen_by_idx, H5Aread};
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
use hdf5_metno_sys::h5g::{H5Gget_create_plist, H5Gopen2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::*;
use hdf5_metno_sys::h5o::{
    H5O_INFO_BASIC, H5O_INFO_NUM_ATTRS, H5O_info2_t, H5O_token_t, H5O_type_t, H5Oget_info3, H5Oopen,
};
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::{H5Tcommitted, H5Treclaim};
use raddle_hdf5::ffi::{Call, Handle, Library};
use raddle_hdf5::model::{Dataspace, TypeClass};
use raddle_hdf5::{Hdf5Error, Result};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reads everything in the file at `path`.
pub fn read(path: &Path) -> Result<Content> {
    let library = Library::lock();
    let call = Call::of_file(path);
    let name = call.c_string("H5Fopen", path.as_os_str().as_bytes())?;
    // SAFETY: the lock is held and `name` outlives the call.
    let file = unsafe { call.handle("H5Fopen", H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT))? };
    let mut reader =
        Reader { library: &library, path, file: &file, first_paths: BTreeMap::new(), content: Content::default() };
    reader.walk()?;
    reader.name_committed_types();
    Ok(reader.content)
}

struct Reader<'a> {
    library: &'a Library,
    path: &'a Path,
    file: &'a Handle,
    /// First path of each visited object, indexed by its token.
    first_paths: BTreeMap<[u8; 16], ObjectPath>,
    content: Content,
}

/// A link as reported by the iteration.
struct Link {
    name: Vec<u8>,
    kind: LinkKind,
}

/// Link classes as numbers: user-defined ones (64 and more) have no name in the bindings' enum.
type LinkKind = c_int;
const HARD: LinkKind = H5L_type_t::H5L_TYPE_HARD as LinkKind;
const SOFT: LinkKind = H5L_type_t::H5L_TYPE_SOFT as LinkKind;
const EXTERNAL: LinkKind = H5L_type_t::H5L_TYPE_EXTERNAL as LinkKind;

/// # Safety
/// `info` must point to link information that libhdf5 has filled in.
unsafe fn link_kind(info: *const H5L_info2_t) -> LinkKind {
    // SAFETY: the class is an int and the first field; read as a number, since the enum does not name all classes.
    unsafe { info.cast::<c_int>().read() }
}

/// Prefix of tokens that stand for committed types, whose paths are known only after the walk.
const TOKEN_MARK: u8 = 0;

impl Reader<'_> {
    /// Visits links by name, depth first, with an explicit stack: files may be nested deeper than the thread's stack
    /// allows.
    fn walk(&mut self) -> Result<()> {
        let mut pending = vec![(b"/".to_vec(), HARD)];
        while let Some((path, kind)) = pending.pop() {
            if kind == HARD {
                for link in self.visit_object(&path)?.into_iter().rev() {
                    let parent = if path == b"/" { &[][..] } else { &path };
                    pending.push(([parent, b"/", &link.name].concat(), link.kind));
                }
            } else {
                let node = self.read_link(&path)?;
                self.content.nodes.insert(path, node);
            }
        }
        Ok(())
    }

    /// Reads the object at `path` unless it was visited before; returns the links if it is a group.
    fn visit_object(&mut self, path: &ObjectPath) -> Result<Vec<Link>> {
        let call = Call::of_object(self.path, path);
        let name = call.c_string("H5Oopen", path)?;
        // SAFETY: the lock is held, the file is open, and `name` outlives the call.
        let object = unsafe { call.handle("H5Oopen", H5Oopen(self.file.id(), name.as_ptr(), H5P_DEFAULT))? };
        let info = object_info(call, &object)?;
        if let Some(first) = self.first_paths.get(&token_of(&info.token)) {
            self.content.nodes.insert(path.clone(), Node::Alias(first.clone()));
            return Ok(Vec::new());
        }
        self.first_paths.insert(token_of(&info.token), path.clone());
        let attributes = self.read_attributes(call, &object, info.num_attrs)?;
        let mut links = Vec::new();
        let node = match info.type_ {
            H5O_type_t::H5O_TYPE_GROUP => {
                links = self.links(call, &object, H5_index_t::H5_INDEX_NAME)?;
                let creation_order = self.creation_order(call, path, &object)?;
                Node::Group { attributes, creation_order }
            }
            H5O_type_t::H5O_TYPE_DATASET => Node::Dataset(Box::new(self.read_dataset(call, &object, attributes)?)),
            H5O_type_t::H5O_TYPE_NAMED_DATATYPE => {
                Node::CommittedType { class: normal_form(&describe(self.library, call, &object)?), attributes }
            }
            other => return Err(unsupported(call, format!("object type {other:?}"))),
        };
        self.content.nodes.insert(path.clone(), node);
        Ok(links)
    }

    fn links(&self, call: Call<'_>, group: &Handle, index: H5_index_t) -> Result<Vec<Link>> {
        unsafe extern "C" fn collect(
            _: hid_t,
            name: *const c_char,
            info: *const H5L_info2_t,
            out: *mut c_void,
        ) -> herr_t {
            // SAFETY: libhdf5 passes pointers that are valid during the call; `out` is the vector of our caller.
            unsafe {
                let links = &mut *out.cast::<Vec<Link>>();
                links.push(Link { name: CStr::from_ptr(name).to_bytes().to_vec(), kind: link_kind(info) });
            }
            0
        }
        let mut links: Vec<Link> = Vec::new();
        // SAFETY: the lock is held, the group is open; the callback writes only to `links`.
        call.status("H5Literate2", unsafe {
            let (order, out) = (H5_iter_order_t::H5_ITER_INC, (&raw mut links).cast());
            H5Literate2(group.id(), index, order, std::ptr::null_mut(), Some(collect), out)
        })?;
        Ok(links)
    }

    fn creation_order(&self, call: Call<'_>, path: &[u8], group: &Handle) -> Result<Option<Vec<Vec<u8>>>> {
        let name = call.c_string("H5Gopen2", path)?;
        let mut flags: c_uint = 0;
        // SAFETY: the lock is held, handles are open, the out-pointer is to a local.
        unsafe {
            let opened = call.handle("H5Gopen2", H5Gopen2(self.file.id(), name.as_ptr(), H5P_DEFAULT))?;
            let list = call.handle("H5Gget_create_plist", H5Gget_create_plist(opened.id()))?;
            let status = H5Pget_link_creation_order(list.id(), &raw mut flags);
            call.status("H5Pget_link_creation_order", status)?;
        }
        if flags & H5P_CRT_ORDER_TRACKED == 0 {
            return Ok(None);
        }
        let links = self.links(call, group, H5_index_t::H5_INDEX_CRT_ORDER)?;
        Ok(Some(links.into_iter().map(|link| link.name).collect()))
    }

    fn read_link(&self, path: &[u8]) -> Result<Node> {
        let call = Call::of_object(self.path, path);
        let name = call.c_string("H5Lget_info2", path)?;
        // SAFETY: the lock is held, the file is open, buffers are as long as the link's value.
        unsafe {
            let mut info = MaybeUninit::<H5L_info2_t>::zeroed();
            call.status("H5Lget_info2", H5Lget_info2(self.file.id(), name.as_ptr(), info.as_mut_ptr(), H5P_DEFAULT))?;
            let kind = link_kind(info.as_ptr());
            if kind != SOFT && kind != EXTERNAL {
                return Ok(Node::UserLink { class: kind as u8 });
            }
            let mut value = vec![0_u8; *info.assume_init_mut().u.val_size()];
            let status = H5Lget_val(self.file.id(), name.as_ptr(), value.as_mut_ptr().cast(), value.len(), H5P_DEFAULT);
            call.status("H5Lget_val", status)?;
            if kind == SOFT {
                let text = CStr::from_bytes_until_nul(&value).map_or(&value[..], CStr::to_bytes);
                return Ok(Node::SoftLink(text.to_vec()));
            }
            let (mut flags, mut file, mut object) = (0, std::ptr::null(), std::ptr::null());
            let bytes = value.as_ptr().cast();
            let status = H5Lunpack_elink_val(bytes, value.len(), &raw mut flags, &raw mut file, &raw mut object);
            call.status("H5Lunpack_elink_val", status)?;
            let [file, path] = [file, object].map(|text| CStr::from_ptr(text).to_bytes().to_vec());
            Ok(Node::ExternalLink { file, path })
        }
    }

    fn read_dataset(&self, call: Call<'_>, dataset: &Handle, attributes: Attributes) -> Result<DatasetContent> {
        let id = dataset.id();
        // SAFETY: the lock is held, handles are open.
        let (datatype, space, list) = unsafe {
            let datatype = call.handle("H5Dget_type", H5Dget_type(id))?;
            let space = call.handle("H5Dget_space", H5Dget_space(id))?;
            (datatype, space, call.handle("H5Dget_create_plist", H5Dget_create_plist(id))?)
        };
        let class = describe(self.library, call, &datatype)?;
        let dataspace = extent(call, &space)?;
        let committed = committed_token(call, &datatype)?.map(|token| [&[TOKEN_MARK][..], &token].concat());
        let values = self.read_values(call, dataset, &class, &dataspace, &space, &|memory_type, buffer| {
            // SAFETY: the lock is held; the buffer holds all elements of the memory type.
            let status =
                unsafe { H5Dread(id, memory_type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.as_mut_ptr().cast()) };
            call.status("H5Dread", status).map(|_| ())
        })?;
        let fill = self.read_fill(call, &list, &class, &datatype)?;
        let class = normal_form(&class);
        Ok(DatasetContent { class, committed, dataspace, values, fill, attributes })
    }

    fn read_fill(
        &self,
        call: Call<'_>,
        list: &Handle,
        class: &TypeClass,
        datatype: &Handle,
    ) -> Result<Option<Vec<u8>>> {
        let mut state = H5D_fill_value_t::H5D_FILL_VALUE_UNDEFINED;
        // SAFETY: the lock is held, the list is open, the out-pointer is to a local.
        unsafe { call.status("H5Pfill_value_defined", H5Pfill_value_defined(list.id(), &raw mut state))? };
        if state != H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED || class.is_file_local() {
            return Ok(None);
        }
        let mut value = vec![0_u8; class.len_bytes() as usize];
        // SAFETY: the lock is held, the buffer holds an element of a type without allocations.
        unsafe {
            let status = H5Pget_fill_value(list.id(), datatype.id(), value.as_mut_ptr().cast());
            call.status("H5Pget_fill_value", status)?;
        }
        Ok(Some(value))
    }

    fn read_attributes(&self, call: Call<'_>, object: &Handle, count: u64) -> Result<Attributes> {
        let mut attributes = Attributes::new();
        for number in 0..count {
            // SAFETY: the lock is held, handles are open, `number` is below the count; the name's buffer is as long as
            // libhdf5 requires, with the terminating zero.
            let (attribute, name, datatype, space) = unsafe {
                let (by_name, order) = (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_INC);
                let id = H5Aopen_by_idx(object.id(), c".".as_ptr(), by_name, order, number, H5P_DEFAULT, H5P_DEFAULT);
                let attribute = call.handle("H5Aopen_by_idx", id)?;
                let length = call.count("H5Aget_name", H5Aget_name(attribute.id(), 0, std::ptr::null_mut()))?;
                let mut name = vec![0_u8; length + 1];
                let length = H5Aget_name(attribute.id(), name.len(), name.as_mut_ptr().cast());
                name.truncate(call.count("H5Aget_name", length)?);
                let datatype = call.handle("H5Aget_type", H5Aget_type(attribute.id()))?;
                let space = call.handle("H5Aget_space", H5Aget_space(attribute.id()))?;
                (attribute, name, datatype, space)
            };
            let class = describe(self.library, call, &datatype)?;
            let dataspace = extent(call, &space)?;
            let values = self.read_values(call, object, &class, &dataspace, &space, &|memory_type, buffer| {
                // SAFETY: the lock is held; the buffer holds all elements of the memory type.
                let status = unsafe { H5Aread(attribute.id(), memory_type.id(), buffer.as_mut_ptr().cast()) };
                call.status("H5Aread", status).map(|_| ())
            })?;
            attributes.insert(name, AttributeContent { class: normal_form(&class), dataspace, values });
        }
        Ok(attributes)
    }

    /// Returns all elements in canonical bytes; `fetch` fills a buffer with their memory form.
    fn read_values(
        &self,
        call: Call<'_>,
        object: &Handle,
        class: &TypeClass,
        dataspace: &Dataspace,
        space: &Handle,
        fetch: &dyn Fn(&Handle, &mut [u8]) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let elements = dataspace.element_count().unwrap_or(0) as usize;
        if elements == 0 {
            return Ok(Vec::new());
        }
        let (form, memory_type) = memory_type(self.library, call, class)?;
        let len_bytes = form.len_bytes();
        let mut memory = vec![0_u8; elements * len_bytes];
        fetch(&memory_type, &mut memory)?;
        let mut values = Vec::new();
        for element in memory.chunks_exact(len_bytes) {
            // SAFETY: `fetch` read the elements, and nothing is reclaimed before the loop ends.
            unsafe { from_memory(self.library, call, object, &form, element, &mut values)? };
        }
        if form.has_allocations() {
            // SAFETY: the lock is held; the buffer still holds what libhdf5 allocated for these elements.
            let status = unsafe { H5Treclaim(memory_type.id(), space.id(), H5P_DEFAULT, memory.as_mut_ptr().cast()) };
            call.status("H5Treclaim", status)?;
        }
        Ok(values)
    }

    /// Replaces the tokens of committed types by paths.
    fn name_committed_types(&mut self) {
        for node in self.content.nodes.values_mut() {
            if let Node::Dataset(dataset) = node
                && let Some(marked) = &mut dataset.committed
                && let Some((&TOKEN_MARK, token)) = marked.split_first()
            {
                let known = <[u8; 16]>::try_from(token).ok().and_then(|token| self.first_paths.get(&token));
                // A committed type without links has no path.
                dataset.committed = known.cloned();
            }
        }
    }
}

fn unsupported(call: Call<'_>, what: String) -> Hdf5Error {
    Hdf5Error::Unsupported { path: call.path.to_path_buf(), address: 0, what }
}

fn token_of(token: &H5O_token_t) -> [u8; 16] {
    const { assert!(size_of::<H5O_token_t>() == 16) };
    // SAFETY: the token is 16 plain bytes, which the bindings keep private.
    unsafe { std::ptr::from_ref(token).cast::<[u8; 16]>().read() }
}

fn object_info(call: Call<'_>, object: &Handle) -> Result<H5O_info2_t> {
    // SAFETY: called under the reader's lock with an open object; the struct is plain data that libhdf5 fills.
    unsafe {
        let mut info: H5O_info2_t = std::mem::zeroed();
        let status = H5Oget_info3(object.id(), &raw mut info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS);
        call.status("H5Oget_info3", status)?;
        Ok(info)
    }
}

/// Returns the token of the committed type used by a dataset's type.
fn committed_token(call: Call<'_>, datatype: &Handle) -> Result<Option<[u8; 16]>> {
    // SAFETY: called under the reader's lock with an open datatype.
    if unsafe { call.status("H5Tcommitted", H5Tcommitted(datatype.id()))? } == 0 {
        return Ok(None);
    }
    Ok(Some(token_of(&object_info(call, datatype)?.token)))
}

fn extent(call: Call<'_>, space: &Handle) -> Result<Dataspace> {
    // SAFETY: called under the reader's lock with an open dataspace; both arrays hold the rank.
    unsafe {
        Ok(match H5Sget_simple_extent_type(space.id()) {
            H5S_class_t::H5S_SCALAR => Dataspace::Scalar,
            H5S_class_t::H5S_NULL => Dataspace::Null,
            _ => {
                let rank: c_int = call.status("H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims(space.id()))?;
                let (mut dims, mut max_dims) = (vec![0; rank as usize], vec![0; rank as usize]);
                let status = H5Sget_simple_extent_dims(space.id(), dims.as_mut_ptr(), max_dims.as_mut_ptr());
                call.status("H5Sget_simple_extent_dims", status)?;
                Dataspace::Simple { dims, max_dims }
            }
        })
    }
}
