//! Packed data streams as a source.
//!
//! Since a stream has no index, opening it reads all record heads and keeps the position of each record. Invariant:
//! every counted record lies completely within the file.

use super::header::{self, StreamHeader};
use super::record::{self, HEAD_LEN_BYTES, Head, RecordFilter};
use super::{PdsCodec, WORD_LEN_BYTES};
use raddle_codec::DecodeState;
use raddle_columns::block::{Block, Column};
use raddle_columns::error::{Location, Result, UnlocatedError};
use raddle_columns::event_id::EventId;
use raddle_columns::input::InputFile;
use raddle_columns::schema::{Schema, Serialization};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use std::ops::Range;
use std::path::Path;

/// Open packed data stream.
#[derive(Debug)]
pub struct PdsSource {
    file: InputFile,
    header: StreamHeader,
    records: Vec<Record>,
}

/// Position of a record.
#[derive(Debug, Clone, Copy)]
struct Record {
    address: u64,
    /// Total length of the payloads up to the end of this record.
    payload_end_bytes: u64,
}

/// Number of bytes read at once in the search for records: some records are only 28 bytes long, others are skipped.
const WINDOW_LEN_BYTES: u64 = 64 << 10;

impl PdsSource {
    /// Opens the stream at `path` and finds its events.
    ///
    /// # Errors
    /// If the file is not a packed data stream, has an unknown version or codec, or is damaged or truncated.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of_input(InputFile::open(path)?)
    }

    /// Opens a stream whose bytes are in memory; `path` names it in messages.
    ///
    /// # Errors
    /// As for [`PdsSource::open`].
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        Self::of_input(InputFile::of_bytes(path, bytes))
    }

    fn of_input(file: InputFile) -> Result<Self> {
        let place = Location::file(file.path());
        let first = file.read(0, file.len_bytes().min(4), "stream header").map_err(|fault| fault.at(&place))?;
        if !header::is_pds(&first) {
            return Err(file.other_format("a packed data stream"));
        }
        let header = StreamHeader::read(&file).map_err(|fault| fault.at(&place))?;
        let mut records = Vec::new();
        find_records(&file, header.len_bytes, &mut records).map_err(|fault| {
            let entry = records.len() as u64;
            fault.at(&place.entries(entry..entry + 1))
        })?;
        Ok(Self { file, header, records })
    }

    /// Returns the compression of the records.
    pub fn codec(&self) -> PdsCodec {
        self.header.codec
    }

    /// Returns the serialisation of the products.
    pub fn serialization(&self) -> Serialization {
        self.header.serialization
    }

    /// Returns the path with which the stream was opened.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the header as stored.
    pub(super) fn header_bytes<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        self.copy(0, self.header.len_bytes, buffer)?;
        Ok(buffer)
    }

    /// Returns the range of bytes of all records.
    pub(super) fn records_range(&self) -> Range<u64> {
        self.header.len_bytes..self.file.len_bytes()
    }

    /// Replaces the contents of `buffer` with stored bytes of the stream.
    pub(super) fn copy(&self, address: u64, len_bytes: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let place = Location::file(self.file.path());
        self.file.read_into(address, len_bytes, "event records", buffer).map_err(|fault| fault.at(&place))
    }

    /// Returns a property that prevents the records of `other` from following this stream's header; `None` if there is
    /// none.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (header, other) = (&self.header, &other.header);
        if header.schema != other.schema {
            return Some("its products");
        }
        if header.serialization != other.serialization {
            return Some("the serialisation of its products");
        }
        (header.codec != other.codec).then_some("the compression of its events")
    }

    fn address_after(&self, entry: u64) -> u64 {
        self.records.get(entry as usize).map_or(self.file.len_bytes(), |record| record.address)
    }

    fn payload_before(&self, entry: u64) -> u64 {
        entry.checked_sub(1).and_then(|before| self.records.get(before as usize)).map_or(0, |r| r.payload_end_bytes)
    }
}

/// Visits all records up to the end of the file.
fn find_records(file: &InputFile, start: u64, records: &mut Vec<Record>) -> Result<(), UnlocatedError> {
    let (mut window, mut window_address) = (Vec::new(), 0);
    let (mut address, mut payload_end_bytes) = (start, 0u64);
    while address < file.len_bytes() {
        file.check_range(address, HEAD_LEN_BYTES as u64, "event record")?;
        let is_in_window = |window: &Vec<u8>| {
            address >= window_address && address + HEAD_LEN_BYTES as u64 <= window_address + window.len() as u64
        };
        if !is_in_window(&window) {
            window_address = address;
            let len_bytes = WINDOW_LEN_BYTES.min(file.len_bytes() - address);
            file.read_into(address, len_bytes, "event record", &mut window)?;
        }
        let head = Head::read(&window[(address - window_address) as usize..], address)?;
        let len_bytes = head.record_len_bytes();
        file.check_range(address, len_bytes, "event record")?;
        payload_end_bytes = payload_end_bytes.saturating_add(head.payload_len_bytes() as u64);
        records.push(Record { address, payload_end_bytes });
        address += len_bytes;
    }
    Ok(())
}

impl Source for PdsSource {
    fn place(&self) -> Location {
        Location::file(self.file.path())
    }

    fn schema(&self) -> &Schema {
        &self.header.schema
    }

    fn len_entries(&self) -> u64 {
        self.records.len() as u64
    }

    fn has_ids(&self) -> bool {
        true
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let end_bytes = self.payload_before(start).saturating_add(target_len_bytes);
        let fitting = self.records.partition_point(|record| record.payload_end_bytes <= end_bytes) as u64;
        fitting.max(start.saturating_add(1)).min(self.len_entries())
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let stored = self.address_after(entries.end).saturating_sub(self.address_after(entries.start));
        let payload = self.payload_before(entries.end).saturating_sub(self.payload_before(entries.start));
        let ids = (entries.end - entries.start).saturating_mul(size_of::<EventId>() as u64);
        // Each product has two words in front of its blob, as many bytes as an offset needs.
        stored.saturating_add(payload).saturating_add(ids)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, self.schema())?;
        let mut column_of = vec![None; self.header.schema.products.len()];
        products.iter().enumerate().for_each(|(column, &product)| column_of[product] = Some(column));
        let schema = self.header.schema.select(products);
        Ok(Box::new(PdsReader {
            source: self,
            schema,
            column_of,
            state: DecodeState::default(),
            stored: Vec::new(),
            payload: Vec::new(),
            seen: Vec::new(),
        }))
    }
}

/// Reader of the events of a stream.
struct PdsReader<'source> {
    source: &'source PdsSource,
    schema: Schema,
    column_of: Vec<Option<usize>>,
    state: DecodeState,
    stored: Vec<u8>,
    payload: Vec<u8>,
    seen: Vec<bool>,
}

impl RangeReader for PdsReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let place = self.source.place();
        check_entries(&place, &entries, self.source.len_entries())?;
        let start = self.source.address_after(entries.start);
        let end = self.source.address_after(entries.end);
        let in_entries = |fault: UnlocatedError| fault.at(&place.entries(entries.clone()));
        self.source.file.read_into(start, end - start, "event records", &mut self.stored).map_err(in_entries)?;
        let columns = self.schema.products.iter().map(|product| Column::new(&product.form)).collect();
        let mut block = Block { entries: entries.clone(), ids: Vec::new(), columns };
        for entry in entries {
            let address = self.source.address_after(entry);
            let from = (address - start) as usize;
            let to = (self.source.address_after(entry + 1) - start) as usize;
            let mut wanted = RecordFilter { column_of: &self.column_of, seen: &mut self.seen };
            let codec = self.source.header.codec;
            let (state, payload) = (&mut self.state, &mut self.payload);
            let bytes = &self.stored[from..to];
            let id = record::read(bytes, address, codec, state, payload, &mut wanted, &mut block.columns)
                .map_err(|fault| fault.at(&place.entries(entry..entry + 1)))?;
            block.ids.push(id);
        }
        Ok(block)
    }
}

// The shortest record is one closing word longer than its head, so the index is not longer than the file.
const _: () = assert!(size_of::<Record>() <= HEAD_LEN_BYTES + WORD_LEN_BYTES);
