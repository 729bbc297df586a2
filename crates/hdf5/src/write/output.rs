//! The output file: its life from creation to the end, and the room for its metadata.

use super::driver::Plan;
use super::links::LinkClasses;
use super::predict::{self, Ledger};
use super::properties;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use crate::model::CreationOrder;
use hdf5_metno_sys::h5f::{H5F_ACC_EXCL, H5Fclose, H5Fcreate};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The oldest HDF5 that is to read the output: the low bound of `H5Pset_libver_bounds`.
///
/// Objects that the format of a bound cannot express are written in a newer one (a complex number needs HDF5 2.0
/// whatever the bound), so every input can be merged; all other objects stay readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// The oldest format for each object, as HDF5 1.8 and h5py write by default. No attribute above 64 KiB.
    Earliest,
    /// HDF5 1.8 and later: checksummed metadata, compact and dense groups and attributes.
    #[default]
    V18,
    /// HDF5 1.10 and later: chunk indexes of constant time and of half the size.
    V110,
    /// The newest that the linked libhdf5 writes.
    Latest,
}

/// Settings of an output.
#[derive(Debug, Clone)]
pub struct OutputOptions {
    /// Formats to use.
    pub compat: Compat,
    /// Length of the region at the front that is kept for metadata, best from [`super::MetadataPrediction`]. Rounded
    /// up to whole pages.
    pub metadata_region_len_bytes: u64,
    /// Creation order of links in the root group.
    pub root_link_order: CreationOrder,
    /// Creation order of attributes of the root group.
    pub root_attribute_order: CreationOrder,
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self {
            compat: Compat::default(),
            metadata_region_len_bytes: 1 << 20,
            root_link_order: CreationOrder::default(),
            root_attribute_order: CreationOrder::default(),
        }
    }
}

impl OutputOptions {
    /// First address of the raw region; `None` if the metadata region is longer than a file can be.
    pub fn raw_start(&self) -> Option<u64> {
        self.metadata_region_len_bytes
            .max(predict::MIN_REGION_LEN_BYTES)
            .checked_next_multiple_of(REGION_ALIGNMENT_BYTES)
            .filter(|&len| len <= i64::MAX as u64 / 2)
    }
}

/// The raw region begins on a page, so that large writes into it are aligned.
const REGION_ALIGNMENT_BYTES: u64 = 4096;

/// Zeros are written in pieces of this length.
const ZEROS_LEN_BYTES: u64 = 1 << 20;

/// An HDF5 file being written.
///
/// Dropping it without [`OutputFile::finish`] gives the file up: what is on disk then is no HDF5 file, or none that
/// opens (the superblock is written last).
pub struct OutputFile {
    path: Arc<Path>,
    compat: Compat,
    raw_start: u64,
    raw_end: Option<u64>,
    pub(super) ledger: Ledger,
    /// The front when the running operation began, and the bytes allowed to it: tests compare with what it took.
    bound: Option<(Front, u64)>,
    /// The group of the last created object: datasets come group by group.
    pub(super) parent: Option<(Vec<u8>, Handle)>,
    /// `None` once closed.
    pub(super) id: Option<Handle>,
    plan: Option<Plan>,
    // Dropped after the file is closed.
    pub(super) link_classes: LinkClasses,
    /// Committed datatypes that have no name yet, by the path that they will have.
    pub(super) unnamed_types: HashMap<Vec<u8>, Handle>,
    file: File,
}

/// How much of the front region is given out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    left_len_bytes: u64,
    /// What blocks of heaps have.
    heap_len_bytes: u64,
}

/// What [`OutputFile::finish`] leaves behind.
#[derive(Debug)]
pub struct WrittenFile {
    /// The file, open for reading and writing, not yet synced.
    pub file: File,
    /// Its length.
    pub file_len_bytes: u64,
    /// Metadata in the front region.
    pub metadata_len_bytes: u64,
    /// Length of that region.
    pub metadata_region_len_bytes: u64,
    /// Metadata behind the raw region.
    pub tail_len_bytes: u64,
    /// Chunks and contiguous datasets indexed at addresses of the caller.
    pub claim_count: u64,
    /// Writes of metadata that reached the file.
    pub metadata_write_count: u64,
}

impl OutputFile {
    /// Creates `path`, which must not exist.
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

    /// Creates the HDF5 file in `file`, which is open for reading and writing under `path`. What lies in the raw region
    /// stays as it is, for claims of an earlier run; what lies before it is erased.
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
        let mut plan = Plan::new(&file, raw_start).map_err(|source| io("prepare to write", source))?;
        let access = properties::file_access(call, &plan, options.compat)?;
        let creation = properties::file_creation(call, options)?;
        let name = call.c_string("H5Fcreate", path.as_os_str().as_encoded_bytes())?;
        // SAFETY: valid lists and name, lock held; the identifier is ours. The driver ignores the name and uses the
        // descriptor that the plan carries, so exclusive creation has happened above.
        let id =
            unsafe { call.handle("H5Fcreate", H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, creation.id(), access.id())) };
        let id = plan.check(path).and(id)?;
        plan.begin();
        let mut output = Self::around(file, path, options.compat, raw_start);
        output.ledger.grouped(b"", options.root_link_order);
        output.ledger.made(b"/", options.root_attribute_order);
        (output.id, output.plan) = (Some(id), Some(plan));
        Ok(output)
    }

    /// An output that is not open yet.
    pub(super) fn around(file: File, path: &Path, compat: Compat, raw_start: u64) -> Self {
        Self {
            path: Arc::from(path),
            compat,
            raw_start,
            raw_end: None,
            ledger: Ledger::new(compat),
            bound: None,
            parent: None,
            id: None,
            plan: None,
            link_classes: LinkClasses::default(),
            unnamed_types: HashMap::new(),
            file,
        }
    }

    /// Path as given to [`OutputFile::create`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path, to be named in errors while `self` changes.
    pub(super) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// First address of the raw region: claims lie from here on.
    pub fn raw_start(&self) -> u64 {
        self.raw_start
    }

    /// Another handle of the file, for writing raw data with `pwrite` from any thread.
    pub fn raw_file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| Hdf5Error::Io {
            path: self.path.to_path_buf(),
            operation: "duplicate the descriptor".to_owned(),
            source,
        })
    }

    /// Bytes that metadata may still take at the front; `u64::MAX` after [`OutputFile::set_raw_end`].
    ///
    /// Operations that may need more fail with [`Hdf5Error::MetadataRegionFull`] before they change anything.
    pub fn metadata_left_bytes(&self) -> u64 {
        let _library = Library::lock();
        self.front_left_bytes()
    }

    /// Tells that all raw data lies below `raw_end`: from now on metadata that does not fit in front goes behind it,
    /// and no claim beyond it is taken. Calling it again changes nothing.
    pub fn set_raw_end(&mut self, raw_end: u64) {
        let _library = Library::lock();
        if let (Some(plan), None) = (self.plan.as_mut(), self.raw_end) {
            plan.open_tail(raw_end.max(self.raw_start));
            self.raw_end = Some(plan.usage().raw_end);
        }
    }

    /// Writes the rest of the metadata and closes the file. Raw data may be written before or after, by whoever
    /// claimed its place; the length is set here.
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

    /// Closes the file with all that libhdf5 has still to write. What comes back has no failure.
    pub(super) fn close(&mut self) -> Result<Plan> {
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

    /// Goes on with a file that libhdf5 has just opened with `plan`.
    pub(super) fn opened_with(&mut self, id: Handle, mut plan: Plan) {
        plan.begin();
        self.raw_end = Some(plan.usage().raw_end);
        (self.id, self.plan) = (Some(id), Some(plan));
    }

    /// The file's identifier.
    pub(super) fn id(&self, call: Call<'_>) -> Result<i64> {
        self.id.as_ref().map(Handle::id).ok_or_else(|| call.error("H5Fopen"))
    }

    /// The file's handle.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.id.as_ref()
    }

    pub(super) fn plan(&mut self, call: Call<'_>) -> Result<&mut Plan> {
        self.plan.as_mut().ok_or_else(|| call.error("H5Fopen"))
    }

    /// Runs `write`, by which the header of one object grows by no more than `len_bytes`.
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

    /// Fails with [`Hdf5Error::MetadataRegionFull`] unless `needed_len_bytes` of metadata fit, beside what is spoken
    /// for.
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

    /// The next operation may take this much, which has been promised to it: it is not refused.
    pub(super) fn allow(&mut self, len_bytes: u64) {
        self.bound = Some((self.front(), len_bytes));
    }

    /// Bytes left in front; the caller holds the lock.
    pub(super) fn front_left_bytes(&self) -> u64 {
        self.plan.as_ref().map_or(0, Plan::front_left_bytes)
    }

    /// Returns how much of the front is given out, to be compared later; the caller holds the lock.
    pub(super) fn front(&self) -> Front {
        let heap_len_bytes = self.plan.as_ref().map_or(0, |plan| plan.usage().heap_len_bytes);
        Front { left_len_bytes: self.front_left_bytes(), heap_len_bytes }
    }

    /// Returns the bytes that operations have taken since then, without blocks of heaps: libhdf5 gives these addresses during
    /// whatever operation makes its cache evict them, and the ledger reserves their room.
    pub(super) fn taken_since(&self, before: Front) -> u64 {
        let now = self.front();
        let all_len_bytes = before.left_len_bytes.saturating_sub(now.left_len_bytes);
        all_len_bytes.saturating_sub(now.heap_len_bytes.saturating_sub(before.heap_len_bytes))
    }

    /// The result of calls, or the failure that the driver hid from them.
    pub(super) fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Some(plan) = &self.plan {
            plan.check(&self.path)?;
            if let Some((before, bound)) = self.bound.take()
                && cfg!(debug_assertions)
            {
                let taken = self.taken_since(before);
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
            // Nobody is there to tell; the file is given up anyway.
            let _ = close(&self.path, id, plan, &mut self.link_classes);
        }
    }
}

/// Closes the file; a plan comes back only when libhdf5 holds it no longer. The caller holds the lock.
fn close(path: &Path, id: Handle, plan: Plan, link_classes: &mut LinkClasses) -> Result<Plan> {
    let call = Call::of_file(path);
    // SAFETY: the one reference of the file, given up by `into_raw`; lock held. With the strong close degree, objects
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
