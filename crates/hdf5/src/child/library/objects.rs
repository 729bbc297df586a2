//! Walk over a file's objects, and their metadata.
//!
//! The walk is breadth-first, identifies objects by address and does not recurse, so that cycles and depth do no harm.
//! Values of datasets are read elsewhere.
//!
//! Invariant: an object that libhdf5 cannot read is in the result with the reason, and does not end the walk.

use super::links::{FoundLink, FoundTarget};
use super::{OpenFile, dataspaces, extent, links, properties, storage, types, values};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::model::{Attribute, CreationOrder, Dataset, Group, Link, LinkTarget, Object, ObjectIndex, ObjectKind};
use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5a::{H5A_info_t, H5Aget_info, H5Aget_space, H5Aget_type, H5Aiterate2, H5Aopen};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type, hid_t};
use hdf5_metno_sys::h5o::H5Oget_comment;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// Objects in the order of discovery.
pub(super) struct ObjectWalk {
    found: Vec<LinkedObject>,
    index_of: HashMap<u64, ObjectIndex>,
}

/// An object reached by a link.
struct LinkedObject {
    address: u64,
    path: Vec<u8>,
    /// Links of a group, `None` for other objects, or the reason why the group cannot be read.
    group: Result<Option<FoundGroup>, String>,
}

struct FoundGroup {
    links: Vec<FoundLink>,
    order: CreationOrder,
}

impl ObjectWalk {
    /// Walks from the objects at `roots`, which come first in the result.
    pub(super) fn from(file: &OpenFile, roots: &[u64]) -> Self {
        let mut walk = Self { found: Vec::new(), index_of: HashMap::new() };
        for &root in roots {
            let path = if root == file.root_address { b"/".to_vec() } else { Vec::new() };
            // A root requested twice appears twice, as the caller expects.
            walk.found.push(LinkedObject { address: root, path, group: Ok(None) });
            walk.index_of.entry(root).or_insert(walk.found.len() as ObjectIndex - 1);
        }
        let mut next = 0;
        while next < walk.found.len() {
            let found = &walk.found[next];
            let group = look(file, found).map_err(|error| error.to_string());
            if let Ok(Some(group)) = &group {
                let parent = found.path.clone();
                walk.discover(&parent, group);
            }
            walk.found[next].group = group;
            next += 1;
        }
        walk
    }

    fn discover(&mut self, parent: &[u8], group: &FoundGroup) {
        for link in &group.links {
            if let FoundTarget::Hard(address) = link.target
                && !self.index_of.contains_key(&address)
            {
                let path = join(parent, &link.name);
                self.index_of.insert(address, self.found.len() as ObjectIndex);
                self.found.push(LinkedObject { address, path, group: Ok(None) });
            }
        }
    }

    /// Returns the path under which each object was discovered.
    pub(super) fn paths(&self) -> HashMap<u64, Vec<u8>> {
        self.found.iter().rev().map(|found| (found.address, found.path.clone())).collect()
    }
}

/// Returns the path of a member of the group at `parent`.
fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let parent = parent.strip_suffix(b"/").unwrap_or(parent);
    [parent, b"/", name].concat()
}

/// Opens an object to find whether it is a group, and the targets of its links.
fn look(file: &OpenFile, found: &LinkedObject) -> Result<Option<FoundGroup>> {
    let call = Call::of_object(&file.path, &found.path);
    let object = file.open_at(found.address, call)?;
    // SAFETY: the identifier is open.
    if unsafe { H5Iget_type(object.id()) } != H5I_type_t::H5I_GROUP {
        return Ok(None);
    }
    let order = links::creation_order(&object, call)?;
    let links = links::of_group(file, &object, order.tracked, call)?;
    Ok(Some(FoundGroup { links, order }))
}

/// Reads the complete metadata of the objects of a walk.
pub(super) fn read(file: &OpenFile, walk: &ObjectWalk) -> Result<Vec<Object>> {
    let read_one = |found: &LinkedObject| {
        let read = match &found.group {
            Ok(group) => read_object(file, walk, found, group.as_ref()).map_err(|error| {
                let reason = error.to_string();
                let foreign = match error {
                    Hdf5Error::ForeignFile { foreign, .. } => Some(foreign),
                    _ => None,
                };
                (reason, foreign)
            }),
            Err(reason) => Err((reason.clone(), None)),
        };
        read.unwrap_or_else(|(reason, foreign)| Object {
            address: found.address,
            kind: ObjectKind::Unreadable { reason, unsupported: false, foreign },
            attributes: Vec::new(),
            attribute_order: CreationOrder::default(),
            comment: None,
        })
    };
    Ok(walk.found.iter().map(read_one).collect())
}

fn read_object(file: &OpenFile, walk: &ObjectWalk, found: &LinkedObject, group: Option<&FoundGroup>) -> Result<Object> {
    let call = Call::of_object(&file.path, &found.path);
    let object = file.open_at(found.address, call)?;
    let list = properties::creation_list(&object, call)?;
    // SAFETY: the identifier is open.
    let kind = match (group, unsafe { H5Iget_type(object.id()) }) {
        (Some(group), _) => ObjectKind::Group(Group {
            links: group.links.iter().map(|link| link_of(walk, link)).collect(),
            link_order: group.order,
        }),
        (None, H5I_type_t::H5I_DATATYPE) => ObjectKind::CommittedDatatype(types::of_committed(file, &object, call)?),
        (None, _) => ObjectKind::Dataset(Box::new(read_dataset(file, &object, &list, call)?)),
    };
    let attribute_order = properties::attribute_order(&list, call)?;
    Ok(Object {
        address: found.address,
        kind,
        attributes: attributes(file, &object, attribute_order.tracked, call)?,
        attribute_order,
        comment: comment(&object, call)?,
    })
}

fn link_of(walk: &ObjectWalk, link: &FoundLink) -> Link {
    let target = match &link.target {
        FoundTarget::Hard(address) => LinkTarget::Hard(walk.index_of[address]),
        FoundTarget::Soft(path) => LinkTarget::Soft(path.clone()),
        FoundTarget::External { file, path } => LinkTarget::External { file: file.clone(), path: path.clone() },
        FoundTarget::UserDefined { class, data } => LinkTarget::UserDefined { class: *class, data: data.clone() },
    };
    Link { name: link.name.clone(), utf8: link.utf8, creation_order: link.creation_order, target }
}

fn read_dataset(file: &OpenFile, dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Dataset> {
    let datatype = types::of_dataset(file, dataset, call)?;
    Ok(Dataset {
        dataspace: extent::of_dataset(file, dataset, list, call)?,
        layout: storage::layout(file, dataset, list, call)?,
        fill: storage::fill_value(file, dataset, list, &datatype, call)?,
        filters: properties::filters(list, call)?,
        datatype: datatype.stored,
    })
}

/// `H5A_info_t`, with the character set as a number.
#[repr(C)]
#[derive(Default)]
struct AttributeInfo {
    order_valid: bool,
    order: u32,
    charset: c_int,
    data_len_bytes: u64,
}

const _: () = assert!(size_of::<AttributeInfo>() == size_of::<H5A_info_t>());

fn attributes(file: &OpenFile, object: &Handle, tracked: bool, call: Call<'_>) -> Result<Vec<Attribute>> {
    unsafe extern "C" fn collect(_: hid_t, name: *const c_char, _: *const H5A_info_t, out: *mut c_void) -> herr_t {
        // SAFETY: `out` is the list of our caller; libhdf5 passes a terminated name.
        unsafe { (*out.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned()) };
        0
    }
    let order = if tracked { H5_index_t::H5_INDEX_CRT_ORDER } else { H5_index_t::H5_INDEX_NAME };
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: an object is open; the callback writes through `names`, which outlives the call.
    let status = unsafe {
        let increasing = H5_iter_order_t::H5_ITER_INC;
        H5Aiterate2(object.id(), order, increasing, ptr::null_mut(), Some(collect), (&raw mut names).cast())
    };
    call.status("H5Aiterate", status)?;
    names.into_iter().map(|name| attribute(file, object, name, tracked, call)).collect()
}

fn attribute(file: &OpenFile, object: &Handle, name: CString, tracked: bool, call: Call<'_>) -> Result<Attribute> {
    // SAFETY: an object is open, the name is terminated; we own the new identifier.
    let attribute = unsafe { call.handle("H5Aopen", H5Aopen(object.id(), name.as_ptr(), H5P_DEFAULT)) }?;
    let mut info = AttributeInfo::default();
    // SAFETY: laid out as `H5A_info_t`; it outlives the call.
    call.status("H5Aget_info", unsafe { H5Aget_info(attribute.id(), (&raw mut info).cast()) })?;
    // SAFETY: the attribute is open; we own the new identifiers.
    let (datatype, space) = unsafe {
        (
            call.handle("H5Aget_type", H5Aget_type(attribute.id()))?,
            call.handle("H5Aget_space", H5Aget_space(attribute.id()))?,
        )
    };
    let datatype = types::of_handle(file, datatype, call)?;
    let dataspace = dataspaces::extent(file, &space, call)?;
    Ok(Attribute {
        name: name.into_bytes(),
        utf8: info.charset == 1,
        // libhdf5 numbers attributes in dense storage even if the file stores no numbers.
        creation_order: (tracked && info.order_valid).then_some(info.order),
        data: values::of_attribute(file, &attribute, &dataspace, &datatype, call)?,
        dataspace,
        datatype: datatype.stored,
    })
}

fn comment(object: &Handle, call: Call<'_>) -> Result<Option<Vec<u8>>> {
    // SAFETY: an object is open; without a buffer the call returns only the length.
    let len = call.count("H5Oget_comment", unsafe { H5Oget_comment(object.id(), ptr::null_mut(), 0) })?;
    if len == 0 {
        return Ok(None);
    }
    let mut text = vec![0_u8; len + 1];
    // SAFETY: the buffer has room for the comment and its terminator.
    let status = unsafe { H5Oget_comment(object.id(), text.as_mut_ptr().cast(), text.len()) };
    call.count("H5Oget_comment", status)?;
    text.truncate(len);
    Ok(Some(text))
}
