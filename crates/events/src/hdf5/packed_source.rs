//! Reader of the framework's event and batch layouts, which the framework itself cannot read.
//!
//! The stored data records neither the lengths of compressed events, in the event layout, nor the boundaries of
//! batches. They are determined when a file is opened ([`super::index`]) and kept in memory. The serialisation of
//! products is not recorded either, so the framework's default is assumed. Products are ordered like the attributes in
//! the object's header, in which they were created.
//!
//! Invariants: every event's bytes lie within the file; no event decodes to more than its offsets allow.

use super::event::{OFFSETS, PRODUCTS};
use super::file::{Array, EventsFile, GroupIn, words};
use super::index::{Bytes, lz4_block, zstd_frame};
use super::lumi::{COMPRESSION, COMPRESSION_CHOICE, COMPRESSION_LEVEL, LUMISEC, RUN};
use super::{CceOptions, CompressionChoice, FileLayout, LUMI};
use crate::error::{EventsError, Result};
use crate::pds::PdsCodec;
use crate::sources::compressed::decode;
use raddle_codec::DecodeState;
use raddle_columns::block::Column;
use raddle_columns::schema::{Form, Number, Product, Schema, Serialization};
use raddle_hdf5::read::DatasetReader;
use std::ops::Range;

/// Bytes of the products that are read at once in the search for ends of streams.
const WINDOW_LEN_BYTES: u64 = 256 << 10;

/// Number of offsets that are read at once in the search for ends of events.
const OFFSETS_AT_ONCE: u64 = 1 << 18;

/// Events of a file in the framework's event or batch layout.
#[derive(Debug)]
pub(super) struct PackedSource {
    products: Array,
    offsets: Array,
    options: CceOptions,
    /// Number of products per event.
    count: usize,
    /// Number of offsets per event.
    numbers: usize,
    /// Beginning of each event's stored bytes, within the decoded bytes if batches are compressed, followed by the end
    /// of the last event.
    events: Vec<u64>,
    /// Compressed batches; empty if batches are not compressed.
    batches: Vec<Batch>,
    /// Decoded length of all events.
    decoded_len_bytes: u64,
}

/// Compressed batch.
#[derive(Debug, Clone, Copy)]
struct Batch {
    first_event: u64,
    /// Offset of the batch's stored bytes.
    address: u64,
}

/// Bytes of the products, read in windows.
struct Window<'f> {
    file: &'f EventsFile,
    array: &'f Array,
    reader: DatasetReader,
    start: u64,
    bytes: Vec<u8>,
}

impl Bytes for Window<'_> {
    type Error = EventsError;

    fn len_bytes(&self) -> u64 {
        self.array.len
    }

    fn byte(&mut self, at: u64) -> Result<u8> {
        let is_in = at >= self.start && at - self.start < self.bytes.len() as u64;
        if !is_in {
            self.start = at;
            let end = at.saturating_add(WINDOW_LEN_BYTES).min(self.array.len);
            self.bytes = self.file.read(&mut self.reader, self.array, at..end)?;
        }
        self.bytes.get((at - self.start) as usize).copied().ok_or_else(|| {
            self.file.damaged(&self.array.path, format!("byte {at} is requested, but it has {}", self.array.len))
        })
    }
}

impl PackedSource {
    /// Finds the events of a file.
    pub fn open(file: &EventsFile, lumi: GroupIn<'_>, len_entries: u64) -> Result<(Schema, FileLayout, Self)> {
        let damaged = |what: String| file.damaged(LUMI, what);
        let level = lumi.number(COMPRESSION_LEVEL)?.unwrap_or(0);
        let name = lumi.text(COMPRESSION)?;
        let codec = match name.as_deref().and_then(PdsCodec::of_name) {
            Some(PdsCodec::Zstd(_)) => PdsCodec::Zstd(i32::try_from(level).unwrap_or(0)),
            Some(codec) => codec,
            None => return Err(damaged(format!("compression {name:?} is not known"))),
        };
        let choice = lumi.number(COMPRESSION_CHOICE)?;
        let is_batched = choice.is_some();
        let choice = match choice {
            None => CompressionChoice::Events,
            Some(number) => i32::try_from(number)
                .ok()
                .and_then(CompressionChoice::of_number)
                .ok_or_else(|| damaged(format!("choice of compression {number} is not known")))?,
        };
        let options = CceOptions { codec, choice };
        let reserved = [RUN, LUMISEC, COMPRESSION, COMPRESSION_LEVEL, COMPRESSION_CHOICE];
        let mut schema = Schema::default();
        for name in lumi.stored_attribute_names()? {
            let name = String::from_utf8(name).map_err(|_| damaged("a product's name is not UTF-8".to_owned()))?;
            if !reserved.contains(&name.as_str()) {
                let class = lumi.text(&name)?.unwrap_or_default();
                schema.products.push(Product { name, class, form: Form::Blob(Serialization::Root) });
            }
        }
        let products = lumi.array(PRODUCTS, &[Number::Int8, Number::Uint8])?;
        let offsets = lumi.array(OFFSETS, &[Number::Int32])?;
        let count = schema.products.len();
        let numbers = count + if is_batched { 2 } else { 1 };
        let expected = len_entries.saturating_mul(numbers as u64);
        if offsets.len != expected {
            let what =
                format!("it has {} numbers, but {len_entries} events of {count} products need {expected}", offsets.len);
            return Err(file.damaged(&offsets.path, what));
        }
        let mut source = Self {
            products,
            offsets,
            options,
            count,
            numbers,
            events: Vec::new(),
            batches: Vec::new(),
            decoded_len_bytes: 0,
        };
        source.find_events(file, is_batched)?;
        let layout = match is_batched {
            true => FileLayout::FrameworkBatch(options),
            false => FileLayout::FrameworkEvent(options),
        };
        Ok((schema, layout, source))
    }

    /// Returns the arrays that are read.
    pub fn arrays(&self) -> [&Array; 2] {
        [&self.products, &self.offsets]
    }

    /// Returns the length of all products in memory.
    pub fn len_bytes(&self) -> u64 {
        self.decoded_len_bytes.saturating_add(self.len_entries().saturating_mul(8 * self.count as u64))
    }

    /// Returns the compression of the events.
    pub fn options(&self) -> CceOptions {
        self.options
    }

    /// Returns whether the file has the batch layout.
    pub fn is_batched(&self) -> bool {
        self.numbers > self.count + 1
    }

    /// Returns whether the stored bytes of an event have the same meaning as in `other`, provided that both have the
    /// same products.
    pub fn is_packed_as(&self, other: &Self) -> bool {
        let codec = |source: &Self| std::mem::discriminant(&source.options.codec);
        let packing = |source: &Self| (source.numbers, source.options.choice, codec(source));
        packing(self) == packing(other)
    }

    /// Returns the number of events.
    pub fn len_entries(&self) -> u64 {
        self.events.len().saturating_sub(1) as u64
    }

    /// Returns the number of offsets per event.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// Returns the first event of each batch that is compressed as a whole.
    pub fn batch_starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.batches.iter().map(|batch| batch.first_event)
    }

    /// Returns the offset of the first stored byte of `event`, which is also the end of the event before it. All bytes
    /// of a batch that is compressed as a whole are attributed to its first event.
    pub fn stored_address(&self, event: u64) -> u64 {
        if self.batches.is_empty() {
            return self.events[event as usize];
        }
        let next = self.batches.partition_point(|batch| batch.first_event < event);
        self.batches.get(next).map_or(self.products.len, |batch| batch.address)
    }

    /// Reads stored bytes of the products.
    pub fn read_stored(&self, file: &EventsFile, reader: &mut DatasetReader, bytes: Range<u64>) -> Result<Vec<u8>> {
        file.read(reader, &self.products, bytes)
    }

    /// Reads the offsets of some events as little-endian bytes; they were checked when the file was opened.
    pub fn read_numbers(&self, file: &EventsFile, reader: &mut DatasetReader, entries: Range<u64>) -> Result<Vec<u8>> {
        let width = self.numbers as u64;
        file.read(reader, &self.offsets, entries.start * width..entries.end * width)
    }

    /// Creates a reader for one thread.
    pub fn reader(&self) -> PackedReader<'_> {
        PackedReader {
            source: self,
            state: DecodeState::default(),
            batch: None,
            batch_bytes: Vec::new(),
            event: Vec::new(),
        }
    }

    /// Fills `events` and `batches`.
    fn find_events(&mut self, file: &EventsFile, is_batched: bool) -> Result<()> {
        let mut reader = file.reader([&self.offsets].into_iter());
        let mut lengths = Vec::new();
        let at_once = (OFFSETS_AT_ONCE / self.numbers as u64).max(1);
        let len_entries = self.offsets.len / self.numbers as u64;
        let mut start = 0;
        while start < len_entries {
            let end = start.saturating_add(at_once).min(len_entries);
            let range = start * self.numbers as u64..end * self.numbers as u64;
            let numbers = file.read(&mut reader, &self.offsets, range)?;
            let numbers: Vec<i32> = words(&numbers).map(i32::from_le_bytes).collect();
            for (event, numbers) in (start..).zip(numbers.chunks_exact(self.numbers)) {
                check_numbers(numbers, self.count)
                    .map_err(|what| file.damaged(&self.offsets.path, format!("event {event}: {what}")))?;
                // None is negative, as checked above.
                let decoded = numbers[self.count] as u64;
                lengths.push((decoded, numbers.get(self.count + 1).map(|&stored| stored as u64)));
                self.decoded_len_bytes = self.decoded_len_bytes.saturating_add(decoded);
            }
            start = end;
        }
        let mut window = Window {
            file,
            array: &self.products,
            reader: file.reader([&self.products].into_iter()),
            start: 0,
            bytes: Vec::new(),
        };
        let mut events = Vec::with_capacity(lengths.len() + 1);
        let (mut at, mut number) = (0_u64, 0_u64);
        for &(decoded, stored) in &lengths {
            events.push(at);
            let end = match (stored, self.options.codec) {
                (Some(stored), _) => Some(at.saturating_add(stored)),
                (None, PdsCodec::None) => Some(at.saturating_add(decoded)),
                (None, PdsCodec::Zstd(_)) => zstd_frame(&mut window, at)?.map(|frame| frame.end),
                (None, PdsCodec::Lz4) => lz4_block(&mut window, at, decoded)?,
            };
            let no_end = || file.damaged(&self.products.path, format!("the end of event {number} was not found"));
            at = end.ok_or_else(no_end)?;
            number += 1;
        }
        events.push(at);
        let compresses_batches =
            is_batched && self.options.choice.compresses_batches() && self.options.codec.bare().is_some();
        let batches =
            if compresses_batches { find_batches(&mut window, self.options.codec, &events)? } else { Vec::new() };
        if !compresses_batches && at != self.products.len {
            let what = format!("its events end at {at}, it has {} bytes", self.products.len);
            return Err(file.damaged(&self.products.path, what));
        }
        (self.events, self.batches) = (events, batches);
        Ok(())
    }
}

/// Checks the offsets of an event: the beginnings of `count` products, its length, and in batches its stored length.
fn check_numbers(numbers: &[i32], count: usize) -> Result<(), String> {
    let begins = &numbers[..=count];
    if begins[0] < 0 || begins.windows(2).any(|pair| pair[0] > pair[1]) || (count > 0 && begins[0] != 0) {
        return Err("its products do not begin in their order".to_owned());
    }
    match numbers.get(count + 1) {
        Some(stored) if *stored < 0 => Err("its stored length is negative".to_owned()),
        _ => Ok(()),
    }
}

/// Finds the batches, whose ends are not stored. `events` holds the beginnings of events in the decoded batches.
fn find_batches(window: &mut Window<'_>, codec: PdsCodec, events: &[u64]) -> Result<Vec<Batch>> {
    let len_events = events.len() - 1;
    let no_end = |batches: usize| format!("the end of batch {batches} was not found");
    if let PdsCodec::Zstd(_) = codec {
        let mut batches: Vec<Batch> = Vec::new();
        let (mut at, mut first) = (0, 0);
        while first < len_events {
            let frame = zstd_frame(window, at)?;
            // The decoded length determines the number of events.
            let end = frame.and_then(|frame| {
                let end = events[first].checked_add(frame.content_len_bytes?)?;
                let last = events.partition_point(|&start| start <= end).checked_sub(1)?;
                (events[last] == end && last > first).then_some((frame.end, last))
            });
            let Some((end, last)) = end else {
                let array = &window.array.path;
                return Err(window.file.damaged(array, no_end(batches.len())));
            };
            batches.push(Batch { first_event: first as u64, address: at });
            (at, first) = (end, last);
        }
        return match at == window.array.len {
            true => Ok(batches),
            false => Err(window.file.damaged(&window.array.path, no_end(batches.len()))),
        };
    }
    // An LZ4 block does not record its decoded length. All batches except the last have the same number of events,
    // which is found by trial: every block must end where the next begins, and the last one at the end of the data.
    for batch_len in 1..=len_events {
        if let Some(batches) = lz4_batches(window, events, batch_len)? {
            return Ok(batches);
        }
    }
    match len_events {
        0 => Ok(Vec::new()),
        _ => Err(window.file.damaged(&window.array.path, no_end(0))),
    }
}

/// Returns the batches if each has `batch_len` events; `None` if they do not.
fn lz4_batches(window: &mut Window<'_>, events: &[u64], batch_len: usize) -> Result<Option<Vec<Batch>>> {
    let len_events = events.len() - 1;
    let mut batches = Vec::new();
    let (mut at, mut first) = (0, 0);
    while first < len_events {
        let last = first.saturating_add(batch_len).min(len_events);
        let Some(end) = lz4_block(window, at, events[last] - events[first])? else { return Ok(None) };
        batches.push(Batch { first_event: first as u64, address: at });
        (at, first) = (end, last);
    }
    Ok((at == window.array.len).then_some(batches))
}

/// Reader of packed events.
pub(super) struct PackedReader<'source> {
    source: &'source PackedSource,
    state: DecodeState,
    /// Number of the batch whose decoded bytes are in `batch_bytes`.
    batch: Option<usize>,
    batch_bytes: Vec<u8>,
    event: Vec<u8>,
}

impl PackedReader<'_> {
    /// Reads the columns of some products.
    pub fn read(
        &mut self,
        file: &EventsFile,
        datasets: &mut DatasetReader,
        products: &[usize],
        entries: Range<u64>,
    ) -> Result<Vec<Column>> {
        let source = self.source;
        let mut columns: Vec<Column> = products.iter().map(|_| Column::new(&Form::Blob(Serialization::Root))).collect();
        let numbers = source.read_numbers(file, datasets, entries.clone())?;
        let numbers: Vec<i32> = words(&numbers).map(i32::from_le_bytes).collect();
        // Stored bytes in one contiguous run are read at once.
        let is_whole = source.batches.is_empty();
        let (first, last) = (source.events[entries.start as usize], source.events[entries.end as usize]);
        let stored = if is_whole { source.read_stored(file, datasets, first..last)? } else { Vec::new() };
        for (entry, numbers) in entries.clone().zip(numbers.chunks_exact(source.numbers)) {
            let number = entry as usize;
            // The check when the file was opened is not enough, since the file may have changed.
            check_numbers(numbers, source.count).map_err(|what| file.damaged(&source.offsets.path, what))?;
            let (start, end) = (source.events[number], source.events[number + 1]);
            let bytes = match is_whole {
                true => &stored[(start - first) as usize..(end - first) as usize],
                false => {
                    let base = self.open_batch(file, datasets, entry)?;
                    &self.batch_bytes[(start - base) as usize..(end - base) as usize]
                }
            };
            let decoded_len_bytes = numbers[source.count] as usize;
            let codec = source.options.codec.bare().filter(|_| source.options.choice.compresses_events());
            let event: &[u8] = match codec {
                None => bytes,
                Some(codec) => {
                    decode(codec, &mut self.state, bytes, decoded_len_bytes, &mut self.event)
                        .map_err(|fault| fault.at(&file.place().entries(entry..entry + 1)))?;
                    &self.event
                }
            };
            if event.len() != decoded_len_bytes {
                let what = format!("event {entry} has {} bytes, not {decoded_len_bytes}", event.len());
                return Err(file.damaged(&source.products.path, what));
            }
            for (column, &product) in columns.iter_mut().zip(products) {
                column.push_bytes(&event[numbers[product] as usize..numbers[product + 1] as usize]);
            }
        }
        Ok(columns)
    }

    /// Decodes the batch that holds an event; returns the offset at which the batch begins among the decoded bytes of
    /// all batches.
    fn open_batch(&mut self, file: &EventsFile, datasets: &mut DatasetReader, entry: u64) -> Result<u64> {
        let PackedSource { batches, events, products, .. } = self.source;
        let number = batches.partition_point(|batch| batch.first_event <= entry).saturating_sub(1);
        let batch = batches[number];
        let base = events[batch.first_event as usize];
        if self.batch != Some(number) {
            self.batch = None;
            let next = batches.get(number + 1);
            let end_event = next.map_or(events.len() as u64 - 1, |next| next.first_event);
            let stored =
                file.read(datasets, products, batch.address..next.map_or(products.len, |next| next.address))?;
            let decoded_len_bytes = (events[end_event as usize] - base) as usize;
            if let Some(codec) = self.source.options.codec.bare() {
                decode(codec, &mut self.state, &stored, decoded_len_bytes, &mut self.batch_bytes)
                    .map_err(|fault| fault.at(&file.place().entries(batch.first_event..end_event)))?;
            }
            self.batch = Some(number);
        }
        Ok(base)
    }
}
