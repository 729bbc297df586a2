//! Encoding of a block as the bytes of a cluster, the inverse of [`super::pages`].
//!
//! Invariant: a cluster's bytes depend only on its block; its address is filled in when it is known.

use super::fields::ElementKind;
use crate::compress::Compressor;
use crate::container::{BLOB_KEY_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, blob_key};
use raddle_codec::CodecError;
use raddle_codec::shuffle::shuffle;
use raddle_columns::block::Buffer;
use raddle_columns::schema::Number;
use raddle_core::error::Result as CoreResult;
use raddle_core::ranks::message::{MessageReader, put_u64s};
use xxhash_rust::xxh3::xxh3_64;

const CHECKSUM_LEN_BYTES: u64 = 8;

/// Encoded page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EncodedPage {
    pub elements: u64,
    /// Offset of the page from its cluster's first byte.
    pub at: u64,
    /// Length in the file, without the checksum that follows.
    pub stored_len_bytes: u64,
}

/// Description of a cluster for the index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ClusterPages {
    pub entries: u64,
    /// Length of the cluster in the file, keys included.
    pub len_bytes: u64,
    /// Hash of the cluster's bytes.
    pub digest: u64,
    /// Pages of each column.
    pub columns: Vec<Vec<EncodedPage>>,
}

/// Cluster that only needs to be placed.
#[derive(Debug)]
pub struct EncodedCluster {
    pub(super) pages: ClusterPages,
    bytes: Vec<u8>,
    /// Offset of each key, and length of its payload.
    keys: Vec<(u64, u64)>,
}

impl ClusterPages {
    /// Appends the description to a message for other ranks.
    pub(super) fn put(&self, message: &mut Vec<u8>) {
        put_u64s(message, [self.entries, self.len_bytes, self.digest]);
        for pages in &self.columns {
            put_u64s(message, [pages.len() as u64]);
            for page in pages {
                put_u64s(message, [page.elements, page.at, page.stored_len_bytes]);
            }
        }
    }

    /// Reads a description of `columns` columns that [`ClusterPages::put`] wrote.
    pub(super) fn take(words: &mut MessageReader<'_>, columns: usize) -> CoreResult<Self> {
        let [entries, len_bytes, digest] = words.words()?;
        let mut cluster = Self { entries, len_bytes, digest, columns: Vec::with_capacity(columns) };
        for _ in 0..columns {
            let mut pages = Vec::new();
            for _ in 0..words.word()? {
                let [elements, at, stored_len_bytes] = words.words()?;
                pages.push(EncodedPage { elements, at, stored_len_bytes });
            }
            cluster.columns.push(pages);
        }
        Ok(cluster)
    }
}

impl EncodedCluster {
    /// Returns the bytes of the cluster for `address`.
    pub(super) fn placed(mut self, address: u64) -> Vec<u8> {
        for (at, len_bytes) in self.keys {
            let key = blob_key(address + at, len_bytes, len_bytes);
            self.bytes[at as usize..at as usize + key.len()].copy_from_slice(&key);
        }
        self.bytes
    }
}

/// Encoder of clusters, which keeps buffers from page to page.
#[derive(Debug)]
pub(super) struct ClusterEncoder {
    compressor: Compressor,
    is_split: bool,
    page_len_bytes: u64,
    plain: Vec<u8>,
    split: Vec<u8>,
}

impl ClusterEncoder {
    /// Creates an encoder; pages hold at most `page_len_bytes` before compression.
    pub(super) fn new(compressor: Compressor, is_split: bool, page_len_bytes: u64) -> Self {
        Self { compressor, is_split, page_len_bytes, plain: Vec::new(), split: Vec::new() }
    }

    /// Encodes the columns of a cluster, each according to its kind.
    pub(super) fn encode<'b>(
        &mut self,
        entries: u64,
        columns: impl Iterator<Item = (ElementKind, &'b Buffer)>,
    ) -> Result<EncodedCluster, CodecError> {
        let mut cluster = EncodedCluster { pages: ClusterPages::default(), bytes: Vec::new(), keys: Vec::new() };
        for (kind, buffer) in columns {
            let pages = self.encode_column(kind, buffer, &mut cluster)?;
            cluster.pages.columns.push(pages);
        }
        cluster.pages.entries = entries;
        cluster.pages.len_bytes = cluster.bytes.len() as u64;
        cluster.pages.digest = xxh3_64(&cluster.bytes);
        Ok(cluster)
    }

    fn encode_column(
        &mut self,
        kind: ElementKind,
        buffer: &Buffer,
        cluster: &mut EncodedCluster,
    ) -> Result<Vec<EncodedPage>, CodecError> {
        let longest = (self.page_len_bytes * 8 / u64::from(kind.bits())).clamp(1, u64::from(i32::MAX as u32)) as usize;
        let mut pages = Vec::new();
        match buffer {
            Buffer::Offsets(offsets) => {
                // The first collection begins where the cluster begins.
                for ends in offsets.get(1..).unwrap_or_default().chunks(longest) {
                    self.fill_index(ends);
                    pages.push(self.end_page(ends.len(), cluster)?);
                }
            }
            Buffer::Values(values) => {
                let len_bytes = match kind {
                    ElementKind::Number(number) => number.len_bytes(),
                    ElementKind::Bit | ElementKind::Char | ElementKind::Byte | ElementKind::Index => 1,
                };
                for values in values.chunks(longest.saturating_mul(len_bytes)) {
                    self.fill(kind, values);
                    pages.push(self.end_page(values.len() / len_bytes, cluster)?);
                }
            }
        }
        Ok(pages)
    }

    /// Fills `plain` with the ends of collections.
    fn fill_index(&mut self, ends: &[u64]) {
        self.plain.clear();
        let mut before = 0;
        for &end in ends {
            self.plain.extend_from_slice(&(end - before).to_le_bytes());
            if self.is_split {
                before = end;
            }
        }
        if self.is_split {
            self.split(size_of::<u64>());
        }
    }

    /// Fills `plain` with values.
    fn fill(&mut self, kind: ElementKind, values: &[u8]) {
        self.plain.clear();
        let number = match kind {
            ElementKind::Bit => {
                let bits =
                    |eight: &[u8]| eight.iter().rev().fold(0_u8, |bits, &value| bits << 1 | u8::from(value != 0));
                return self.plain.extend(values.chunks(8).map(bits));
            }
            ElementKind::Number(number) if self.is_split && number.len_bytes() > 1 => number,
            _ => return self.plain.extend_from_slice(values),
        };
        match number {
            Number::Int16 => self.fill_zigzag::<2>(values, |word| {
                let word = i16::from_le_bytes(word);
                (word << 1 ^ word >> 15).to_le_bytes()
            }),
            Number::Int32 => self.fill_zigzag::<4>(values, |word| {
                let word = i32::from_le_bytes(word);
                (word << 1 ^ word >> 31).to_le_bytes()
            }),
            Number::Int64 => self.fill_zigzag::<8>(values, |word| {
                let word = i64::from_le_bytes(word);
                (word << 1 ^ word >> 63).to_le_bytes()
            }),
            _ => self.plain.extend_from_slice(values),
        }
        self.split(number.len_bytes());
    }

    fn fill_zigzag<const LEN: usize>(&mut self, values: &[u8], zigzag: impl Fn([u8; LEN]) -> [u8; LEN]) {
        self.plain.reserve(values.len());
        values.as_chunks::<LEN>().0.iter().for_each(|word| self.plain.extend_from_slice(&zigzag(*word)));
    }

    /// Reorders `plain` so that the first bytes of all elements come first, then the second ones, and so on.
    fn split(&mut self, element_len_bytes: usize) {
        self.split.clear();
        self.split.resize(self.plain.len(), 0);
        shuffle(&self.plain, element_len_bytes, &mut self.split);
        std::mem::swap(&mut self.plain, &mut self.split);
    }

    /// Appends `plain` to a cluster as a page, after a new key if the payload of the last one would become too long.
    fn end_page(&mut self, elements: usize, cluster: &mut EncodedCluster) -> Result<EncodedPage, CodecError> {
        let EncodedCluster { bytes, keys, .. } = cluster;
        let longest_len_bytes = self.plain.len() as u64 + CHECKSUM_LEN_BYTES;
        if keys.last().is_none_or(|(_, len_bytes)| len_bytes + longest_len_bytes > MAX_PAYLOAD_LEN_BYTES) {
            keys.push((bytes.len() as u64, 0));
            bytes.resize(bytes.len() + BLOB_KEY_LEN_BYTES as usize, 0);
        }
        let at = bytes.len();
        self.compressor.append(&self.plain, bytes)?;
        let stored_len_bytes = (bytes.len() - at) as u64;
        let checksum = xxh3_64(&bytes[at..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        if let Some((_, len_bytes)) = keys.last_mut() {
            *len_bytes += stored_len_bytes + CHECKSUM_LEN_BYTES;
        }
        Ok(EncodedPage { elements: elements as u64, at: at as u64, stored_len_bytes })
    }
}
