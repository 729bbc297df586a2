//! Dimension names of datasets, as defined by dimension scales and used by netCDF-4.
//!
//! A scale attached to an axis names that axis, and a scale names its own axis. Names for unnamed axes are left to the
//! caller. Sources: HDF5 Dimension Scale Specification; netCDF-4 format (`_Netcdf4Dimid`; `_Netcdf4Coordinates`: the
//! dimensions of a coordinate variable with several).

use crate::error::Result;
use crate::logical::{ObjectPaths, Resolver};
use crate::model::{Attribute, ByteOrder, FileTree, Object, ObjectIndex, ObjectKind, ReferenceKind, TypeClass};
use crate::object_path::last_name;
use crate::source::InputFile;
use std::collections::HashMap;

/// Value that marks a netCDF-4 scale that only defines a length and holds no values.
const NO_VARIABLE: &[u8] = b"This is a netCDF dimension but not a netCDF variable";

/// Dimension names of one file's datasets.
#[derive(Debug)]
pub struct Dimensions<'a> {
    tree: &'a FileTree,
    resolver: Resolver<'a>,
    paths: ObjectPaths,
    /// Names of netCDF-4's dimensions by their numbers, collected on first use.
    by_number: Option<HashMap<i64, Vec<u8>>>,
}

impl<'a> Dimensions<'a> {
    /// Creates the dimensions of `file`, whose metadata is `tree`.
    pub fn new(file: &'a InputFile, tree: &'a FileTree) -> Self {
        Self { tree, resolver: Resolver::new(file, tree), paths: ObjectPaths::new(tree), by_number: None }
    }

    /// Returns one name per axis of the dataset, `None` for unnamed axes; empty for objects other than datasets.
    ///
    /// # Errors
    /// If an attribute contains an invalid reference.
    pub fn names(&mut self, dataset: ObjectIndex) -> Result<Vec<Option<Vec<u8>>>> {
        let object = &self.tree.objects[dataset as usize];
        let Some(rank) = rank(object) else { return Ok(Vec::new()) };
        let mut names = if is_scale(object) {
            match object.attribute(b"_Netcdf4Coordinates").and_then(integers) {
                Some(numbers) if rank > 1 => self.numbered(&numbers),
                _ if rank == 1 => vec![self.scale_name(object)],
                _ => Vec::new(),
            }
        } else {
            match object.attribute(b"DIMENSION_LIST") {
                Some(list) => self.attached(list)?,
                None => Vec::new(),
            }
        };
        names.resize(rank, None);
        Ok(names)
    }

    /// Returns the last component of the path of a scale.
    fn scale_name(&self, object: &Object) -> Option<Vec<u8>> {
        self.paths.path(object.address).map(|path| last_name(&path).to_vec())
    }

    /// Returns the name of the last scale attached to each axis, from `DIMENSION_LIST`. If an axis has several, the netCDF
    /// library and h5netcdf name it after the last one.
    fn attached(&mut self, list: &Attribute) -> Result<Vec<Option<Vec<u8>>>> {
        let class = &list.datatype.class;
        let TypeClass::Sequence { base, .. } = &**class else { return Ok(Vec::new()) };
        if **base != TypeClass::Reference(ReferenceKind::Object) {
            return Ok(Vec::new());
        }
        // The reference to a deleted scale remains.
        let (canonical, _) = self.resolver.canonical_inline_or_null(class, &list.data)?;
        let (mut names, mut rest) = (Vec::new(), canonical.as_slice());
        while let Some(scales) = take_number(&mut rest) {
            let mut last = None;
            for _ in 0..scales {
                let len = take_number(&mut rest).and_then(|len| usize::try_from(len).ok());
                let Some((path, behind)) = len.and_then(|len| rest.split_at_checked(len)) else { return Ok(names) };
                rest = behind;
                if !path.is_empty() {
                    last = Some(last_name(path).to_vec());
                }
            }
            names.push(last);
        }
        Ok(names)
    }

    fn numbered(&mut self, numbers: &[i64]) -> Vec<Option<Vec<u8>>> {
        if self.by_number.is_none() {
            let scales = self.tree.objects.iter().filter(|object| is_scale(object));
            let numbered = scales.filter_map(|scale| {
                let number = *scale.attribute(b"_Netcdf4Dimid").and_then(integers)?.first()?;
                Some((number, self.scale_name(scale)?))
            });
            self.by_number = Some(numbered.collect());
        }
        numbers.iter().map(|number| self.by_number.as_ref()?.get(number).cloned()).collect()
    }
}

/// Returns whether an object is a dimension scale that only defines a length and has no values.
pub fn is_without_values(object: &Object) -> bool {
    is_scale(object) && object.attribute(b"NAME").is_some_and(|name| name.data.bytes().starts_with(NO_VARIABLE))
}

fn is_scale(object: &Object) -> bool {
    let class = object.attribute(b"CLASS").map(|class| class.data.bytes());
    class.is_some_and(|class| class.strip_prefix(b"DIMENSION_SCALE").is_some_and(|end| end.iter().all(|&b| b == 0)))
}

fn rank(object: &Object) -> Option<usize> {
    match &object.kind {
        ObjectKind::Dataset(dataset) => Some(dataset.dataspace.dims().len()),
        ObjectKind::Templated(formed) => Some(formed.form.dataset.dataspace.dims().len()),
        _ => None,
    }
}

/// Decodes an attribute of little-endian integers of 4 or 8 bytes.
fn integers(attribute: &Attribute) -> Option<Vec<i64>> {
    let TypeClass::Integer { len_bytes, order: ByteOrder::Little, .. } = *attribute.datatype.class else { return None };
    let bytes = attribute.data.stored()?;
    match len_bytes {
        4 => Some(bytes.as_chunks().0.iter().map(|&value| i64::from(i32::from_le_bytes(value))).collect()),
        8 => Some(bytes.as_chunks().0.iter().map(|&value| i64::from_le_bytes(value)).collect()),
        _ => None,
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*number))
}
