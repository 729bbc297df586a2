//! Dimension scales of netCDF that are left out, but along which other datasets lie.
//!
//! A dataset of netCDF has a scale for each axis, without which readers cannot open the file. Leaving out the variable
//! of a dimension therefore leaves the dimension. Invariant: what remains has no values and no attributes of the
//! variable.

use crate::schema::attribute::NO_VARIABLE;
use raddle_hdf5::model::{
    Attribute, Dataset, Dataspace, Datatype, FileTree, FillValue, InlineData, Layout, Object, ObjectIndex, ObjectKind,
    TypeClass,
};
use raddle_hdf5::number::NumberType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Attributes of a scale that remain, apart from its new name. HDF5 and netCDF recognise the scale by them.
const OF_SCALES: [&[u8]; 3] = [b"CLASS", b"REFERENCE_LIST", b"_Netcdf4Dimid"];

/// Returns the scales of netCDF dimensions for which `is_kept` is false, but along which a kept dataset lies.
pub(super) fn needed(tree: &FileTree, is_kept: impl Fn(ObjectIndex) -> bool) -> HashSet<ObjectIndex> {
    let left_out: Vec<(ObjectIndex, &Object)> =
        (0..).zip(&tree.objects).filter(|(index, object)| !is_kept(*index) && is_scale(object)).collect();
    if left_out.is_empty() {
        return HashSet::new();
    }
    let by_address: HashMap<u64, ObjectIndex> = tree.objects.iter().map(|object| object.address).zip(0..).collect();
    let leads_to_kept = |object: &Object| {
        let places = object.attributes.iter().find(|attribute| attribute.name == b"REFERENCE_LIST");
        places.is_some_and(|places| {
            // A reference holds an address relative to the end of the user block.
            let addresses = addresses(places).into_iter().map(|address| address + tree.userblock_len_bytes);
            addresses.filter_map(|address| by_address.get(&address)).any(|&index| is_kept(index))
        })
    };
    left_out.into_iter().filter(|(_, object)| leads_to_kept(object)).map(|(index, _)| index).collect()
}

/// Returns whether a file has unlimited dimensions of netCDF, left out or not.
pub(crate) fn has_unlimited(tree: &FileTree) -> bool {
    let is_unlimited = |object: &Object| match &object.kind {
        ObjectKind::Dataset(dataset) => match &dataset.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims.first() == Some(&u64::MAX),
            _ => false,
        },
        _ => false,
    };
    tree.objects.iter().any(|object| is_scale(object) && is_unlimited(object))
}

/// Returns whether the object is the one-dimensional scale of a netCDF dimension.
fn is_scale(object: &Object) -> bool {
    let ObjectKind::Dataset(dataset) = &object.kind else { return false };
    let has = |name: &[u8]| object.attributes.iter().any(|attribute| attribute.name == name);
    dataset.dataspace.dims().len() == 1 && OF_SCALES.into_iter().all(has)
}

/// Returns the addresses of the datasets in a `REFERENCE_LIST`.
fn addresses(places: &Attribute) -> Vec<u64> {
    let TypeClass::Compound { len_bytes, members } = &*places.datatype.class else { return Vec::new() };
    let dataset = members.iter().find(|member| member.name == b"dataset");
    let (Some(dataset), InlineData::Stored(bytes)) = (dataset, &places.data) else { return Vec::new() };
    let address = |place: &[u8]| Some(u64::from_le_bytes(*place.get(dataset.offset_bytes as usize..)?.first_chunk()?));
    bytes.chunks_exact((*len_bytes as usize).max(1)).filter_map(address).collect()
}

/// Turns the variable of a netCDF dimension into a dimension without a variable.
pub(super) fn without_variable(scale: &Object) -> Object {
    let mut scale = scale.clone();
    let ObjectKind::Dataset(dataset) = &mut scale.kind else { return scale };
    let len = dataset.dataspace.dims().first().copied().unwrap_or(0);
    let class = NumberType::Float { len_bytes: 4, is_big_endian: true }.class();
    **dataset = Dataset {
        dataspace: dataset.dataspace.clone(),
        datatype: private(class),
        layout: match &dataset.layout {
            Layout::Chunked { chunk_shape, .. } => Layout::Chunked {
                chunk_shape: chunk_shape.clone(),
                index: raddle_hdf5::model::ChunkIndex::None,
                partial_chunks_unfiltered: false,
            },
            _ => Layout::Contiguous { address: None, len_bytes: len.saturating_mul(4) },
        },
        fill: FillValue::default(),
        filters: Vec::new(),
    };
    scale.attributes.retain(|attribute| OF_SCALES.contains(&attribute.name.as_slice()));
    let mut name = format!("{NO_VARIABLE}{len:10}").into_bytes();
    name.push(0);
    scale.attributes.push(Attribute {
        name: b"NAME".to_vec(),
        utf8: false,
        creation_order: None,
        datatype: private(TypeClass::FixedString { len_bytes: name.len() as u32, padding: 0, charset: 0 }),
        dataspace: Dataspace::Scalar,
        data: InlineData::Stored(name),
    });
    scale
}

fn private(class: TypeClass) -> Datatype {
    Datatype { class: Arc::new(class), committed: None }
}
