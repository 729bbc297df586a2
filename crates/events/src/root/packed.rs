//! Trees of packed events, as the reference framework's `RootEventOutputer` and `RootBatchEventsOutputer` write them.
//!
//! An entry is an event or a batch of events: a list of numbers (for each event where each product's blob begins, and where
//! the last ends) and a list of bytes, which is compressed by itself. What the products are stands in the one entry of the
//! tree `Meta`; without the dictionary of its class ROOT leaves that branch out, and the products have numbers for names.
//!
//! Invariants: every entry's numbers say how long its bytes are when decoded; an event belongs to one entry.

use super::file::RootFile;
use super::source::{RootOptions, TreeSource};
use crate::block::{Block, Buffer, Column};
use crate::bytes::Bytes;
use crate::compressed::decode;
use crate::error::{EventsError, Fault, Place, Result};
use crate::pds::PdsCodec;
use crate::schema::{Form, Product, Schema, Serialization};
use crate::source::{EventId, Reader, Source, check_entries, check_products};
use raddle_codec::DecodeState;
use std::ops::Range;

/// Products of the tree: the numbers and the bytes.
const OFFSETS: &str = "offsetsAndBlob.first";
const BLOB: &str = "offsetsAndBlob.second";
/// Ids of batches: how many, and their members.
const IDS: &str = "EventIDs";
const ID_MEMBERS: [&str; 3] = ["EventIDs.run", "EventIDs.lumi", "EventIDs.event"];

/// The tree that says what the products are, and its branches.
const META: &str = "Meta";
const PRODUCTS: &str = "DataProducts";
const SERIALIZATION: &str = "objectSerializationUsed";
const COMPRESSION: &str = "compressionAlgorithm";

/// So many entries at the beginning tell how long an event is in the mean.
const SAMPLED_ENTRIES: u64 = 64;

/// A tree whose entries are packed events.
#[derive(Debug)]
pub struct PackedTree {
    /// Branches as bytes.
    tree: TreeSource,
    schema: Schema,
    codec: PdsCodec,
    serialization: Serialization,
    /// Numbers of the tree's products: numbers, bytes, and in batches the three members of ids.
    parts: Vec<usize>,
    /// The first event of each batch, and behind the last the number of events; none where each entry is an event.
    batches: Option<Vec<u64>>,
    /// Decoded length of an event in the mean, of the first ones.
    event_len_bytes: u64,
}

/// What `Meta` says.
struct Meta {
    /// Type and name of each; none if it does not say.
    products: Option<Vec<(String, String)>>,
    serialization: Serialization,
    codec: PdsCodec,
}

impl PackedTree {
    /// Whether a tree is one of packed events, by the names of its branches.
    pub(crate) fn is_one(tree: &TreeSource) -> bool {
        [OFFSETS, BLOB].iter().all(|name| tree.schema().position(name).is_some())
    }

    /// Opens the tree `path` of a file, which must be one.
    ///
    /// # Errors
    /// `Meta` is not there or not as the framework writes it; damaged metadata.
    pub fn open(file: RootFile, path: &str) -> Result<Self> {
        let meta = TreeSource::open(file, META, RootOptions { raw: false })?;
        let Meta { products, serialization, codec } = Meta::read(&meta)?;
        let tree = TreeSource::open(meta.into_file(), path, RootOptions { raw: true })?;
        let number = |name: &str| {
            tree.schema().position(name).ok_or_else(|| EventsError::NoSuch {
                place: tree.place().branch(name).into(),
                kind: "branch",
                there_is: tree.schema().products.iter().map(|product| product.name.clone()).collect(),
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

    /// How entries are compressed.
    pub fn codec(&self) -> PdsCodec {
        self.codec
    }

    /// How the products are serialised.
    pub fn serialization(&self) -> Serialization {
        self.serialization
    }

    /// Number of batches; none where each entry is an event.
    pub fn batches(&self) -> Option<u64> {
        self.batches.as_ref().map(|starts| starts.len() as u64 - 1)
    }

    /// The entry that holds an event, and the events that it holds.
    fn entry_of(&self, event: u64) -> (u64, Range<u64>) {
        match &self.batches {
            None => (event, event..event + 1),
            Some(starts) => {
                // Batches without events are passed over: the last that begins no later.
                let entry = starts.partition_point(|&start| start <= event).saturating_sub(1);
                (entry as u64, starts[entry]..starts[entry + 1])
            }
        }
    }

    /// Products of an event, and its length in the mean, from the first entries; `expected` products if that is known.
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
            let faulty = |fault: Fault| fault.at(&self.place_of(OFFSETS).entries(entry..entry + 1));
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

    fn place_of(&self, branch: &str) -> Place {
        self.tree.place().branch(branch)
    }
}

/// First events of batches, from how many ids each has.
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
            Fault::Damaged { address: 0, structure: "tree of packed events", what: what.to_owned() }
                .at(&tree.place().branch(branch))
        };
        if tree.len_entries() == 0 {
            return Err(damaged(COMPRESSION, "it has no entry"));
        }
        let column = |name: &str| {
            let Some(number) = tree.schema().position(name) else { return Ok(None) };
            Ok::<_, EventsError>(tree.reader(&[number])?.read(0..1)?.columns.pop())
        };
        let serialization = match column(SERIALIZATION)?.as_ref().map(|column| column.buffers.as_slice()) {
            // The framework's default.
            None => Serialization::Root,
            Some([Buffer::Values(bytes)]) if bytes.as_slice() == [0; 4] => Serialization::Root,
            Some([Buffer::Values(bytes)]) if bytes.as_slice() == [1, 0, 0, 0] => Serialization::Unrolled,
            Some(_) => return Err(damaged(SERIALIZATION, "how products are serialised is not known")),
        };
        let name = column(COMPRESSION)?;
        let name = name.as_ref().and_then(Column::as_bytes).map(|(_, bytes)| String::from_utf8_lossy(bytes));
        let codec = name.as_deref().and_then(PdsCodec::of_name);
        let codec = codec.ok_or_else(|| damaged(COMPRESSION, &format!("compression {name:?} is not known")))?;
        Ok(Self { products: products_of(column)?, serialization, codec })
    }
}

/// Types and names of the products: pairs, in a branch of their own or one branch for each half.
fn products_of(column: impl Fn(&str) -> Result<Option<Column>>) -> Result<Option<Vec<(String, String)>>> {
    let halves = match column(PRODUCTS)? {
        // List, and the texts of both halves.
        Some(Column { buffers }) if buffers.len() == 5 => [buffers[1..3].to_vec(), buffers[3..5].to_vec()],
        _ => {
            let half = |name: &str| {
                let column = column(&format!("{PRODUCTS}.{name}"))?;
                Ok::<_, EventsError>(
                    column.filter(|column| column.buffers.len() == 3).map(|column| column.buffers[1..].to_vec()),
                )
            };
            match [half("first")?, half("second")?] {
                [Some(classes), Some(names)] => [classes, names],
                _ => return Ok(None),
            }
        }
    };
    let [classes, names] = halves.map(|buffers| texts_of(&Column { buffers }));
    Ok(Some(classes.into_iter().zip(names).collect()))
}

fn texts_of(column: &Column) -> Vec<String> {
    let Some((offsets, bytes)) = column.as_bytes() else { return Vec::new() };
    let text = |pair: &[u64]| String::from_utf8_lossy(&bytes[pair[0] as usize..pair[1] as usize]).into_owned();
    offsets.windows(2).map(text).collect()
}

/// The bytes of the one entry of a column of a block.
fn blob_of(block: &Block, column: usize) -> &[u8] {
    block.columns.get(column).and_then(Column::as_bytes).map_or(&[], |(_, bytes)| bytes)
}

/// The elements of a list as a branch stores it: byte count, version, count.
fn list_in(entry: &[u8], element_len_bytes: usize) -> Result<&[u8], Fault> {
    let mut bytes = Bytes::new(entry, 0, "list of packed events");
    let (_byte_count, _version) = (bytes.be_u32()?, bytes.be_u16()?);
    let count = bytes.be_u32()? as usize;
    match count.checked_mul(element_len_bytes) == Some(bytes.remaining()) {
        true => bytes.take(bytes.remaining()),
        false => Err(bytes.damaged(format!("{count} elements in {} bytes", bytes.remaining()))),
    }
}

/// Big-endian numbers.
fn numbers_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&number| u32::from_be_bytes(number)).collect()
}

/// Checks the numbers of so many events of `count` products; the length of all their blobs.
fn decoded_len_bytes(numbers: &[u32], count: usize, events: u64) -> Result<usize, Fault> {
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
    fn place(&self) -> Place {
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

    /// Ends with a batch.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let events = (target_len_bytes / self.event_len_bytes.max(1)).max(1);
        let last = start.saturating_add(events).min(self.len_entries()) - 1;
        self.entry_of(last.max(start)).1.end
    }

    fn unit_len_bytes(&self, entries: Range<u64>) -> u64 {
        (entries.end - entries.start).saturating_mul(self.event_len_bytes)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.tree.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
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

/// Reads events. Keeps the entry that it read last, decoded: the next range may go on in it.
struct PackedTreeReader<'source> {
    source: &'source PackedTree,
    products: Vec<usize>,
    schema: Schema,
    /// Of the tree.
    entries: Box<dyn Reader + 'source>,
    state: DecodeState,
    /// Number of the entry that the rest is of.
    open: Option<u64>,
    numbers: Vec<u32>,
    decoded: Vec<u8>,
    ids: Vec<EventId>,
    /// Where each event begins among the decoded bytes.
    starts: Vec<usize>,
}

impl Reader for PackedTreeReader<'_> {
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
    /// Opens an entry of so many events.
    fn decode(&mut self, stored: &Block, events: u64) -> Result<(), Fault> {
        let count = self.source.schema.products.len();
        self.numbers = numbers_of(list_in(blob_of(stored, 0), 4)?);
        let len_bytes = decoded_len_bytes(&self.numbers, count, events)?;
        let bytes = list_in(blob_of(stored, 1), 1)?;
        match self.source.codec.bare() {
            Some(codec) => decode(codec, &mut self.state, bytes, len_bytes, &mut self.decoded)?,
            None if bytes.len() != len_bytes => {
                let what = format!("{} bytes are stored of {len_bytes}", bytes.len());
                return Err(Fault::Damaged { address: 0, structure: "packed events", what });
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

    /// Appends an event of the open entry.
    fn push(&self, number: usize, block: &mut Block) {
        let width = self.source.schema.products.len() + 1;
        let (numbers, start) = (&self.numbers[number * width..(number + 1) * width], self.starts[number]);
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            column.push_bytes(&self.decoded[start + numbers[product] as usize..start + numbers[product + 1] as usize]);
        }
        block.ids.extend(self.ids.get(number));
    }
}

/// The ids of a batch: each member of all of them by itself, without any front.
fn ids_of(stored: &Block, events: u64) -> Result<Vec<EventId>, Fault> {
    let [runs, lumis, numbers] = [2, 3, 4].map(|column| blob_of(stored, column));
    let (runs, lumis, numbers) = (numbers_of(runs), numbers_of(lumis), numbers.as_chunks().0);
    if [runs.len(), lumis.len(), numbers.len()] != [events as usize; 3] {
        let what =
            format!("{} runs, {} subruns and {} numbers of {events} events", runs.len(), lumis.len(), numbers.len());
        return Err(Fault::Damaged { address: 0, structure: "ids of packed events", what });
    }
    let rows = runs.into_iter().zip(lumis).zip(numbers);
    Ok(rows.map(|((run, lumi), &event)| EventId { run, lumi, event: u64::from_be_bytes(event) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: [&str; 2]) -> [Buffer; 2] {
        let mut column = Column::new(&Form::String);
        texts.iter().for_each(|text| column.push_bytes(text.as_bytes()));
        let [offsets, bytes] = <[Buffer; 2]>::try_from(column.buffers).unwrap();
        [offsets, bytes]
    }

    #[test]
    fn products_are_pairs_whole_or_in_halves() {
        let list = || Buffer::Offsets(vec![0, 2]);
        let ([a, b], [c, d]) = (texts(["vector<int>", "float"]), texts(["ints", "x"]));
        let column =
            |buffers: &[&Buffer]| Some(Column { buffers: buffers.iter().map(|&buffer| buffer.clone()).collect() });
        let whole = |name: &str| Ok(if name == PRODUCTS { column(&[&list(), &a, &b, &c, &d]) } else { None });
        let halves = |name: &str| {
            Ok(match name {
                // The branch of a split list has its count.
                PRODUCTS => Some(Column::new(&Form::Number(crate::schema::Number::Int32))),
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
