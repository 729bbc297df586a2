//! Accounting of a file's bytes by use.
//!
//! Raw data is located by layouts and chunk indexes. Metadata is everything that the native reader had to read to find
//! it (a recording [`MetadataView`](crate::source::MetadataView) notes every range). Heap collections are searched for
//! in the remainder. The rest is free space, structures to which no object refers any longer, or unused room in nodes.

use crate::error::Result;
use crate::ranges::Ranges;
use crate::source::InputFile;
use serde::{Deserialize, Serialize};

/// Bytes of a file by use; they add up to its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceUse {
    /// Length of chunks and contiguous data.
    pub raw_len_bytes: u64,
    /// Length of superblock, object headers (compact data included), links and chunk indexes.
    pub metadata_len_bytes: u64,
    /// Global heap: values of variable length, references to regions, mappings of virtual datasets.
    pub heap_len_bytes: u64,
    /// Length of the user block before the superblock.
    pub userblock_len_bytes: u64,
    /// Number of bytes that belong to no object: free space, leftovers, unused room in nodes.
    pub unused_len_bytes: u64,
}

/// First bytes of a global heap collection: signature, version and reserved bytes.
const COLLECTION_SIGNATURE: &[u8; 8] = b"GCOL\x01\0\0\0";
/// Offset of a collection's size, which follows the signature.
const COLLECTION_SIZE_AT: usize = COLLECTION_SIGNATURE.len();
/// Bytes searched at a time.
const BLOCK_LEN_BYTES: u64 = 64 << 10;
/// Maximum number of bytes searched outside of collections, about 1 s of work. If a file has more leftovers, some of
/// its heap may be counted as unused.
const MAX_SEARCH_BYTES: u64 = 1 << 30;

/// Ranges found by an inspection, before they are counted.
#[derive(Debug, Default)]
pub(super) struct SpaceFindings {
    /// Raw data.
    pub raw: Ranges,
    /// Ranges of the bytes read as metadata.
    pub metadata: Ranges,
    /// Length of the user block.
    pub userblock_len_bytes: u64,
    /// Size of stored lengths: 2, 4 or 8 bytes.
    pub length_len_bytes: u8,
    /// Whether any type has values, or any dataset its mapping, in the global heap.
    pub may_have_heap: bool,
}

impl SpaceFindings {
    /// Divides the length of `file` by use.
    pub fn account(self, file: &InputFile) -> Result<SpaceUse> {
        let file_len_bytes = file.len_bytes();
        let userblock_len_bytes = self.userblock_len_bytes.min(file_len_bytes);
        let mut known = Ranges::default();
        known.push(0, userblock_len_bytes);
        known.extend(&self.raw);
        let raw_len_bytes = known.len_bytes_below(file_len_bytes) - userblock_len_bytes;
        known.extend(&self.metadata);
        let known_len_bytes = known.len_bytes_below(file_len_bytes);
        let heap_len_bytes = if self.may_have_heap { self.heap_len_bytes(file, &mut known)? } else { 0 };
        Ok(SpaceUse {
            raw_len_bytes,
            metadata_len_bytes: known_len_bytes - raw_len_bytes - userblock_len_bytes,
            heap_len_bytes,
            userblock_len_bytes,
            unused_len_bytes: file_len_bytes - known_len_bytes - heap_len_bytes,
        })
    }

    /// Returns the bytes of global heap collections in the gaps between `known` ranges. Collections may begin anywhere:
    /// since version 2 of the superblock nothing in a file is aligned.
    fn heap_len_bytes(&self, file: &InputFile, known: &mut Ranges) -> Result<u64> {
        let (mut found, mut left_len_bytes) = (0, MAX_SEARCH_BYTES);
        let mut block = Vec::new();
        for (start, end) in known.gaps(file.len_bytes()) {
            let mut at = start;
            while end - at >= COLLECTION_SIGNATURE.len() as u64 && left_len_bytes > 0 {
                // Most collections begin where another ends.
                if let Some(len_bytes) = self.collection_len_bytes(file, at, end)? {
                    found += len_bytes;
                    at += len_bytes;
                    continue;
                }
                block.resize((end - at).min(BLOCK_LEN_BYTES) as usize, 0);
                file.read_exact_at(at, &mut block, "unused space")?;
                left_len_bytes = left_len_bytes.saturating_sub(block.len() as u64);
                let behind = block[1..].windows(COLLECTION_SIGNATURE.len());
                let place = behind.clone().position(|bytes| bytes == COLLECTION_SIGNATURE);
                // A signature cut by the end of the block is found in the next one.
                at += 1 + place.unwrap_or(behind.len()) as u64;
            }
        }
        Ok(found)
    }

    /// Returns the length of the collection at `at`, if there is one that ends by `end`.
    fn collection_len_bytes(&self, file: &InputFile, at: u64, end: u64) -> Result<Option<u64>> {
        let mut header = [0; COLLECTION_SIZE_AT + 8];
        let size_len_bytes = usize::from(self.length_len_bytes).min(8);
        let header = &mut header[..COLLECTION_SIZE_AT + size_len_bytes];
        if end - at < header.len() as u64 {
            return Ok(None);
        }
        file.read_exact_at(at, header, "heap collection")?;
        let (signature, size) = header.split_at(COLLECTION_SIZE_AT);
        let len_bytes = size.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let fits = signature.starts_with(COLLECTION_SIGNATURE) && len_bytes > 0 && len_bytes <= end - at;
        Ok(fits.then_some(len_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::NamedTempFile, InputFile) {
        let named = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(named.path(), bytes).unwrap();
        let file = InputFile::open(named.path()).unwrap();
        (named, file)
    }

    #[test]
    fn every_byte_has_one_use() {
        let mut bytes = vec![0; 1000];
        // Not aligned, as in files of the newer formats.
        bytes[603..611].copy_from_slice(COLLECTION_SIGNATURE);
        bytes[611..619].copy_from_slice(&200_u64.to_le_bytes());
        let (_named, file) = file_of(&bytes);
        let mut found = SpaceFindings {
            userblock_len_bytes: 100,
            length_len_bytes: 8,
            may_have_heap: true,
            ..SpaceFindings::default()
        };
        found.metadata.push(100, 96);
        found.metadata.push(150, 50); // read twice
        found.raw.push(200, 300);
        let space = found.account(&file).unwrap();
        let expected = SpaceUse {
            raw_len_bytes: 300,
            metadata_len_bytes: 100,
            heap_len_bytes: 200,
            userblock_len_bytes: 100,
            unused_len_bytes: 300,
        };
        assert_eq!(space, expected);
    }

    #[test]
    fn collections_are_found_after_other_bytes() {
        let len_bytes = 5 * BLOCK_LEN_BYTES as usize;
        for at in [BLOCK_LEN_BYTES - 1, BLOCK_LEN_BYTES - 7, BLOCK_LEN_BYTES, 3 * BLOCK_LEN_BYTES + 13] {
            let mut bytes = vec![b'G'; len_bytes];
            for (number, start) in [at as usize, at as usize + 4096].into_iter().enumerate() {
                bytes[start..start + 8].copy_from_slice(COLLECTION_SIGNATURE);
                bytes[start + 8..start + 16].copy_from_slice(&(4096 - number as u64).to_le_bytes());
            }
            let (_named, file) = file_of(&bytes);
            let found = SpaceFindings { length_len_bytes: 8, may_have_heap: true, ..SpaceFindings::default() };
            assert_eq!(found.account(&file).unwrap().heap_len_bytes, 2 * 4096 - 1, "{at}");
        }
    }

    #[test]
    fn a_collection_that_reaches_into_known_bytes_is_rejected() {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(COLLECTION_SIGNATURE);
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        let (_named, file) = file_of(&bytes);
        let found = SpaceFindings { length_len_bytes: 8, may_have_heap: true, ..SpaceFindings::default() };
        let space = found.account(&file).unwrap();
        assert_eq!((space.heap_len_bytes, space.unused_len_bytes), (0, 64));
    }
}
