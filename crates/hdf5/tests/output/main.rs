//! Outputs written through the planning driver, read back with libhdf5's default driver.

mod bounds;
mod chunks;
mod objects;
mod prediction;
mod readback;
mod tree;
mod types;

use raddle_hdf5::model::{BitRange, ByteOrder, CreationOrder, Dataspace, FillValue, TypeClass};
use raddle_hdf5::write::{DatasetSpec, OutputLayout, TypeRef};
use std::sync::Arc;

/// No creation order.
pub const UNORDERED: CreationOrder = CreationOrder { tracked: false, indexed: false };

/// Returns a full-range little-endian integer.
pub fn integer(len_bytes: u32, signed: bool) -> Arc<TypeClass> {
    Arc::new(TypeClass::Integer {
        len_bytes,
        order: ByteOrder::Little,
        signed,
        bits: BitRange { offset: 0, count: len_bytes * 8 },
        padding: (0, 0),
    })
}

/// Returns the library's default: zeros, not written.
pub fn default_fill() -> FillValue {
    FillValue { value: None, user_defined: false, undefined: false, allocation_time: 3, write_time: 2 }
}

/// Returns a dataset without filters and attributes.
pub fn spec(class: Arc<TypeClass>, dims: &[u64], max_dims: &[u64], layout: OutputLayout) -> DatasetSpec {
    DatasetSpec {
        datatype: TypeRef::Own(class),
        dataspace: Dataspace::Simple { dims: dims.to_vec(), max_dims: max_dims.to_vec() },
        layout,
        filters: Vec::new(),
        fill: default_fill(),
        attribute_order: UNORDERED,
        has_attributes: false,
    }
}
