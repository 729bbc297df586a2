//! The index of an RNTuple being written: page lists, footer and anchor.
//!
//! Clusters are written consecutively. A page list is written as soon as it is long enough, so that only cluster groups
//! are kept in memory. Invariant: addresses depend only on the clusters and their order.

use super::encode::ClusterPages;
use super::envelope::{EnvelopeKind, Locator};
use super::frames::{checksum, envelope, push_list, push_locator, push_record};
use crate::compress::{Compressor, RootCodec};
use crate::container::{BLOB_KEY_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, blob_key};
use crate::written_infos::{ANCHOR_VERSION, counted};
use raddle_codec::CodecError;
use xxhash_rust::xxh3::xxh3_64;

/// Version of the RNTuple format: epoch, major, minor and patch.
const FORMAT_VERSION: [u16; 4] = [1, 0, 0, 1];

/// Bytes with the address to which they are written.
pub(super) type AddressedBytes = (u64, Vec<u8>);

/// Placed envelope: its locator and its decoded length.
type Link = (Locator, u64);

/// Index of an RNTuple that is being written.
#[derive(Debug)]
pub(super) struct Index {
    codec: RootCodec,
    /// Length of a page list at which its cluster group is closed.
    group_len_bytes: u64,
    header: Link,
    header_checksum: u64,
    /// Address of the next piece.
    end: u64,
    entries: u64,
    /// Number of elements of each column in all clusters so far.
    elements: Vec<u64>,
    /// First entry of the open group. The next fields hold its clusters, their summaries and their pages.
    group_start: u64,
    clusters: u32,
    summaries: Vec<u8>,
    pages: Vec<u8>,
    /// Number of closed groups, and their encoding.
    len_groups: u32,
    groups: Vec<u8>,
    /// Hash of all clusters.
    digest: u64,
}

impl Index {
    /// Creates the index at `address`, and returns it with the header envelope to write.
    pub(super) fn new(
        address: u64,
        codec: RootCodec,
        group_len_bytes: u64,
        columns: usize,
        header: &[u8],
    ) -> Result<(Self, AddressedBytes), CodecError> {
        let header = envelope(EnvelopeKind::Header, header);
        let mut index = Self {
            codec,
            group_len_bytes,
            header: (Locator { address: 0, stored_len_bytes: 0 }, 0),
            header_checksum: checksum(&header),
            end: address,
            entries: 0,
            elements: vec![0; columns],
            group_start: 0,
            clusters: 0,
            summaries: Vec::new(),
            pages: Vec::new(),
            len_groups: 0,
            groups: Vec::new(),
            digest: 0,
        };
        let (link, piece) = index.place_envelope(&header)?;
        index.header = link;
        Ok((index, piece))
    }

    /// Returns the number of entries in all clusters.
    pub(super) fn len_entries(&self) -> u64 {
        self.entries
    }

    /// Places a cluster. Returns its address, and the page list if the cluster completes one.
    pub(super) fn place(&mut self, cluster: &ClusterPages) -> Result<(u64, Option<AddressedBytes>), CodecError> {
        let address = self.end;
        self.end += cluster.len_bytes;
        let summary = [self.entries, cluster.entries].map(u64::to_le_bytes).concat();
        push_record(&mut self.summaries, &summary);
        let mut columns = Vec::new();
        for (pages, first) in cluster.columns.iter().zip(&mut self.elements) {
            let mut column = Vec::new();
            for page in pages {
                // A negative number indicates that a checksum follows the page.
                column.extend_from_slice(&(-(page.elements as i32)).to_le_bytes());
                let place = Locator { address: address + page.at, stored_len_bytes: page.stored_len_bytes };
                push_locator(&mut column, place);
            }
            column.extend_from_slice(&first.to_le_bytes());
            column.extend_from_slice(&self.codec.settings().to_le_bytes());
            push_list(&mut columns, pages.len() as u32, &column);
            *first += pages.iter().map(|page| page.elements).sum::<u64>();
        }
        push_list(&mut self.pages, cluster.columns.len() as u32, &columns);
        self.clusters += 1;
        self.entries += cluster.entries;
        self.digest = xxh3_64(&[self.digest, cluster.digest].map(u64::to_le_bytes).concat());
        let is_long = (self.summaries.len() + self.pages.len()) as u64 >= self.group_len_bytes;
        Ok((address, if is_long { self.close_group()? } else { None }))
    }

    /// Closes the open group, unless it has no clusters.
    fn close_group(&mut self) -> Result<Option<AddressedBytes>, CodecError> {
        if self.clusters == 0 {
            return Ok(None);
        }
        let mut list = self.header_checksum.to_le_bytes().to_vec();
        push_list(&mut list, self.clusters, &self.summaries);
        push_list(&mut list, self.clusters, &self.pages);
        let ((place, len_bytes), piece) = self.place_envelope(&envelope(EnvelopeKind::PageList, &list))?;
        let mut group = [self.group_start, self.entries - self.group_start].map(u64::to_le_bytes).concat();
        group.extend_from_slice(&self.clusters.to_le_bytes());
        group.extend_from_slice(&len_bytes.to_le_bytes());
        push_locator(&mut group, place);
        push_record(&mut self.groups, &group);
        self.len_groups += 1;
        (self.group_start, self.clusters) = (self.entries, 0);
        self.summaries.clear();
        self.pages.clear();
        Ok(Some(piece))
    }

    /// Finishes the index: returns the remaining envelopes, the end address, the anchor and a hash of the contents.
    pub(super) fn finish(mut self) -> Result<CompleteIndex, CodecError> {
        let mut pieces: Vec<AddressedBytes> = self.close_group()?.into_iter().collect();
        // No features.
        let mut footer = 0_u64.to_le_bytes().to_vec();
        footer.extend_from_slice(&self.header_checksum.to_le_bytes());
        let mut extension = Vec::new();
        (0..4).for_each(|_| push_list(&mut extension, 0, &[]));
        push_record(&mut footer, &extension);
        push_list(&mut footer, self.len_groups, &self.groups);
        let footer = envelope(EnvelopeKind::Footer, &footer);
        let (link, piece) = self.place_envelope(&footer)?;
        pieces.push(piece);
        let contents = [self.digest, checksum(&footer)].map(u64::to_le_bytes).concat();
        Ok(CompleteIndex { pieces, end: self.end, anchor: anchor(self.header, link), contents })
    }

    /// Places an envelope after its key.
    fn place_envelope(&mut self, envelope: &[u8]) -> Result<(Link, AddressedBytes), CodecError> {
        let mut stored = Vec::new();
        Compressor::new(self.codec)?.append(envelope, &mut stored)?;
        let (len_bytes, stored_len_bytes) = (envelope.len() as u64, stored.len() as u64);
        let mut piece = blob_key(self.end, stored_len_bytes, len_bytes);
        piece.extend_from_slice(&stored);
        let place = Locator { address: self.end + BLOB_KEY_LEN_BYTES, stored_len_bytes };
        let address = self.end;
        self.end += piece.len() as u64;
        Ok(((place, len_bytes), (address, piece)))
    }
}

/// Complete index.
#[derive(Debug)]
pub(super) struct CompleteIndex {
    pub(super) pieces: Vec<AddressedBytes>,
    pub(super) end: u64,
    pub(super) anchor: Vec<u8>,
    pub(super) contents: Vec<u8>,
}

/// Encodes the anchor, big-endian, with its checksum.
fn anchor((header, header_len_bytes): Link, (footer, footer_len_bytes): Link) -> Vec<u8> {
    let mut members: Vec<u8> = FORMAT_VERSION.into_iter().flat_map(u16::to_be_bytes).collect();
    let numbers = [
        header.address,
        header.stored_len_bytes,
        header_len_bytes,
        footer.address,
        footer.stored_len_bytes,
        footer_len_bytes,
        MAX_PAYLOAD_LEN_BYTES,
    ];
    members.extend(numbers.into_iter().flat_map(u64::to_be_bytes));
    let mut anchor = counted(&[&ANCHOR_VERSION.to_be_bytes(), members.as_slice()].concat());
    anchor.extend_from_slice(&xxh3_64(&members).to_be_bytes());
    anchor
}
