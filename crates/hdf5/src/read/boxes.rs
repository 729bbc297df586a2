//! Arguments of a read: a dataset in its file, a box of it, and a place in an array.
//!
//! Invariant: a box accepted by [`BoxRead::check`] lies in its dataset and in the output.

use super::stride::{BoxOffset, fill_box};
use super::{Encoding, MAX_RANK};
use crate::error::{Hdf5Error, Result};
use crate::model::{Dataset, Dataspace};
use crate::source::InputFile;
use raddle_codec::Pipeline;

/// A dataset in its file.
#[derive(Debug, Clone, Copy)]
pub struct DatasetSource<'a> {
    /// File of the dataset.
    pub file: &'a InputFile,
    /// Encoding of addresses in the file.
    pub encoding: Encoding,
    /// Metadata of the dataset.
    pub dataset: &'a Dataset,
    /// Filter pipeline of the dataset.
    pub pipeline: &'a Pipeline,
}

/// A box of a dataset and the place for its elements. Each slice has one number per dimension, in elements; for a
/// scalar the slices are empty.
#[derive(Debug, Clone, Copy)]
pub struct BoxRead<'a> {
    /// First element of the box.
    pub start: &'a [u64],
    /// Size of the box.
    pub count: &'a [u64],
    /// Shape of the row-major output array.
    pub out_shape: &'a [u64],
    /// Position of the box in the output array.
    pub out_origin: &'a [u64],
}

impl DatasetSource<'_> {
    /// Returns the length of all values.
    pub(super) fn value_len_bytes(&self) -> Result<u64> {
        let elements = self.dataset.dataspace.element_count();
        elements.and_then(|count| count.checked_mul(self.dataset.datatype.class.len_bytes())).ok_or_else(|| {
            Hdf5Error::Malformed {
                path: self.file.path().to_path_buf(),
                address: 0,
                what: format!("extent {:?} overflows 64 bits", self.dataset.dataspace.dims()),
            }
        })
    }

    pub(super) fn fill(&self, target: &BoxRead<'_>, out: &mut [u8]) -> Result<()> {
        let fill = &self.dataset.fill;
        let element_len = self.dataset.datatype.class.len_bytes();
        let pattern = match fill.value.as_ref().filter(|_| !fill.undefined) {
            None => None,
            Some(value) => {
                let canonical = || self.unsupported("a fill value known in canonical form only");
                Some(value.stored().ok_or_else(canonical)?)
            }
        };
        // A pattern of zeros is filled at memset's speed.
        let pattern = pattern.filter(|pattern| pattern.iter().any(|&byte| byte != 0));
        if let Some(pattern) = pattern
            && pattern.len() as u64 != element_len
        {
            return Err(Hdf5Error::Malformed {
                path: self.file.path().to_path_buf(),
                address: 0,
                what: format!("fill value of {} bytes for elements of {element_len}", pattern.len()),
            });
        }
        fill_box(target.count, element_len, pattern, out, target.place());
        Ok(())
    }

    pub(super) fn unsupported(&self, what: &str) -> Hdf5Error {
        Hdf5Error::Unsupported { path: self.file.path().to_path_buf(), address: 0, what: what.to_owned() }
    }

    pub(super) fn outside(&self, start: &[u64], count: &[u64]) -> Hdf5Error {
        Hdf5Error::BoxOutside {
            path: self.file.path().to_path_buf(),
            start: start.to_vec(),
            count: count.to_vec(),
            dims: self.dataset.dataspace.dims().to_vec(),
        }
    }
}

impl<'a> BoxRead<'a> {
    pub(super) fn place(&self) -> BoxOffset<'a> {
        BoxOffset { shape: self.out_shape, origin: self.out_origin }
    }

    pub(super) fn check(&self, source: &DatasetSource<'_>, out_len: usize) -> Result<()> {
        let dims = source.dataset.dataspace.dims();
        let rank = dims.len();
        let lies_in = |start: &[u64], shape: &[u64]| {
            start.len() == rank
                && shape.len() == rank
                && (0..rank).all(|axis| start[axis].checked_add(self.count[axis]).is_some_and(|end| end <= shape[axis]))
        };
        let needed = self
            .out_shape
            .iter()
            .try_fold(source.dataset.datatype.class.len_bytes(), |product, &count| product.checked_mul(count));
        let fits = rank <= MAX_RANK
            && self.count.len() == rank
            && lies_in(self.start, dims)
            && lies_in(self.out_origin, self.out_shape)
            && (needed == Some(out_len as u64) || source.dataset.dataspace == Dataspace::Null);
        if fits { Ok(()) } else { Err(source.outside(self.start, self.count)) }
    }
}
