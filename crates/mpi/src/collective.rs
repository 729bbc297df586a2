//! Datasets that ranks write collectively through a parallel libhdf5: collective writes of filtered chunks, as in
//! programs written with that library.
//!
//! The calls themselves are in `hdf5`. Invariant: if a rank fails, all learn of it before the next call and leave
//! together, unless its failure leaves the others waiting in the call. After a failed write the file is not closed and
//! its library not shut down: HDF5 1.10 would write once more and crash.

use crate::MpiCommunicator;
use crate::error::Result;
use crate::hdf5::{self, Hdf5};
use raddle_core::engine::SharedIo;
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_core::ranks::datasets::{DatasetSink, Rows, SharedDatasets};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::Error;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A parallel libhdf5, and the ranks that write with it.
#[derive(Debug)]
pub struct ParallelHdf5<'a> {
    ranks: &'a MpiCommunicator,
    is_unsound: &'a Cell<bool>,
    library: Hdf5,
}

impl<'a> ParallelHdf5<'a> {
    /// Loads the library at `path`, or one of a usual name. After a failed call, `is_unsound` is set: the library must
    /// then not be shut down.
    ///
    /// # Errors
    /// [`crate::MpiError::Hdf5`] if there is no library with which ranks of this MPI can write.
    pub fn load(ranks: &'a MpiCommunicator, is_unsound: &'a Cell<bool>, path: Option<&Path>) -> Result<Self> {
        Ok(Self { ranks, is_unsound, library: Hdf5::load(path)? })
    }
}

impl SharedDatasets for ParallelHdf5<'_> {
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn DatasetSink + '_>> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let opened = self.library.open(self.ranks.raw(), &name).map_err(Error::other);
        let file = self.ranks.agree("open the output", opened)?;
        Ok(Box::new(OpenFile { file: ManuallyDrop::new(file), shared: self }))
    }
}

#[derive(Debug)]
struct OpenFile<'a> {
    /// Handle that is never dropped automatically: it is either closed, or left to the end of the process.
    file: ManuallyDrop<hdf5::ParallelFile<'a>>,
    shared: &'a ParallelHdf5<'a>,
}

impl DatasetSink for OpenFile<'_> {
    fn write_rows(&self, object: &[u8], rows: Rows<'_>) -> std::io::Result<()> {
        let ranks = self.shared.ranks;
        let selected = self.file.select(object, rows.start, rows.count).and_then(|selected| {
            let (wanted, got) = (selected.len_bytes, rows.bytes.len() as u64);
            if wanted == got { Ok(selected) } else { Err(format!("its rows take {wanted} bytes, got {got}")) }
        });
        let selected = ranks.agree("select rows", selected.map_err(Error::other))?;
        let written = self.file.write(&selected, rows.bytes).map_err(Error::other);
        ranks.meet_after(&written);
        let written = ranks.agree("write rows", written);
        self.shared.is_unsound.set(written.is_err());
        written
    }

    fn describe(&self) -> SharedIo {
        let interface = format!("collective HDF5 {}", self.shared.library.version());
        SharedIo { interface, hints: BTreeMap::new() }
    }

    fn finish(self: Box<Self>) -> std::io::Result<()> {
        let Self { file, shared } = *self;
        let closed = ManuallyDrop::into_inner(file).close().map_err(Error::other);
        let closed = shared.ranks.agree("close the output", closed);
        shared.is_unsound.set(closed.is_err());
        closed
    }
}
