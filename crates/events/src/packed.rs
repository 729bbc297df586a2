//! Trees of packed events, as written by the reference framework's `RootEventOutputer` and `RootBatchEventsOutputer`.
//!
//! An entry is an event or a batch of events. It consists of a list of numbers (for each event the beginning of each
//! product's blob, followed by the end of the last) and a list of bytes, which is compressed separately. The single
//! entry of the tree `Meta` describes the products. Without the dictionary of its class, ROOT leaves that branch out,
//! and the products have numbers for names.
//!
//! Invariants: every entry's numbers determine the decoded length of its bytes; an event belongs to one entry.

use crate::pds::PdsCodec;
use crate::sources::compressed::decode;
use raddle_codec::DecodeState;
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::{ColumnsError, Location, Result, UnlocatedError};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Product, Schema, Serialization};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use raddle_root::{RootFile, RootOptions, TreeSource};
use std::ops::Range;

/// Names of the tree's products that hold the numbers and the bytes.
const OFFSETS: &str = "offsetsAndBlob.first";
const BLOB: &str = "offsetsAndBlob.second";
/// Names of the branches with the ids of batches: their count, and their members.
const IDS: &str = "EventIDs";
const ID_MEMBERS: [&str; 3] = ["EventIDs.run", "EventIDs.lumi", "EventIDs.event"];

/// Name of the tree that describes the products, and names of its branches.
const META: &str = "Meta";
const PRODUCTS: &str = "DataProducts";
const SERIALIZATION: &str = "objectSerializationUsed";
const COMPRESSION: &str = "compressionAlgorithm";

/// Number of entries at the beginning from which the average length of an event is estimated.
const SAMPLED_ENTRIES: u64 = 64;

/// Tree whose entries are packed events.
#[derive(Debug)]
pub struct PackedTree {
    /// The tree, with branches read as bytes.
    tree: TreeSource,
    schema: Schema,
    codec: PdsCodec,
    serialization: Serialization,
    /// Numbers of the tree's products: numbers, bytes, and in batches the three members of ids.
    parts: Vec<usize>,
    /// First event of each batch, followed by the number of events; `None` if each entry is an event.
    batches: Option<Vec<u64>>,
    /// Average decoded length of an event, estimated from the first ones.
    event_len_bytes: u64,
}

/// Contents of the tree `Meta`.
struct Meta {
    /// Type and name of each product; `None` if the tree does not record them.
    products: Option<Vec<(String, String)>>,
    serialization: Serialization,
    codec: PdsCodec,
}

impl PackedTree {
    /// Returns whether a tree contains packed events, judging by the names of its branches.
    pub(crate) fn is_one(tree: &TreeSource) -> bool {
        [OFFSETS, BLOB].iter().all(|name| tree.schema().position(name).is_some())
    }

    /// Opens the tree `path` of a file, which must contain packed events.
    ///
    /// # Errors
    /// If `Meta` is missing or differs from what the framework writes, or the metadata is damaged.
    pub fn open(file: RootFile, path: &str) -> Result<Self> {
        let meta = TreeSource::open(file, META, RootOptions { raw: false })?;
        let Meta { products, serialization, codec } = Meta::read(&meta)?;
        let tree = TreeSource::open(meta.into_file(), path, RootOptions { raw: true })?;
        let number = |name: &str| {
            tree.schema().position(name).ok_or_else(|| ColumnsError::NoSuch {
                place: tree.place().branch(name).into(),
                kind: "branch",
                available: tree.schema().products.iter().map(|product| product.name.clone()).collect(),
            })
        };
        let mut parts = vec![number(OFFSETS)?, number(BLOB)?];
        let batches = match tree.schema().position(IDS) {
            None => None,
            Some(counts) => {
                for member in ID_MEMBERS {
                    parts.push(number(member)?);
                }
                Some(batches_of(&tree, counts)?)
            }
        };
        let mut packed =
            Self { tree, schema: Schema::default(), codec, serialization, parts, batches, event_len_bytes: 1 };
        let (count, event_len_bytes) = packed.sample(products.as_ref().map(Vec::len))?;
        packed.event_len_bytes = event_len_bytes;
        let unnamed = || (0..count).map(|number| (String::new(), format!("product{number}"))).collect();
        let form = Form::Blob(serialization);
        let product = |(class, name)| Product { name, class, form: form.clone() };
        packed.schema.products = products.unwrap_or_else(unnamed).into_iter().map(product).collect();
        Ok(packed)
    }

    /// Returns the compression of the entries.
    pub fn codec(&self) -> PdsCodec {
        self.codec
    }

    /// Returns the serialisation of the products.
    pub fn serialization(&self) -> Serialization {
        self.serialization
    }

    /// Returns the number of batches; `None` if each entry is an event.
    pub fn batches(&self) -> Option<u64> {
        self.batches.as_ref().map(|starts| starts.len() as u64 - 1)
    }

    /// Returns the entry that holds an event, and the range of events in that entry.
    fn entry_of(&self, event: u64) -> (u64, Range<u64>) {
        match &self.batches {
            None => (event, event..event + 1),
            Some(starts) => {
                // The last batch that begins no later, which skips batches without events.
                let entry = starts.partition_point(|&start| start <= event).saturating_sub(1);
                (entry as u64, starts[entry]..starts[entry + 1])
            }
        }
    }

    /// Reads the first entries, and returns the number of products per event and the average length of an event;
    /// `expected` is the number of products if it is known.
    fn sample(&self, expected: Option<usize>) -> Result<(usize, u64)> {
        let mut reader = self.tree.reader(&self.parts[..1])?;
        let (mut count, mut events, mut len_bytes) = (expected, 0, 0_u64);
        let mut event = 0;
        for _ in 0..SAMPLED_ENTRIES {
            if event >= self.len_entries() {
                break;
            }
            let (entry, inside) = self.entry_of(event);
            let block = reader.read(entry..entry + 1)?;
            let in_entry = inside.end - inside.start;
            let faulty = |fault: UnlocatedError| fault.at(&self.place_of(OFFSETS).entries(entry..entry + 1));
            let numbers = numbers_of(list_in(blob_of(&block, 0), 4).map_err(faulty)?);
            let each = numbers.len() as u64 / in_entry;
            let known = *count.get_or_insert((each as usize).saturating_sub(1));
            len_bytes += decoded_len_bytes(&numbers, known, in_entry).map_err(faulty)? as u64;
            events += in_entry;
            event = inside.end;
        }
        let count = count.unwrap_or(0);
        Ok((count, len_bytes / events.max(1) + 8 * count as u64))
    }

    fn place_of(&self, branch: &str) -> Location {
        self.tree.place().branch(branch)
    }
}

/// Computes the first event of each batch from the number of ids in each.
fn batches_of(tree: &TreeSource, counts: usize) -> Result<Vec<u64>> {
    let mut reader = tree.reader(&[counts])?;
    let (mut starts, mut event) = (vec![0], 0_u64);
    for entry in 0..tree.len_entries() {
        let block = reader.read(entry..entry + 1)?;
        let mut bytes = Bytes::new(blob_of(&block, 0), 0, "number of ids");
        let count = bytes.be_u32().map_err(|fault| fault.at(&tree.place().branch(IDS).entries(entry..entry + 1)))?;
        event = event.saturating_add(u64::from(count));
        starts.push(event);
    }
    Ok(starts)
}

impl Meta {
    fn read(tree: &TreeSource) -> Result<Self> {
        let damaged = |branch: &str, what: &str| {
            UnlocatedError::Damaged { address: 0, structure: "tree of packed events", what: what.to_owned() }
                .at(&tree.place().branch(branch))
        };
        if tree.len_entries() == 0 {
            return Err(damaged(COMPRESSION, "it has no entry"));
        }
        let column = |name: &str| {
            let Some(number) = tree.schema().position(name) else { return Ok(None) };
            Ok::<_, ColumnsError>(tree.reader(&[number])?.read(0..1)?.columns.pop())
        };
        let serialization = match column(SERIALIZATION)?.as_ref().map(|column| column.buffers.as_slice()) {
            // The framework's default.
            None => Serialization::Root,
            Some([Buffer::Values(bytes)]) if bytes.as_slice() == [0; 4] => Serialization::Root,
            Some([Buffer::Values(bytes)]) if bytes.as_slice() == [1, 0, 0, 0] => Serialization::Unrolled,
            Some(_) => return Err(damaged(SERIALIZATION, "the serialisation of products is not known")),
        };
        let name = column(COMPRESSION)?;
        let name = name.as_ref().and_then(Column::as_bytes).map(|(_, bytes)| String::from_utf8_lossy(bytes));
        let codec = name.as_deref().and_then(PdsCodec::of_name);
        let codec = codec.ok_or_else(|| damaged(COMPRESSION, &format!("compression {name:?} is not known")))?;
        Ok(Self { products: products_of(column)?, serialization, codec })
    }
}

/// Reads types and names of the products: pairs in a single branch, or one branch for each half.
fn products_of(column: impl Fn(&str) -> Result<Option<Column>>) -> Result<Option<Vec<(String, String)>>> {
    let halves = match column(PRODUCTS)? {
        // A list, and the strings of both halves.
        Some(Column { buffers }) if buffers.len() == 5 => [buffers[1..3].to_vec(), buffers[3..5].to_vec()],
        _ => {
            let half = |name: &str| {
                let column = column(&format!("{PRODUCTS}.{name}"))?;
                Ok::<_, ColumnsError>(
                    column.filter(|column| column.buffers.len() == 3).map(|column| column.buffers[1..].to_vec()),
                )
            };
            match [half("first")?, half("second")?] {
                [Some(classes), Some(names)] => [classes, names],
                _ => return Ok(None),
            }
        }
    };
    let [classes, names] = halves.map(|buffers| strings_of(&Column { buffers }));
    Ok(Some(classes.into_iter().zip(names).collect()))
}

fn strings_of(column: &Column) -> Vec<String> {
    let Some((offsets, bytes)) = column.as_bytes() else { return Vec::new() };
    let text = |pair: &[u64]| String::from_utf8_lossy(&bytes[pair[0] as usize..pair[1] as usize]).into_owned();
    offsets.windows(2).map(text).collect()
}

/// Returns the bytes of the first entry of a column of a block.
fn blob_of(block: &Block, column: usize) -> &[u8] {
    block.columns.get(column).and_then(Column::as_bytes).map_or(&[], |(_, bytes)| bytes)
}

/// Returns the elements of a list as stored in a branch: byte count, version, count, elements.
fn list_in(entry: &[u8], element_len_bytes: usize) -> Result<&[u8], UnlocatedError> {
    let mut bytes = Bytes::new(entry, 0, "list of packed events");
    let (_byte_count, _version) = (bytes.be_u32()?, bytes.be_u16()?);
    let count = bytes.be_u32()? as usize;
    match count.checked_mul(element_len_bytes) == Some(bytes.remaining()) {
        true => bytes.take(bytes.remaining()),
        false => Err(bytes.damaged(format!("{count} elements in {} bytes", bytes.remaining()))),
    }
}

/// Reads big-endian numbers.
fn numbers_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&number| u32::from_be_bytes(number)).collect()
}

/// Checks the numbers of `events` events of `count` products, and returns the total length of their blobs.
fn decoded_len_bytes(numbers: &[u32], count: usize, events: u64) -> Result<usize, UnlocatedError> {
    let bytes = Bytes::new(&[], 0, "offsets of packed events");
    if numbers.len() as u64 != events.saturating_mul(count as u64 + 1) {
        return Err(bytes.damaged(format!("{} numbers of {events} events of {count} products", numbers.len())));
    }
    let mut sum = 0_usize;
    for event in numbers.chunks_exact(count + 1) {
        if (count > 0 && event[0] != 0) || event.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(bytes.damaged("its products do not begin in their order"));
        }
        sum = sum.saturating_add(event[count] as usize);
    }
    Ok(sum)
}

impl Source for PackedTree {
    fn place(&self) -> Location {
        self.tree.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        match &self.batches {
            None => self.tree.len_entries(),
            Some(starts) => starts.last().copied().unwrap_or(0),
        }
    }

    fn has_ids(&self) -> bool {
        self.batches.is_some() || self.tree.has_ids()
    }

    /// Returns the end of a batch.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let events = (target_len_bytes / self.event_len_bytes.max(1)).max(1);
        let last = start.saturating_add(events).min(self.len_entries()) - 1;
        self.entry_of(last.max(start)).1.end
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        (entries.end - entries.start).saturating_mul(self.event_len_bytes)
    }

    fn reader_len_bytes(&self, _products: &[usize]) -> u64 {
        self.tree.reader_len_bytes(&self.parts)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.tree.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        Ok(Box::new(PackedTreeReader {
            source: self,
            products: products.to_vec(),
            schema: self.schema.select(products),
            entries: self.tree.reader(&self.parts)?,
            state: DecodeState::default(),
            open: None,
            numbers: Vec::new(),
            decoded: Vec::new(),
            ids: Vec::new(),
            starts: Vec::new(),
        }))
    }
}

/// Reader of events, which keeps the entry that it read last in decoded form: the next range may begin within it.
struct PackedTreeReader<'source> {
    source: &'source PackedTree,
    products: Vec<usize>,
    schema: Schema,
    /// Reader of the tree's entries.
    entries: Box<dyn RangeReader + 'source>,
    state: DecodeState,
    /// Number of the decoded entry.
    open: Option<u64>,
    numbers: Vec<u32>,
    decoded: Vec<u8>,
    ids: Vec<EventId>,
    /// Offset of each event in the decoded bytes.
    starts: Vec<usize>,
}

impl RangeReader for PackedTreeReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        check_entries(&self.source.place(), &entries, self.source.len_entries())?;
        let mut block = Block::new(&self.schema, entries.start);
        let mut event = entries.start;
        while event < entries.end {
            let (entry, inside) = self.source.entry_of(event);
            if self.open != Some(entry) {
                self.open = None;
                let stored = self.entries.read(entry..entry + 1)?;
                self.decode(&stored, inside.end - inside.start)
                    .map_err(|fault| fault.at(&self.source.place_of(BLOB).entries(inside.clone())))?;
                self.open = Some(entry);
            }
            let until = inside.end.min(entries.end);
            for number in event - inside.start..until - inside.start {
                self.push(number as usize, &mut block);
            }
            event = until;
        }
        block.entries.end = entries.end;
        Ok(block)
    }
}

impl PackedTreeReader<'_> {
    /// Decodes an entry of `events` events.
    fn decode(&mut self, stored: &Block, events: u64) -> Result<(), UnlocatedError> {
        let count = self.source.schema.products.len();
        self.numbers = numbers_of(list_in(blob_of(stored, 0), 4)?);
        let len_bytes = decoded_len_bytes(&self.numbers, count, events)?;
        let bytes = list_in(blob_of(stored, 1), 1)?;
        match self.source.codec.bare() {
            Some(codec) => decode(codec, &mut self.state, bytes, len_bytes, &mut self.decoded)?,
            None if bytes.len() != len_bytes => {
                let what = format!("{} of {len_bytes} bytes are stored", bytes.len());
                return Err(UnlocatedError::Damaged { address: 0, structure: "packed events", what });
            }
            None => {
                self.decoded.clear();
                self.decoded.extend_from_slice(bytes);
            }
        }
        self.starts.clear();
        let mut start = 0;
        for event in self.numbers.chunks_exact(count + 1) {
            self.starts.push(start);
            start += event[count] as usize;
        }
        self.ids.clone_from(&stored.ids);
        if self.source.batches.is_some() {
            self.ids = ids_of(stored, events)?;
        }
        Ok(())
    }

    /// Appends an event of the decoded entry.
    fn push(&self, number: usize, block: &mut Block) {
        let width = self.source.schema.products.len() + 1;
        let (numbers, start) = (&self.numbers[number * width..(number + 1) * width], self.starts[number]);
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            column.push_bytes(&self.decoded[start + numbers[product] as usize..start + numbers[product + 1] as usize]);
        }
        block.ids.extend(self.ids.get(number));
    }
}

/// Reads the ids of a batch: each member is stored for all events together, without any header.
fn ids_of(stored: &Block, events: u64) -> Result<Vec<EventId>, UnlocatedError> {
    let [runs, lumis, numbers] = [2, 3, 4].map(|column| blob_of(stored, column));
    let (runs, lumis, numbers) = (numbers_of(runs), numbers_of(lumis), numbers.as_chunks().0);
    if [runs.len(), lumis.len(), numbers.len()] != [events as usize; 3] {
        let what =
            format!("{} runs, {} subruns and {} numbers of {events} events", runs.len(), lumis.len(), numbers.len());
        return Err(UnlocatedError::Damaged { address: 0, structure: "ids of packed events", what });
    }
    let rows = runs.into_iter().zip(lumis).zip(numbers);
    Ok(rows.map(|((run, lumi), &event)| EventId { run, lumi, event: u64::from_be_bytes(event) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(strings: [&str; 2]) -> [Buffer; 2] {
        let mut column = Column::new(&Form::String);
        strings.iter().for_each(|text| column.push_bytes(text.as_bytes()));
        let [offsets, bytes] = <[Buffer; 2]>::try_from(column.buffers).unwrap();
        [offsets, bytes]
    }

    #[test]
    fn products_are_pairs_whole_or_in_halves() {
        let list = || Buffer::Offsets(vec![0, 2]);
        let ([a, b], [c, d]) = (strings(["vector<int>", "float"]), strings(["ints", "x"]));
        let column =
            |buffers: &[&Buffer]| Some(Column { buffers: buffers.iter().map(|&buffer| buffer.clone()).collect() });
        let whole = |name: &str| Ok(if name == PRODUCTS { column(&[&list(), &a, &b, &c, &d]) } else { None });
        let halves = |name: &str| {
            Ok(match name {
                // The branch of a split list holds its count.
                PRODUCTS => Some(Column::new(&Form::Number(raddle_columns::schema::Number::Int32))),
                "DataProducts.first" => column(&[&list(), &a, &b]),
                "DataProducts.second" => column(&[&list(), &c, &d]),
                _ => None,
            })
        };
        let expected =
            [("vector<int>", "ints"), ("float", "x")].map(|(class, name)| (class.to_owned(), name.to_owned()));
        assert_eq!(products_of(whole).unwrap().unwrap(), expected);
        assert_eq!(products_of(halves).unwrap().unwrap(), expected);
        assert_eq!(products_of(|_| Ok(None)).unwrap(), None);
    }

    #[test]
    fn numbers_must_be_those_of_whole_events() {
        assert_eq!(decoded_len_bytes(&[0, 3, 5, 0, 0, 2], 2, 2).unwrap(), 7);
        for (numbers, count, events) in [(&[0, 3, 5][..], 2, 2), (&[0, 5, 3], 2, 1), (&[1, 3, 5], 2, 1), (&[], 1, 1)] {
            assert!(decoded_len_bytes(numbers, count, events).is_err(), "{numbers:?}");
        }
        assert!(list_in(&[0x40, 0, 0, 8, 0, 10, 0, 0, 0, 1, 0, 0], 4).is_err());
    }
}
