//! Conversion of values of file-local types to the memory form that libhdf5 takes.
//!
//! Merging carries variable-length data and references as canonical bytes (see [`crate::model::InlineData`]): values,
//! not pointers. libhdf5 expects C structures: `char *`, `hvl_t`, addresses. An [`Image`] is a buffer of those together
//! with all the data that it points to. References become addresses in the output, by path, so their targets must
//! exist.
//!
//! Canonical bytes: see [`crate::logical`].

use super::datatype::{memory_len_bytes, memory_offsets};
use super::{dataspace, not_writable};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::logical::NULL_STRING;
use crate::model::{ReferenceKind, TypeClass};
use hdf5_metno_sys::h5d::{H5Dget_space, H5Dopen2};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{H5R_type_t, H5Rcreate};
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Sget_simple_extent_ndims, H5Sselect_all};
use hdf5_metno_sys::h5s::{H5Sselect_elements, H5Sselect_none};

/// Elements in memory form.
pub(super) struct Image {
    bytes: Vec<u8>,
    /// Data that `bytes` points to. Boxes do not move when the list grows.
    bodies: Vec<Box<[u8]>>,
}

impl Image {
    /// Creates an image of elements of a fixed type, whose memory form and stored form are the same.
    pub fn of_stored(bytes: Vec<u8>) -> Self {
        Self { bytes, bodies: Vec::new() }
    }

    /// Creates an image of zero bytes: null pointers, empty sequences, null references.
    pub fn zeros(len_bytes: u64) -> Self {
        Self::of_stored(vec![0; usize::try_from(len_bytes).unwrap_or(0)])
    }

    /// Creates an image of `count` elements of `class` from their canonical bytes, all of which must be consumed.
    /// References are resolved in `file`, the output. The caller holds the lock.
    pub fn of_canonical(
        call: Call<'_>,
        class: &TypeClass,
        canonical: &[u8],
        count: u64,
        file: Option<&Handle>,
    ) -> Result<Self> {
        let mut builder = Builder { call, file, rest: canonical, bodies: Vec::new() };
        let bytes = builder.elements(class, count)?;
        if !builder.rest.is_empty() {
            return Err(builder.mismatch(format!("{} bytes are left over after {count} elements", builder.rest.len())));
        }
        Ok(Self { bytes, bodies: builder.bodies })
    }

    /// Returns the buffer to pass to libhdf5, valid while `self` lives.
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(self.bodies.iter().all(|body| !body.is_empty()));
        &self.bytes
    }
}

struct Builder<'a> {
    call: Call<'a>,
    file: Option<&'a Handle>,
    rest: &'a [u8],
    bodies: Vec<Box<[u8]>>,
}

impl<'a> Builder<'a> {
    fn elements(&mut self, class: &TypeClass, count: u64) -> Result<Vec<u8>> {
        let element_len = usize::try_from(memory_len_bytes(class)).unwrap_or(usize::MAX);
        // Each element takes at least one canonical byte, except for types without content (an array of no items).
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(element_len));
        let plausible = count <= self.rest.len() as u64 || element_len == 0;
        let Some(len) = len.filter(|_| plausible) else {
            return Err(
                self.mismatch(format!("{count} elements are declared, but only {} bytes follow", self.rest.len()))
            );
        };
        if !class.is_file_local() {
            return Ok(self.take(len as u64)?.to_vec());
        }
        let mut bytes = vec![0; len];
        if element_len > 0 {
            for element in bytes.chunks_exact_mut(element_len) {
                self.element(class, element)?;
            }
        }
        Ok(bytes)
    }

    /// Fills `out` with one element in memory form.
    fn element(&mut self, class: &TypeClass, out: &mut [u8]) -> Result<()> {
        if !class.is_file_local() {
            out.copy_from_slice(self.take(out.len() as u64)?);
            return Ok(());
        }
        match class {
            TypeClass::VariableString { .. } => {
                let len_bytes = self.number()?;
                if len_bytes == NULL_STRING {
                    out.fill(0);
                    return Ok(());
                }
                let mut body = self.take(len_bytes)?.to_vec();
                // An inner zero would silently truncate the string.
                if body.contains(&0) {
                    return Err(self.mismatch("a variable-length string contains a zero byte".to_owned()));
                }
                body.push(0);
                let address = self.keep(body);
                out.copy_from_slice(&address.to_ne_bytes());
            }
            TypeClass::Sequence { base, .. } => {
                let count = self.number()?;
                let body = self.elements(base, count)?;
                // `hvl_t`: the count, then the pointer, which is null if there are no items.
                let address = if body.is_empty() { 0 } else { self.keep(body) };
                out[..8].copy_from_slice(&count.to_ne_bytes());
                out[8..].copy_from_slice(&address.to_ne_bytes());
            }
            TypeClass::Compound { members, .. } => {
                for (member, offset) in members.iter().zip(memory_offsets(members)) {
                    let (start, len) = (offset as usize, memory_len_bytes(&member.class) as usize);
                    let Some(target) = out.get_mut(start..start + len) else {
                        return Err(self.mismatch("a member of its type reaches beyond the element".to_owned()));
                    };
                    self.element(&member.class, target)?;
                }
            }
            TypeClass::Array { base, .. } => {
                let item_len = memory_len_bytes(base) as usize;
                for item in out.chunks_exact_mut(item_len.max(1)) {
                    self.element(base, item)?;
                }
            }
            TypeClass::Reference(ReferenceKind::Object) => {
                let path_len_bytes = self.number()?;
                let path = self.take(path_len_bytes)?;
                if !path.is_empty() {
                    self.reference(path, H5R_type_t::H5R_OBJECT1, -1, out)?;
                }
            }
            TypeClass::Reference(ReferenceKind::Region) => self.region(out)?,
            _ => return Err(self.mismatch("values of its type have no canonical form".to_owned())),
        }
        Ok(())
    }

    fn region(&mut self, out: &mut [u8]) -> Result<()> {
        let path_len_bytes = self.number()?;
        let path = self.take(path_len_bytes)?;
        if path.is_empty() {
            return Ok(());
        }
        let kind = self.take(1)?[0];
        let rank = u32::from_le_bytes(self.array()?) as usize;
        let count = self.number()?;
        let file = self.file()?;
        let call = Call::of_object(self.call.path, path);
        let name = call.c_string("H5Dopen2", path)?;
        // SAFETY: for the block: valid handles, the caller holds the lock; we own the new identifiers.
        let space = unsafe {
            let dataset = call.handle("H5Dopen2", H5Dopen2(file.id(), name.as_ptr(), H5P_DEFAULT))?;
            call.handle("H5Dget_space", H5Dget_space(dataset.id()))?
        };
        // SAFETY: as above.
        let space_rank = unsafe { H5Sget_simple_extent_ndims(space.id()) };
        if matches!(kind, 1 | 2) && usize::try_from(space_rank).ok() != Some(rank) {
            return Err(self.mismatch(format!(
                "a region of {rank} dimensions refers to {}, which has {space_rank}",
                path.escape_ascii()
            )));
        }
        match kind {
            // SAFETY: as above.
            0 => call.status("H5Sselect_none", unsafe { H5Sselect_none(space.id()) }).map(drop)?,
            // SAFETY: as above.
            3 => call.status("H5Sselect_all", unsafe { H5Sselect_all(space.id()) }).map(drop)?,
            1 => {
                let points = self.numbers(count, rank)?;
                let set = H5S_seloper_t::H5S_SELECT_SET;
                // SAFETY: as above; `points` holds `count` times `rank` numbers, the rank of the space.
                let status = unsafe { H5Sselect_elements(space.id(), set, count as usize, points.as_ptr()) };
                call.status("H5Sselect_elements", status)?;
            }
            2 => {
                let corners = self.numbers(count, rank.saturating_mul(2))?;
                for (index, corners) in corners.chunks_exact((rank * 2).max(1)).enumerate() {
                    let (start, last) = corners.split_at(rank);
                    let size: Option<Vec<u64>> =
                        start.iter().zip(last).map(|(&start, &last)| last.checked_sub(start)?.checked_add(1)).collect();
                    let Some(size) = size else {
                        return Err(self.mismatch("a block of a region ends before it starts".to_owned()));
                    };
                    dataspace::select_box(call, &space, start, &size, index > 0)?;
                }
            }
            other => return Err(self.mismatch(format!("selections of kind {other} do not exist"))),
        }
        self.reference(path, H5R_type_t::H5R_DATASET_REGION1, space.id(), out)
    }

    fn reference(&self, path: &[u8], kind: H5R_type_t, space: i64, out: &mut [u8]) -> Result<()> {
        let file = self.file()?;
        let call = Call::of_object(self.call.path, path);
        let name = call.c_string("H5Rcreate", path)?;
        // SAFETY: valid handles, the caller holds the lock; libhdf5 writes 8 (object) or 12 bytes (region), the size in
        // memory of an element of these types.
        call.status("H5Rcreate", unsafe { H5Rcreate(out.as_mut_ptr().cast(), file.id(), name.as_ptr(), kind, space) })
            .map(drop)
    }

    fn file(&self) -> Result<&'a Handle> {
        self.file.ok_or_else(|| self.mismatch("references cannot be resolved here".to_owned()))
    }

    /// Keeps a body alive and returns its address.
    fn keep(&mut self, body: Vec<u8>) -> u64 {
        let body = body.into_boxed_slice();
        let address = body.as_ptr() as u64;
        self.bodies.push(body);
        address
    }

    fn numbers(&mut self, count: u64, each: usize) -> Result<Vec<u64>> {
        let total = usize::try_from(count).ok().and_then(|count| count.checked_mul(each));
        let Some(len) = total.and_then(|total| total.checked_mul(8)).filter(|&len| len <= self.rest.len()) else {
            return Err(self.mismatch("a selection is cut off".to_owned()));
        };
        let bytes = self.take(len as u64)?;
        Ok(bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))).collect())
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.mismatch("a value is cut off".to_owned()));
        };
        self.rest = rest;
        Ok(*head)
    }

    fn take(&mut self, len_bytes: u64) -> Result<&'a [u8]> {
        let head = usize::try_from(len_bytes).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((head, rest)) = head else {
            return Err(self.mismatch(format!("a value of {len_bytes} bytes is cut off at {}", self.rest.len())));
        };
        self.rest = rest;
        Ok(head)
    }

    fn mismatch(&self, what: String) -> Hdf5Error {
        not_writable(self.call, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Member;
    use std::path::Path;
    use std::sync::Arc;

    fn string() -> TypeClass {
        TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 }
    }

    fn call() -> Call<'static> {
        Call::of_object(Path::new("out.h5"), b"/x")
    }

    #[test]
    fn strings_become_pointers_to_terminated_bytes() {
        let canonical = [2_u64.to_le_bytes().as_slice(), b"ab", &0_u64.to_le_bytes()].concat();
        let image = Image::of_canonical(call(), &string(), &canonical, 2, None).unwrap();
        assert_eq!(image.bytes().len(), 16);
        assert_eq!(image.bodies.iter().map(|body| &body[..]).collect::<Vec<_>>(), [b"ab\0".as_slice(), b"\0"]);
        assert_eq!(image.bytes()[..8], (image.bodies[0].as_ptr() as u64).to_ne_bytes());
    }

    #[test]
    fn a_null_string_is_a_null_pointer() {
        let canonical = [NULL_STRING.to_le_bytes().as_slice(), &1_u64.to_le_bytes(), b"a"].concat();
        let image = Image::of_canonical(call(), &string(), &canonical, 2, None).unwrap();
        assert_eq!(image.bytes()[..8], [0; 8]);
        assert_eq!(&image.bodies[0][..], b"a\0");
    }

    #[test]
    fn members_after_a_string_move_forward() {
        let byte = Arc::new(TypeClass::Opaque { len_bytes: 1, tag: Vec::new() });
        let member = |name: &[u8], offset_bytes, class: &Arc<TypeClass>| Member {
            name: name.to_vec(),
            offset_bytes,
            class: Arc::clone(class),
        };
        let members = vec![member(b"a", 20, &byte), member(b"s", 0, &Arc::new(string())), member(b"b", 16, &byte)];
        assert_eq!(memory_offsets(&members), [12, 0, 8]);
        let class = TypeClass::Compound { len_bytes: 24, members };
        assert_eq!(memory_len_bytes(&class), 16);
        let canonical = [b"A".as_slice(), &1_u64.to_le_bytes(), b"x", b"B"].concat();
        let image = Image::of_canonical(call(), &class, &canonical, 1, None).unwrap();
        assert_eq!((image.bytes()[12], image.bytes()[8]), (b'A', b'B'));
    }

    #[test]
    fn cut_off_and_left_over_bytes_are_errors() {
        let canonical = [9_u64.to_le_bytes().as_slice(), b"ab"].concat();
        assert!(Image::of_canonical(call(), &string(), &canonical, 1, None).is_err());
        let canonical = [1_u64.to_le_bytes().as_slice(), b"ab"].concat();
        assert!(Image::of_canonical(call(), &string(), &canonical, 1, None).is_err());
        let sequence = TypeClass::Sequence { base: Arc::new(string()), len_bytes: 16 };
        assert!(Image::of_canonical(call(), &sequence, &u64::MAX.to_le_bytes(), 1, None).is_err());
    }
}
