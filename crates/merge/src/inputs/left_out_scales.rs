//! Dimension scales of netCDF that are left out, but along which other datasets lie.
//!
//! A netCDF dataset has a scale for each axis, and readers cannot open a file in which one is missing. If the
//! variable of a dimension is left out, the dimension therefore remains. An unlimited dimension is as long as its
//! longest dataset. Because that dataset may be left out, too, a dimension without a variable gets its length.
//! Invariant: what remains has no values and no attributes of the variable.

use crate::conventions::ConventionOptions;
use crate::schema::attribute::{NO_VARIABLE, text_without_variable};
use crate::schema::last_name;
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
        let places = object.attribute(b"REFERENCE_LIST");
        places.is_some_and(|places| {
            let of_places = places_in(tree, places).into_iter().filter_map(|(address, _)| by_address.get(&address));
            of_places.copied().any(&is_kept)
        })
    };
    left_out.into_iter().filter(|(_, object)| leads_to_kept(object)).map(|(index, _)| index).collect()
}

/// Returns the length of each unlimited netCDF dimension that is or becomes one without a variable, if a dataset along
/// it is longer than its scale and left out.
pub(super) fn lens(
    tree: &FileTree,
    is_kept: impl Fn(ObjectIndex) -> bool,
    becomes_dimension: impl Fn(ObjectIndex) -> bool,
) -> HashMap<ObjectIndex, u64> {
    let is_dimension = |index: ObjectIndex, object: &Object| {
        becomes_dimension(index) || is_kept(index) && is_scale(object) && names_no_variable(object)
    };
    let scales: Vec<(ObjectIndex, &Object)> = (0..)
        .zip(&tree.objects)
        .filter(|(index, object)| is_unlimited(object) && is_dimension(*index, object))
        .collect();
    if scales.is_empty() {
        return HashMap::new();
    }
    let by_address: HashMap<u64, ObjectIndex> = tree.objects.iter().map(|object| object.address).zip(0..).collect();
    let mut lens = HashMap::new();
    for (scale, object) in scales {
        let own_len = dims(object).first().copied().unwrap_or(0);
        let Some(list) = object.attribute(b"REFERENCE_LIST") else { continue };
        let len_of = |(address, axis): (u64, usize)| {
            let index = *by_address.get(&address)?;
            dims(&tree.objects[index as usize]).get(axis).copied().filter(|_| !is_kept(index))
        };
        let longest = places_in(tree, list).into_iter().filter_map(len_of).max().unwrap_or(0);
        if longest > own_len {
            lens.insert(scale, longest);
        }
    }
    lens
}

/// Returns whether a file has dimensions along which files are concatenated, left out or not: those that `options` name,
/// or else unlimited ones.
pub(crate) fn has_records(tree: &FileTree, options: &ConventionOptions) -> bool {
    let mut scales = tree.objects.iter().filter(|object| is_scale(object));
    if options.dim.is_none() {
        return scales.any(is_unlimited);
    }
    let known: Vec<&[u8]> = scales.filter_map(name_of).collect();
    let exists = |name: &str| known.contains(&last_name(name.as_bytes()));
    options.dims(exists).into_iter().all(exists)
}

/// Returns whether an object is a dataset with an unlimited first axis.
fn is_unlimited(object: &Object) -> bool {
    match &object.kind {
        ObjectKind::Dataset(dataset) => match &dataset.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims.first() == Some(&u64::MAX),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a dimension scale has no variable.
fn names_no_variable(scale: &Object) -> bool {
    name_of(scale).is_some_and(|name| name.starts_with(NO_VARIABLE.as_bytes()))
}

/// Returns the name that a dimension scale records of itself, without padding.
fn name_of(scale: &Object) -> Option<&[u8]> {
    match &scale.attribute(b"NAME")?.data {
        InlineData::Stored(text) => text.split(|byte| *byte == 0).next(),
        InlineData::Canonical(_) => None,
    }
}

/// Returns the dimensions of a dataset.
fn dims(object: &Object) -> &[u64] {
    match &object.kind {
        ObjectKind::Dataset(dataset) => dataset.dataspace.dims(),
        _ => &[],
    }
}

/// Returns whether the object is the one-dimensional scale of a netCDF dimension.
fn is_scale(object: &Object) -> bool {
    let ObjectKind::Dataset(dataset) = &object.kind else { return false };
    let has = |name| object.attribute(name).is_some();
    dataset.dataspace.dims().len() == 1 && OF_SCALES.into_iter().all(has)
}

/// Returns the addresses of the datasets in a `REFERENCE_LIST`, each with the axis. Damaged files have addresses of any
/// size.
fn places_in(tree: &FileTree, places: &Attribute) -> Vec<(u64, usize)> {
    let TypeClass::Compound { len_bytes, members } = &*places.datatype.class else { return Vec::new() };
    let member = |name: &[u8]| members.iter().find(|member| member.name == name);
    let (Some(dataset), Some(dimension)) = (member(b"dataset"), member(b"dimension")) else { return Vec::new() };
    let InlineData::Stored(bytes) = &places.data else { return Vec::new() };
    let place = |place: &[u8]| {
        let address = u64::from_le_bytes(*place.get(dataset.offset_bytes as usize..)?.first_chunk()?);
        let axis = u32::from_le_bytes(*place.get(dimension.offset_bytes as usize..)?.first_chunk()?);
        // A reference holds an address relative to the end of the user block.
        Some((address.saturating_add(tree.userblock_len_bytes), axis as usize))
    };
    bytes.chunks_exact((*len_bytes as usize).max(1)).filter_map(place).collect()
}

/// Turns the variable of a netCDF dimension into a dimension without a variable, with the length of the variable if
/// `len` is `None`.
pub(super) fn without_variable(scale: &Object, len: Option<u64>) -> Object {
    let mut scale = scale.clone();
    let ObjectKind::Dataset(dataset) = &mut scale.kind else { return scale };
    let len = len.unwrap_or(dataset.dataspace.dims().first().copied().unwrap_or(0));
    if let Dataspace::Simple { dims, .. } = &mut dataset.dataspace {
        dims.iter_mut().for_each(|dim| *dim = len);
    }
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
    let mut name = text_without_variable(len).into_bytes();
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
