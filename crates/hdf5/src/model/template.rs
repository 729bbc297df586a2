//! Templates: the metadata shared by many datasets, apart from their number of rows and the location of their data.
//!
//! A program that writes thousands of datasets to thousands of files gives them only a few dozen different object
//! headers, apart from the size of axis 0 and one address. This module does not read headers ([`crate::native`]
//! recognises templates in their bytes). Invariant: [`open`] followed by [`close`] restores the dataset, for layouts
//! whose data lie at one address.

use super::{Attribute, ChunkIndex, CreationOrder, Dataset, Dataspace, Layout};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A dataset without its rows and address, and the rest of its object header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetTemplate {
    /// Dataset as left by [`open`].
    pub dataset: Arc<Dataset>,
    /// Attributes; none of them points elsewhere in its file.
    pub attributes: Vec<Attribute>,
    /// Whether the object tracks and indexes the creation order of its attributes.
    pub attribute_order: CreationOrder,
    /// Comment message, if present.
    pub comment: Option<Vec<u8>>,
}

/// Values that a template leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetLocation {
    /// Size of axis 0.
    pub rows: u64,
    /// Absolute file offset of contiguous data or of the chunk index; `None` if nothing is allocated, and for layouts
    /// that do not keep their data at one address.
    pub address: Option<u64>,
}

/// A dataset that shares its template with others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemplatedDataset {
    /// Shared template.
    pub form: Arc<DatasetTemplate>,
    /// Rows and address of this dataset.
    pub place: DatasetLocation,
}

/// Takes the rows and the address out of a dataset. If axis 0 cannot grow, its maximum size is also left open.
pub fn open(dataset: &mut Dataset) -> DatasetLocation {
    open_along(dataset, 0)
}

/// Like [`open`], but for the size of `axis` instead of axis 0.
pub fn open_along(dataset: &mut Dataset, axis: usize) -> DatasetLocation {
    let mut place = DatasetLocation { rows: 0, address: None };
    if let Dataspace::Simple { dims, max_dims } = &mut dataset.dataspace {
        place.rows = std::mem::take(&mut dims[axis]);
        if max_dims[axis] == place.rows {
            max_dims[axis] = 0;
        }
    }
    match &mut dataset.layout {
        Layout::Contiguous { address, len_bytes } => {
            place.address = address.take();
            *len_bytes = 0;
        }
        Layout::Chunked { index, .. } => place.address = index.address_mut().map(std::mem::take),
        _ => {}
    }
    place
}

/// Puts rows and address back into an opened dataset.
pub fn close(dataset: &mut Dataset, place: DatasetLocation) {
    close_along(dataset, place, 0);
}

/// Like [`close`], for a dataset opened by [`open_along`].
pub fn close_along(dataset: &mut Dataset, place: DatasetLocation, axis: usize) {
    if let Dataspace::Simple { dims, max_dims } = &mut dataset.dataspace {
        dims[axis] = place.rows;
        if max_dims[axis] == 0 {
            max_dims[axis] = place.rows;
        }
    }
    let all_len_bytes =
        dataset.dataspace.dims().iter().fold(dataset.datatype.class.len_bytes(), |len, dim| len.saturating_mul(*dim));
    match &mut dataset.layout {
        Layout::Contiguous { address, len_bytes } => {
            *address = place.address;
            *len_bytes = all_len_bytes;
        }
        Layout::Chunked { index, .. } => {
            if let (Some(open), Some(address)) = (index.address_mut(), place.address) {
                *open = address;
            }
        }
        _ => {}
    }
}

impl TemplatedDataset {
    /// Returns the complete dataset.
    pub fn dataset(&self) -> Dataset {
        let mut dataset = self.form.dataset.as_ref().clone();
        close(&mut dataset, self.place);
        dataset
    }
}

impl Dataset {
    /// Returns the bytes of one row (all dimensions except the first), saturating.
    pub fn row_len_bytes(&self) -> u64 {
        let trailing = self.dataspace.dims().iter().skip(1);
        trailing.fold(self.datatype.class.len_bytes(), |product, &dim| product.saturating_mul(dim))
    }
}

impl ChunkIndex {
    /// Returns the address of the index, or `None` for kinds without one, including single chunks, whose address is
    /// that of the data.
    fn address_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::BtreeV1 { address }
            | Self::Implicit { address }
            | Self::FixedArray { address }
            | Self::ExtensibleArray { address }
            | Self::BtreeV2 { address } => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitRange, ByteOrder, Datatype, FillValue, TypeClass};
    use super::*;

    fn dataset(layout: Layout, max_rows: u64) -> Dataset {
        let bits = BitRange { offset: 0, count: 32 };
        let class = TypeClass::Integer { len_bytes: 4, order: ByteOrder::Little, signed: true, bits, padding: (0, 0) };
        Dataset {
            dataspace: Dataspace::Simple { dims: vec![7, 3], max_dims: vec![max_rows, 3] },
            datatype: Datatype { class: Arc::new(class), committed: None },
            layout,
            fill: FillValue::default(),
            filters: Vec::new(),
        }
    }

    #[test]
    fn what_was_opened_closes_to_the_same() {
        let chunked = |index| Layout::Chunked { chunk_shape: vec![2, 3], index, partial_chunks_unfiltered: false };
        for layout in [
            Layout::Contiguous { address: Some(2048), len_bytes: 84 },
            Layout::Contiguous { address: None, len_bytes: 84 },
            chunked(ChunkIndex::BtreeV1 { address: 96 }),
            chunked(ChunkIndex::None),
            Layout::Virtual,
        ] {
            for max_rows in [7, 9, u64::MAX] {
                let known = dataset(layout.clone(), max_rows);
                let mut opened = known.clone();
                let place = open(&mut opened);
                assert_eq!((place.rows, opened.dataspace.dims()[0]), (7, 0));
                close(&mut opened, place);
                assert_eq!(opened, known);
            }
        }
    }

    #[test]
    fn datasets_that_differ_in_what_is_open_have_one_form() {
        let (mut left, mut right) = (
            dataset(Layout::Contiguous { address: Some(2048), len_bytes: 84 }, 7),
            dataset(Layout::Contiguous { address: Some(4096), len_bytes: 84 }, 7),
        );
        right.dataspace = Dataspace::Simple { dims: vec![5, 3], max_dims: vec![5, 3] };
        open(&mut left);
        open(&mut right);
        assert_eq!(left, right);
    }
}
