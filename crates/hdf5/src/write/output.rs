//! Output file: its lifecycle from creation to finish, and the space for its metadata.

use super::driver::DriverHandle;
use super::link_classes::LinkClasses;
use super::options::{Compat, OutputOptions};
use super::predict::MetadataSizeEstimator;
use super::properties;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use hdf5_metno_sys::h5f::{H5F_ACC_EXCL, H5Fclose, H5Fcreate};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Length of the pieces in which zeros are written.
const ZEROS_LEN_BYTES: u64 = 1 << 20;

/// An HDF5 file being written.
///
/// Dropping it without [`OutputFile::finish`] abandons the file: the data on disk is then not an HDF5 file, or not one
/// that can be opened (the superblock is written last).
pub struct OutputFile {
    path: Arc<Path>,
    compat: Compat,
    raw_start: u64,
    raw_end: Option<u64>,
    pub(super) ledger: MetadataSizeEstimator,
    /// State of the front region when the running operation began, and the bytes allowed to the operation; tests
    /// compare them with the bytes used.
    bound: Option<(Front, u64)>,
    /// Path and handle of the parent of the last created object, because datasets are created group by group.
    pub(super) parent: Option<(Vec<u8>, Handle)>,
    /// `None` once the file is closed.
    pub(super) id: Option<Handle>,
    plan: Option<DriverHandle>,
    // Must be dropped after the file is closed.
    pub(super) link_classes: LinkClasses,
    /// Committed datatypes that do not have a name yet, indexed by their future path.
    pub(super) unnamed_types: HashMap<Vec<u8>, Handle>,
    file: File,
}

/// Allocated part of the front region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    left_len_bytes: u64,
    /// Length of the allocated heap blocks.
    heap_len_bytes: u64,
}

/// Result of [`OutputFile::finish`].
#[derive(Debug)]
pub struct WrittenFile {
    /// The file, open for reading and writing, not yet synced.
    pub file: File,
    /// Length of the file.
    pub file_len_bytes: u64,
    /// Length of the metadata in the front region.
    pub metadata_len_bytes: u64,
    /// Length of the front region.
    pub metadata_region_len_bytes: u64,
    /// Length of the metadata after the raw region.
    pub tail_len_bytes: u64,
    /// Number of chunks and contiguous datasets indexed at addresses chosen by the caller.
    pub claim_count: u64,
    /// Number of metadata writes that reached the file.
    pub metadata_write_count: u64,
}

impl OutputFile {
    /// Creates an output file at `path`, which must not exist.
    pub fn create(path: &Path, options: &OutputOptions) -> Result<Self> {
        let io = |operation: &str, source| Hdf5Error::Io {
            path: path.to_path_buf(),
            operation: operation.to_owned(),
            source,
        };
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|source| io("create", source))?;
        Self::create_in(file, path, options)
    }

    /// Creates an HDF5 file in `file`, which is open for reading and writing under `path`. The contents of the raw
    /// region are kept, for claims of an earlier run; everything before it is erased.
    pub fn create_in(file: File, path: &Path, options: &OutputOptions) -> Result<Self> {
        let io = |operation: &str, source| Hdf5Error::Io {
            path: path.to_path_buf(),
            operation: operation.to_owned(),
            source,
        };
        let raw_start = options
            .raw_start()
            .ok_or_else(|| io("reserve metadata", std::io::Error::from(std::io::ErrorKind::FileTooLarge)))?;
        erase(&file, raw_start).map_err(|source| io("erase the metadata of an earlier run", source))?;
        let _library = Library::lock();
        let call = Call::of_file(path);
        let mut plan = DriverHandle::new(&file, raw_start).map_err(|source| io("prepare to write", source))?;
        let access = properties::file_access(call, &plan, options.compat)?;
        let creation = properties::file_creation(call, options)?;
        let name = call.c_string("H5Fcreate", path.as_os_str().as_encoded_bytes())?;
        // SAFETY: valid lists and name, lock held; we own the identifier. The driver ignores the name and uses the
        // descriptor in the plan; exclusive creation has been ensured above.
        let id =
            unsafe { call.handle("H5Fcreate", H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, creation.id(), access.id())) };
        let id = plan.check(path).and(id)?;
        plan.begin();
        let mut output = Self::around(file, path, options.compat, raw_start);
        output.ledger.grouped(b"", options.root_link_order);
        output.ledger.created(b"/", options.root_attribute_order);
        (output.id, output.plan) = (Some(id), Some(plan));
        Ok(output)
    }

    /// Creates an output that is not open yet.
    pub(super) fn around(file: File, path: &Path, compat: Compat, raw_start: u64) -> Self {
        Self {
            path: Arc::from(path),
            compat,
            raw_start,
            raw_end: None,
            ledger: MetadataSizeEstimator::new(compat),
            bound: None,
            parent: None,
            id: None,
            plan: None,
            link_classes: LinkClasses::default(),
            unnamed_types: HashMap::new(),
            file,
        }
    }

    /// Returns the path passed to [`OutputFile::create`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path, to be named in errors while `self` is borrowed mutably.
    pub(super) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// Returns the first address of the raw region, below which no claim may lie.
    pub fn raw_start(&self) -> u64 {
        self.raw_start
    }

    /// Returns another handle of the file, for writing raw data with `pwrite` from any thread.
    pub fn raw_file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| Hdf5Error::Io {
            path: self.path.to_path_buf(),
            operation: "duplicate the descriptor".to_owned(),
            source,
        })
    }

    /// Returns how many more bytes of metadata fit at the front; `u64::MAX` after [`OutputFile::set_raw_end`].
    ///
    /// Operations that may need more fail with [`Hdf5Error::MetadataRegionFull`] before they change anything.
    pub fn metadata_left_bytes(&self) -> u64 {
        let _library = Library::lock();
        self.front_left_bytes()
    }

    /// Declares that all raw data lies below `raw_end`. From now on, metadata that does not fit in front is placed
    /// after it, and claims beyond it are refused. Further calls have no effect.
    pub fn set_raw_end(&mut self, raw_end: u64) {
        let _library = Library::lock();
        if let (Some(plan), None) = (self.plan.as_mut(), self.raw_end) {
            plan.open_tail(raw_end.max(self.raw_start));
            self.raw_end = Some(plan.usage().raw_end);
        }
    }

    /// Writes the remaining metadata, sets the length of the file and closes it. Raw data may be written to claimed
    /// addresses before or after.
    pub fn finish(mut self) -> Result<WrittenFile> {
        let _library = Library::lock();
        let plan = self.close()?;
        let (usage, region_len_bytes) = (plan.usage(), self.raw_start);
        Ok(WrittenFile {
            file: self.file.try_clone().map_err(|source| Hdf5Error::Io {
                path: self.path.to_path_buf(),
                operation: "duplicate the descriptor".to_owned(),
                source,
            })?,
            file_len_bytes: usage.end,
            metadata_len_bytes: usage.front_len_bytes,
            metadata_region_len_bytes: region_len_bytes,
            tail_len_bytes: usage.tail_len_bytes,
            claim_count: usage.claim_count,
            metadata_write_count: usage.write_count,
        })
    }

    // ---- for the other files of this module, which hold the lock ----

    /// Writes libhdf5's pending metadata and closes the file. The returned plan has no failure.
    pub(super) fn close(&mut self) -> Result<DriverHandle> {
        self.parent = None;
        self.unnamed_types.clear();
        let (Some(id), Some(mut plan)) = (self.id.take(), self.plan.take()) else {
            return Err(Call::of_file(&self.path).error("H5Fclose"));
        };
        let before = plan.check(&self.path);
        if before.is_err() {
            plan.abandon();
        } else {
            plan.begin_close();
        }
        let closed = close(&self.path, id, plan, &mut self.link_classes);
        before?;
        let plan = closed?;
        plan.check(&self.path)?;
        Ok(plan)
    }

    /// Takes over a file that libhdf5 has just opened with `plan`.
    pub(super) fn opened_with(&mut self, id: Handle, mut plan: DriverHandle) {
        plan.begin();
        self.raw_end = Some(plan.usage().raw_end);
        (self.id, self.plan) = (Some(id), Some(plan));
    }

    /// Returns the file's identifier.
    pub(super) fn id(&self, call: Call<'_>) -> Result<i64> {
        self.id.as_ref().map(Handle::id).ok_or_else(|| call.error("H5Fopen"))
    }

    /// Returns the file's handle.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.id.as_ref()
    }

    pub(super) fn plan(&mut self, call: Call<'_>) -> Result<&mut DriverHandle> {
        self.plan.as_mut().ok_or_else(|| call.error("H5Fopen"))
    }

    /// Runs `write`, which extends the header of one object by no more than `len_bytes`.
    pub(super) fn growing<T>(&self, len_bytes: u64, write: impl FnOnce() -> T) -> T {
        match &self.plan {
            Some(plan) => plan.growing(len_bytes, write),
            None => write(),
        }
    }

    pub(super) fn compat(&self) -> Compat {
        self.compat
    }

    pub(super) fn raw_end(&self) -> Option<u64> {
        self.raw_end
    }

    /// Fails with [`Hdf5Error::MetadataRegionFull`] unless `needed_len_bytes` of metadata fit in addition to the
    /// reserved space.
    pub(super) fn require(&mut self, needed_len_bytes: u64) -> Result<()> {
        let Some(plan) = &self.plan else { return Err(Call::of_file(&self.path).error("H5Fopen")) };
        let left_len_bytes = plan.front_left_bytes();
        let spoken_for_len_bytes = self.ledger.spoken_for_len_bytes(plan.usage().heap_len_bytes);
        let bound_len_bytes = needed_len_bytes;
        let needed_len_bytes = needed_len_bytes.saturating_add(spoken_for_len_bytes);
        if needed_len_bytes <= left_len_bytes {
            self.bound = Some((self.front(), bound_len_bytes));
            return Ok(());
        }
        Err(Hdf5Error::MetadataRegionFull { path: self.path.to_path_buf(), needed_len_bytes, left_len_bytes })
    }

    /// Allows the next operation to use this much reserved space, without a check.
    pub(super) fn allow(&mut self, len_bytes: u64) {
        self.bound = Some((self.front(), len_bytes));
    }

    /// Returns the bytes left in front. The caller holds the lock.
    pub(super) fn front_left_bytes(&self) -> u64 {
        self.plan.as_ref().map_or(0, DriverHandle::front_left_bytes)
    }

    /// Returns a copy of the allocated bytes in front, for later comparison. The caller holds the lock.
    pub(super) fn front(&self) -> Front {
        let heap_len_bytes = self.plan.as_ref().map_or(0, |plan| plan.usage().heap_len_bytes);
        Front { left_len_bytes: self.front_left_bytes(), heap_len_bytes }
    }

    /// Returns the bytes that operations have taken since `before`, excluding blocks of heaps: libhdf5 assigns
    /// addresses to these during whatever operation causes its cache to evict them, and the ledger reserves their
    /// space.
    pub(super) fn taken_since(&self, before: Front) -> u64 {
        let now = self.front();
        let all_len_bytes = before.left_len_bytes.saturating_sub(now.left_len_bytes);
        all_len_bytes.saturating_sub(now.heap_len_bytes.saturating_sub(before.heap_len_bytes))
    }

    /// Returns the result of calls, or the failure that the driver hid from them.
    pub(super) fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Some(plan) = &self.plan {
            plan.check(&self.path)?;
            if let Some((before, bound)) = self.bound.take()
                && cfg!(debug_assertions)
            {
                // Indirect blocks of heaps are not blocks of heaps to the driver.
                let taken = self.taken_since(before).saturating_sub(self.ledger.hidden_lists_len_bytes());
                assert!(taken <= bound, "an operation bounded by {bound} bytes of metadata took {taken}");
            }
        }
        result
    }
}

/// Zeroes the bytes that `file` has below `end`.
fn erase(file: &File, end: u64) -> std::io::Result<()> {
    let end = end.min(file.metadata()?.len());
    let zeros = vec![0; end.min(ZEROS_LEN_BYTES) as usize];
    let mut at = 0;
    while at < end {
        let len_bytes = (end - at).min(ZEROS_LEN_BYTES);
        file.write_all_at(&zeros[..len_bytes as usize], at)?;
        at += len_bytes;
    }
    Ok(())
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        let _library = Library::lock();
        self.parent = None;
        self.unnamed_types.clear();
        if let (Some(id), Some(mut plan)) = (self.id.take(), self.plan.take()) {
            plan.abandon();
            // Drop cannot report errors, and the file is abandoned anyway.
            let _ = close(&self.path, id, plan, &mut self.link_classes);
        }
    }
}

/// Closes the file; returns the plan only if libhdf5 no longer uses it. The caller holds the lock.
fn close(path: &Path, id: Handle, plan: DriverHandle, link_classes: &mut LinkClasses) -> Result<DriverHandle> {
    let call = Call::of_file(path);
    // SAFETY: the only reference of the file, released by `into_raw`; lock held. With the strong close degree, objects
    // that are still open are closed with it.
    let closed = call.status("H5Fclose", unsafe { H5Fclose(id.into_raw()) });
    match closed {
        Ok(_) => {
            *link_classes = LinkClasses::default();
            Ok(plan)
        }
        Err(error) => {
            let hidden = plan.check(path);
            plan.leak();
            hidden.and(Err(error))
        }
    }
}
