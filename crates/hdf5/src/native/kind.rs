//! Kinds of header messages that this reader handles (HDF5 File Format Specification, IV.A.2).

/// Dataspace.
pub(crate) const DATASPACE: u16 = 0x01;
/// Link info: the group stores links in messages or densely.
pub(crate) const LINK_INFO: u16 = 0x02;
/// Datatype of a dataset, or a committed one.
pub(crate) const DATATYPE: u16 = 0x03;
/// Fill value in the form used before HDF5 1.6.
pub(crate) const FILL_OLD: u16 = 0x04;
/// Fill value.
pub(crate) const FILL: u16 = 0x05;
/// Link.
pub(crate) const LINK: u16 = 0x06;
/// External file list.
pub(crate) const EXTERNAL: u16 = 0x07;
/// Data layout.
pub(crate) const LAYOUT: u16 = 0x08;
/// Filter pipeline.
pub(crate) const FILTERS: u16 = 0x0b;
/// Attribute.
pub(crate) const ATTRIBUTE: u16 = 0x0c;
/// Object comment.
pub(crate) const COMMENT: u16 = 0x0d;
/// Shared message table, in the superblock extension.
pub(crate) const SHARED_TABLE: u16 = 0x0f;
/// Continuation of the object header.
pub(crate) const CONTINUATION: u16 = 0x10;
/// Symbol table: the group is stored as a B-tree and a local heap.
pub(crate) const SYMBOL_TABLE: u16 = 0x11;
/// Driver info, in the superblock extension.
pub(crate) const DRIVER_INFO: u16 = 0x14;
/// Attribute info: the object stores attributes densely, or counts them.
pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
/// Metadata cache image, in the superblock extension.
pub(crate) const CACHE_IMAGE: u16 = 0x18;
/// First kind that is unknown to HDF5 2.x.
pub(crate) const FIRST_UNKNOWN: u16 = 0x19;
