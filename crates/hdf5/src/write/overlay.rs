//! Changed bytes of an existing file, kept in memory until the caller writes them.
//!
//! The planning driver reads and writes the old part of an edited file through an [`Overlay`]: changed pages are read
//! from memory, all others from the file. The result of an edit is the list of [`Change`]s that differ from the file.
//! Invariant: nothing here writes to the file.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Length of the pages in which changes are kept: the unit that a file system writes. Related metadata is small and
/// stored close together, so smaller pages would save little.
const PAGE_LEN_BYTES: u64 = 4096;

/// A run of changed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Address of the first byte in the file.
    pub address: u64,
    /// New contents.
    pub bytes: Vec<u8>,
}

/// An existing file with pending changes.
pub(super) struct Overlay {
    file: File,
    end: u64,
    /// Changed pages by number; the last page of the file may be shorter.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    /// Creates an overlay over the first `end` bytes of `file`, without changes.
    pub fn new(file: File, end: u64) -> Self {
        Self { file, end, pages: BTreeMap::new() }
    }

    /// Returns the end of the old part of the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads `out.len()` bytes at `address`, all of which must lie before the end.
    pub fn read(&self, address: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.check(address, out.len())?;
        let first_page = address / PAGE_LEN_BYTES;
        let last_page = (address + out.len() as u64).div_ceil(PAGE_LEN_BYTES);
        if self.pages.range(first_page..last_page).next().is_none() {
            return self.file.read_exact_at(out, address);
        }
        for_each_page(address, out.len(), |page, within, range| match self.pages.get(&page) {
            Some(bytes) => {
                let len = range.len();
                out[range].copy_from_slice(&bytes[within..within + len]);
                Ok(())
            }
            None => self.file.read_exact_at(&mut out[range], page * PAGE_LEN_BYTES + within as u64),
        })
    }

    /// Changes the bytes at `address`, all of which must lie before the end.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.check(address, bytes.len())?;
        for_each_page(address, bytes.len(), |page, within, range| {
            let content = match self.pages.entry(page) {
                std::collections::btree_map::Entry::Occupied(changed) => changed.into_mut(),
                std::collections::btree_map::Entry::Vacant(free) => free.insert(read_page(&self.file, self.end, page)?),
            };
            content[within..within + range.len()].copy_from_slice(&bytes[range]);
            Ok(())
        })
    }

    /// Returns the differences from the file in rising order, with neighbouring pages joined.
    pub fn into_changes(self) -> std::io::Result<Vec<Change>> {
        let mut changes: Vec<Change> = Vec::new();
        for (page, bytes) in self.pages {
            if read_page(&self.file, self.end, page)? == bytes {
                continue;
            }
            let address = page * PAGE_LEN_BYTES;
            match changes.last_mut() {
                Some(last) if last.address + last.bytes.len() as u64 == address => last.bytes.extend_from_slice(&bytes),
                _ => changes.push(Change { address, bytes }),
            }
        }
        Ok(changes)
    }

    fn check(&self, address: u64, len: usize) -> std::io::Result<()> {
        match address.checked_add(len as u64) {
            Some(end) if end <= self.end => Ok(()),
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }
}

fn read_page(file: &File, end: u64, page: u64) -> std::io::Result<Vec<u8>> {
    let start = page * PAGE_LEN_BYTES;
    let mut bytes = vec![0; (end - start).min(PAGE_LEN_BYTES) as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Calls `visit(page, first byte within it, range of the run)` for each page that a run of bytes touches.
fn for_each_page(
    address: u64,
    len: usize,
    mut visit: impl FnMut(u64, usize, std::ops::Range<usize>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut at = 0;
    while at < len {
        let (page, within) = ((address + at as u64) / PAGE_LEN_BYTES, (address + at as u64) % PAGE_LEN_BYTES);
        let count = ((PAGE_LEN_BYTES - within) as usize).min(len - at);
        visit(page, within as usize, at..at + count)?;
        at += count;
    }
    Ok(())
}

/// `struct raddle_overlay` of the shim.
#[repr(C)]
pub(super) struct RawOverlay {
    context: *mut c_void,
    read: unsafe extern "C" fn(*mut c_void, u64, usize, *mut c_void) -> c_int,
    write: unsafe extern "C" fn(*mut c_void, u64, usize, *const c_void) -> c_int,
}

impl RawOverlay {
    /// Creates the interface for the driver. The caller keeps `overlay` in place while its functions may be called.
    pub fn of(overlay: &mut Overlay) -> Self {
        Self { context: std::ptr::from_mut(overlay).cast(), read: read_overlay, write: write_overlay }
    }
}

fn error_number(result: std::io::Result<()>) -> c_int {
    result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// Reads from an overlay on behalf of the driver.
///
/// # Safety
/// `context` must belong to a [`RawOverlay`] whose overlay lives and is not used elsewhere; `out` must have room for
/// `len_bytes`.
unsafe extern "C" fn read_overlay(context: *mut c_void, address: u64, len_bytes: usize, out: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller; the driver's callbacks run under libhdf5's lock, one at a time. libhdf5's
    // buffer may be uninitialised, so it is zeroed before it becomes a slice.
    let (overlay, out) = unsafe {
        std::ptr::write_bytes(out.cast::<u8>(), 0, len_bytes);
        (&*context.cast::<Overlay>(), std::slice::from_raw_parts_mut(out.cast::<u8>(), len_bytes))
    };
    error_number(overlay.read(address, out))
}

/// Writes to an overlay on behalf of the driver.
///
/// # Safety
/// As for [`read_overlay`]; `bytes` must have `len_bytes`.
unsafe extern "C" fn write_overlay(
    context: *mut c_void,
    address: u64,
    len_bytes: usize,
    bytes: *const c_void,
) -> c_int {
    // SAFETY: as above.
    let (overlay, bytes) =
        unsafe { (&mut *context.cast::<Overlay>(), std::slice::from_raw_parts(bytes.cast::<u8>(), len_bytes)) };
    error_number(overlay.write(address, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(len: usize) -> (Overlay, Vec<u8>) {
        let file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
        file.write_all_at(&content, 0).unwrap();
        (Overlay::new(file, len as u64), content)
    }

    #[test]
    fn changes_are_seen_and_the_file_stays_as_it_was() {
        let (mut overlay, mut content) = overlay(10_000);
        for (address, len) in [(4_090, 20), (0, 1), (9_990, 10), (5_000, 4_500)] {
            let bytes: Vec<u8> = (0..len).map(|at| (at + address) as u8 ^ 0x5A).collect();
            overlay.write(address as u64, &bytes).unwrap();
            content[address..address + len].copy_from_slice(&bytes);
        }
        let mut read = vec![0; 10_000];
        overlay.read(0, &mut read).unwrap();
        assert_eq!(read, content);
        let mut part = vec![0; 30];
        overlay.read(4_085, &mut part).unwrap();
        assert_eq!(part, content[4_085..4_115]);
        let file = overlay.file.try_clone().unwrap();
        let changes = overlay.into_changes().unwrap();
        assert_eq!(changes.len(), 1, "neighbouring pages are joined");
        for change in changes {
            file.write_all_at(&change.bytes, change.address).unwrap();
        }
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, content);
        assert_eq!(file.metadata().unwrap().len(), 10_000);
    }

    #[test]
    fn nothing_lies_beyond_the_end_and_what_is_the_same_is_not_a_change() {
        let (mut overlay, content) = overlay(5_000);
        assert!(overlay.write(4_999, b"ab").is_err() && overlay.read(4_999, &mut [0; 2]).is_err());
        assert!(overlay.write(u64::MAX, b"a").is_err());
        overlay.write(100, &content[100..200]).unwrap();
        assert_eq!(overlay.into_changes().unwrap(), []);
    }
}
