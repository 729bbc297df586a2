//! The dataset from which values were last read. It stays open, because the next request usually asks for further rows
//! of it.
//!
//! libhdf5 keeps the sources of a virtual dataset open, with their chunk caches, as long as the dataset itself is open.
//! Opening and checking hundreds of sources takes longer than reading a few rows of them.
//!
//! Invariant: before every read, all sources are allowed and exist. They are opened for this check only once.

use super::source_rows::{SourceRows, check_descriptors, max_open_sources};
use super::sources::SourceFiles;
use super::{OpenFile, dataspaces, extent, properties, sources, types, unsupported};
use crate::child::protocol::ObjectName;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Sselect_all, H5Sselect_hyperslab};
use std::ops::Range;
use std::path::Path;
use std::ptr;

/// A dataset whose values may be read.
pub(super) struct OpenDataset {
    object: ObjectName,
    name: Vec<u8>,
    handle: Handle,
    extent: Dataspace,
    /// The dataspace, with the last selection.
    space: Handle,
    element_len_bytes: u64,
    source_files: SourceFiles,
    is_virtual: bool,
    source_rows: SourceRows,
    /// Rows from the first to the last one that was read since the dataset was opened.
    read_rows: Range<u64>,
}

impl OpenDataset {
    /// Returns the dataset, open for reading. This is `last_read` if it is the requested dataset; otherwise, `last_read`
    /// is closed.
    pub(super) fn next(file: &OpenFile, last_read: Option<Self>, object: &ObjectName) -> Result<Self> {
        match last_read.filter(|last| last.object == *object) {
            Some(last) => {
                last.source_files.check_again(last.call(&file.path))?;
                Ok(last)
            }
            None => Self::open(file, object),
        }
    }

    /// Divides a read of `rows`, or of all rows, into pieces. Not more than [`max_open_sources`] sources need to be open
    /// for each, unless a single row needs more.
    pub(super) fn pieces(&self, rows: Option<Range<u64>>) -> Vec<Option<Range<u64>>> {
        if self.source_rows.is_empty() {
            return vec![rows];
        }
        let row_count = self.extent.dims().first().copied().unwrap_or(1);
        let pieces = self.source_rows.pieces(rows.unwrap_or(0..row_count), max_open_sources());
        pieces.into_iter().map(Some).collect()
    }

    /// Returns the dataset for reading a piece. It is closed before and opened again if too many sources would be open.
    pub(super) fn ready_for(mut self, file: &OpenFile, piece: Option<&Range<u64>>) -> Result<Self> {
        let Some(piece) = piece else { return Ok(self) };
        let before = if self.read_rows.is_empty() { piece } else { &self.read_rows };
        let all = before.start.min(piece.start)..before.end.max(piece.end);
        if !self.read_rows.is_empty() && self.source_rows.needed_by(&all) > max_open_sources() {
            // The old one is closed first, lest its sources stay open.
            drop(self.handle);
            self.handle = file.open_named(&self.object)?.0;
            self.read_rows = piece.clone();
        } else {
            self.read_rows = all;
        }
        Ok(self)
    }

    /// Checks after a read that no source was left out of it because the process had too many open files.
    pub(super) fn check_descriptors(&self, call: Call<'_>) -> Result<()> {
        if self.is_virtual { check_descriptors(call) } else { Ok(()) }
    }

    fn open(file: &OpenFile, object: &ObjectName) -> Result<Self> {
        let (handle, name) = file.open_named(object)?;
        let call = Call::of_object(&file.path, &name);
        // SAFETY: the identifier is open.
        if unsafe { H5Iget_type(handle.id()) } != H5I_type_t::H5I_DATASET {
            return Err(unsupported(call, "values of an object that is not a dataset".to_owned()));
        }
        let list = properties::creation_list(&handle, call)?;
        let source_files = sources::check(file, &list, call)?;
        let is_virtual = properties::is_virtual(&list, call)?;
        let source_rows = SourceRows::of(&list, call)?;
        let space = dataspaces::of_dataset(&handle, call)?;
        let extent = dataspaces::extent(file, &space, call)?;
        // The tree contains the same extent: reading with a different one would not match the plan.
        if extent::of_dataset(file, &handle, &list, call)? != extent {
            let what = "a virtual dataset whose extent differs from the stored one".to_owned();
            return Err(unsupported(call, what));
        }
        let element_len_bytes = types::of_dataset(file, &handle, call)?.memory.len_bytes();
        Ok(Self {
            object: object.clone(),
            name,
            handle,
            extent,
            space,
            element_len_bytes,
            source_files,
            is_virtual,
            source_rows,
            read_rows: 0..0,
        })
    }

    /// Returns the name of the dataset for messages.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the context for libhdf5 calls with this dataset, which is in the file of this path.
    pub(super) fn call<'a>(&'a self, path: &'a Path) -> Call<'a> {
        Call::of_object(path, &self.name)
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the dataspace, with the rows that were selected last.
    pub(super) fn space(&self) -> &Handle {
        &self.space
    }

    pub(super) fn element_len_bytes(&self) -> u64 {
        self.element_len_bytes
    }

    /// Selects rows of axis 0, or all rows if `rows` is `None`; returns the number of elements.
    pub(super) fn select(&self, rows: Option<Range<u64>>, call: Call<'_>) -> Result<u64> {
        let dims = self.extent.dims();
        let Some(rows) = rows else {
            // SAFETY: the dataspace is open.
            call.status("H5Sselect_all", unsafe { H5Sselect_all(self.space.id()) })?;
            return Ok(self.extent.element_count().unwrap_or(u64::MAX));
        };
        let Some(&available) = dims.first() else {
            return Err(unsupported(call, "rows of a dataset without dimensions".to_owned()));
        };
        if rows.start > rows.end || rows.end > available {
            let what = format!("row {} of {available}", rows.end);
            return Err(Hdf5Error::Limit { path: call.path.to_path_buf(), what, limit: available });
        }
        let (mut start, mut count) = (vec![0; dims.len()], dims.to_vec());
        (start[0], count[0]) = (rows.start, rows.end - rows.start);
        let elements = count.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim)).unwrap_or(u64::MAX);
        if elements > 0 {
            // SAFETY: a simple dataspace of this rank is open; the arrays have one element per dimension.
            let status = unsafe {
                let replace = H5S_seloper_t::H5S_SELECT_SET;
                let id = self.space.id();
                H5Sselect_hyperslab(id, replace, start.as_ptr(), ptr::null(), count.as_ptr(), ptr::null())
            };
            call.status("H5Sselect_hyperslab", status)?;
        }
        Ok(elements)
    }
}
