//! Access to the nodes of chunk indexes: the source of their bytes, and the cache of nodes.
//!
//! Invariant: a node with a checksum is returned only if the checksum matches.

use super::grid::{ChunkGrid, index_address};
use super::{ChunkRecord, Encoding};
use crate::error::{Hdf5Error, Result};
use crate::native::checksum::lookup3;
use crate::source::{InputFile, MetadataView};
use raddle_core::pooled_file::FileIdentity;
use std::ops::{ControlFlow, Range};

/// Callback for each chunk, which may end the walk.
pub(super) type Visit<'a> = dyn FnMut(&ChunkRecord<'_>) -> ControlFlow<()> + 'a;

/// Source of index bytes.
pub(super) trait IndexSource {
    /// Returns the file that holds the index.
    fn file(&self) -> &InputFile;
    /// Fills `out` with at least `needed_len_bytes` bytes at `address`, and up to `wanted_len_bytes` if the file is
    /// long enough, with one read if possible.
    fn read(
        &mut self,
        address: u64,
        needed_len_bytes: usize,
        wanted_len_bytes: usize,
        out: &mut Vec<u8>,
        what: &str,
    ) -> Result<()>;
}

impl IndexSource for MetadataView<'_> {
    fn file(&self) -> &InputFile {
        MetadataView::file(self)
    }

    fn read(&mut self, address: u64, needed: usize, wanted: usize, out: &mut Vec<u8>, what: &str) -> Result<()> {
        let len = clip_to_file(MetadataView::file(self), address, needed, wanted);
        let bytes = self.bytes(address, len, what)?;
        out.clear();
        out.extend_from_slice(bytes);
        Ok(())
    }
}

/// Source that reads index bytes with one pread each. It is used by workers, which have a node cache and need no block
/// cache.
pub(super) struct DirectSource<'f>(pub &'f InputFile);

impl IndexSource for DirectSource<'_> {
    fn file(&self) -> &InputFile {
        self.0
    }

    fn read(&mut self, address: u64, needed: usize, wanted: usize, out: &mut Vec<u8>, what: &str) -> Result<()> {
        let len = clip_to_file(self.0, address, needed, wanted);
        // Checked before the buffer grows: a length taken from the file must not allocate more than the file contains.
        self.0.check_range(address, len as u64, what)?;
        out.resize(len, 0);
        self.0.read_exact_at(address, out, what)
    }
}

fn clip_to_file(file: &InputFile, address: u64, needed: usize, wanted: usize) -> usize {
    let left = usize::try_from(file.len_bytes().saturating_sub(address)).unwrap_or(usize::MAX);
    wanted.min(left).max(needed)
}

/// Index nodes kept between walks, one per slot (a level of a tree, a kind of block). Consecutive boxes of a dataset
/// mostly use the same nodes.
#[derive(Debug, Default)]
pub(super) struct NodeCache {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// File and address of the node.
    key: Option<(FileIdentity, u64)>,
    /// Length for which the checksum was verified; 0 for nodes without a checksum.
    verified_len_bytes: usize,
    bytes: Vec<u8>,
}

impl NodeCache {
    /// Returns the bytes of the node in `slot`, which are empty if no node is loaded.
    pub fn bytes(&self, slot: usize) -> &[u8] {
        self.slots.get(slot).map_or(&[], |slot| &slot.bytes)
    }
}

/// Protection of a node against damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    /// The last four bytes are a checksum of the preceding ones.
    Checksum,
    /// No protection.
    None,
}

/// Access to index nodes during a walk: source, cache, and the sizes of stored fields.
pub(super) struct IndexReader<'a> {
    pub source: &'a mut dyn IndexSource,
    pub nodes: &'a mut NodeCache,
    pub encoding: Encoding,
}

/// Kind of a node: its signature and its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeKind {
    /// First four bytes of the node.
    pub signature: &'static [u8; 4],
    /// Name for messages.
    pub what: &'static str,
}

impl IndexReader<'_> {
    /// Loads the node of `len_bytes` at `address` into `slot` and returns its bytes.
    pub fn node(
        &mut self,
        slot: usize,
        address: u64,
        len_bytes: usize,
        protection: Protection,
        what: &str,
    ) -> Result<&[u8]> {
        self.node_up_to(slot, address, len_bytes, len_bytes, protection, what)
    }

    /// Like [`IndexReader::node`], but reads up to `wanted_len_bytes` if the file is long enough.
    pub fn node_up_to(
        &mut self,
        slot: usize,
        address: u64,
        needed_len_bytes: usize,
        wanted_len_bytes: usize,
        protection: Protection,
        what: &str,
    ) -> Result<&[u8]> {
        while self.nodes.slots.len() <= slot {
            self.nodes.slots.push(Slot::default());
        }
        let key = (self.source.file().identity(), address);
        let verified_len_bytes = if protection == Protection::Checksum { needed_len_bytes } else { 0 };
        let node = &mut self.nodes.slots[slot];
        if node.key != Some(key) || node.verified_len_bytes != verified_len_bytes || node.bytes.len() < needed_len_bytes
        {
            node.key = None;
            self.source.read(address, needed_len_bytes, wanted_len_bytes, &mut node.bytes, what)?;
            if protection == Protection::Checksum {
                let (content, stored) = node.bytes.split_at(needed_len_bytes.saturating_sub(4));
                let stored = uint(stored, 0, stored.len().min(4));
                if u64::from(lookup3(content)) != stored {
                    return Err(self.malformed(address, format!("{what}: checksum does not match")));
                }
            }
            let node = &mut self.nodes.slots[slot];
            (node.key, node.verified_len_bytes) = (Some(key), verified_len_bytes);
        }
        Ok(&self.nodes.slots[slot].bytes)
    }

    /// Like [`IndexReader::node`], for a structure with a signature, version 0 and a checksum.
    pub fn node_of(&mut self, kind: &NodeKind, slot: usize, address: u64, len_bytes: usize) -> Result<()> {
        self.node(slot, address, len_bytes, Protection::Checksum, kind.what)?;
        self.check_signature(self.nodes.bytes(slot), kind.signature, 0, address, kind.what)
    }

    /// Returns the absolute offset of the stored address at `at`, or `None` if it is the undefined address.
    #[inline]
    pub fn address(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let width = self.encoding.address_len();
        let stored = uint(bytes, at, width);
        if stored == u64::MAX >> (64 - 8 * width) {
            return None;
        }
        // A sum beyond 64 bits lies beyond any file: saturate, so that the range check refuses it.
        Some(stored.saturating_add(self.encoding.base))
    }

    /// Like [`IndexReader::address`], for fields in which the format does not allow the undefined address.
    #[inline]
    pub fn defined_address(&self, bytes: &[u8], at: usize, node_address: u64, what: &str) -> Result<u64> {
        self.address(bytes, at).ok_or_else(|| self.malformed(node_address, format!("{what}: undefined address")))
    }

    /// Returns the range where chunks may lie: after the superblock, in the file.
    pub fn chunk_bounds(&self) -> Range<u64> {
        // The shortest superblock (versions 2 and 3 with 8-byte addresses) is 48 bytes.
        const SUPERBLOCK_LEN_BYTES: u64 = 48;
        self.encoding.base.saturating_add(SUPERBLOCK_LEN_BYTES)..self.source.file().len_bytes()
    }

    /// Checks that the chunk lies inside the file, after the superblock.
    pub fn check_chunk(&self, address: u64, len_bytes: u64) -> Result<()> {
        if address < self.chunk_bounds().start {
            return Err(self.malformed(address, "chunk lies over the superblock".to_owned()));
        }
        self.source.file().check_range(address, len_bytes, "chunk")
    }

    pub fn malformed(&self, address: u64, what: String) -> Hdf5Error {
        Hdf5Error::Malformed { path: self.source.file().path().to_path_buf(), address, what }
    }

    pub fn unsupported(&self, address: u64, what: String) -> Hdf5Error {
        Hdf5Error::Unsupported { path: self.source.file().path().to_path_buf(), address, what }
    }

    /// Checks that `bytes` begin with `signature` and `version`.
    pub fn check_signature(
        &self,
        bytes: &[u8],
        signature: &[u8; 4],
        version: u8,
        address: u64,
        what: &str,
    ) -> Result<()> {
        if !bytes.starts_with(signature) {
            return Err(self.malformed(address, format!("{what}: wrong signature")));
        }
        match bytes.get(4) {
            Some(&stored) if stored == version => Ok(()),
            stored => Err(self.unsupported(address, format!("{what} of version {}", stored.copied().unwrap_or(0)))),
        }
    }

    /// Checks that addresses and lengths are stored in 2, 4 or 8 bytes.
    pub fn check_encoding(&self) -> Result<()> {
        let fits = |size: u8| matches!(size, 2 | 4 | 8);
        if fits(self.encoding.address_len_bytes) && fits(self.encoding.length_len_bytes) {
            return Ok(());
        }
        Err(self.unsupported(
            self.encoding.base,
            format!(
                "addresses of {} and lengths of {} bytes",
                self.encoding.address_len_bytes, self.encoding.length_len_bytes
            ),
        ))
    }
}

/// Reads the little-endian number of `width` (0 to 8) bytes at `at`.
// Inlined so that the usual widths are single loads: a leaf of a chunk index needs five numbers per chunk.
#[inline]
pub(super) fn uint(bytes: &[u8], at: usize, width: usize) -> u64 {
    let bytes = &bytes[at..at + width];
    if let Ok(number) = bytes.try_into() {
        return u64::from_le_bytes(number);
    }
    if let Ok(number) = bytes.try_into() {
        return u64::from(u32::from_le_bytes(number));
    }
    odd_uint(bytes)
}

fn odd_uint(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

/// Creates the error for a chunk origin that is not on the chunk grid.
pub(super) fn off_grid(reader: &IndexReader<'_>, grid: &ChunkGrid<'_>, origin: &[u64]) -> Hdf5Error {
    reader.malformed(
        index_address(grid.index),
        format!(
            "chunk origin {origin:?} is not a multiple of the chunk shape {:?} or lies beyond the maximum extent {:?}",
            grid.chunk_shape, grid.max_dims
        ),
    )
}
