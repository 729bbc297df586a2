//! HDF5 files of events as a source, whichever layout they have.
//!
//! Invariant: what a file says of its layout is checked when it is opened as far as that takes no reading of events; offsets
//! are checked where they are read.

use super::columns::{self, StoredProduct};
use super::event::{self, BATCHES, OFFSETS, PRODUCTS};
use super::file::{Array, EventsFile, GroupIn, words};
use super::lumi::{CLASS_NAMES, LUMISEC, PRODUCT_NAMES, RUN, SERIALIZATIONS};
use super::packed_source::{PackedReader, PackedSource};
use super::product::{self, CLASS_NAME, DATASETS, EVENT_IDS, SIZES};
use super::{CceOptions, LAYOUT_ATTRIBUTE, LUMI};
use crate::block::{Block, Buffer, Column};
use crate::error::{Place, Result};
use crate::schema::{BufferKind, Form, Number, Product, Schema, Serialization};
use crate::source::{EventId, Reader, Source, check_entries, check_products};
use raddle_hdf5::read::DatasetReader;
use std::ops::Range;
use std::path::Path;

/// The layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLayout {
    /// Columns.
    Columns,
    /// Products by themselves, in our form.
    Product,
    /// Events together, in our form.
    Event,
    /// Batches together, in our form; so many of them.
    Batch(u64),
    /// Products by themselves, as the framework writes them.
    FrameworkProduct,
    /// Events together, as the framework writes them.
    FrameworkEvent(CceOptions),
    /// Batches together, as the framework writes them.
    FrameworkBatch(CceOptions),
}

/// A file of events.
#[derive(Debug)]
pub struct Hdf5Source {
    file: EventsFile,
    layout: FileLayout,
    schema: Schema,
    len_entries: u64,
    ids: Ids,
    content: Content,
    /// Length in memory of an entry of all products, in the mean.
    entry_len_bytes: u64,
}

/// Where ids are.
#[derive(Debug)]
pub(super) enum Ids {
    None,
    /// Run, subrun, event.
    Arrays(Box<[Array; 3]>),
    /// Run and subrun of the first event, which is all that the framework records, and 32 bits of each event's number.
    Framework {
        run: u32,
        lumi: u32,
        events: Box<Array>,
    },
}

/// Where products are.
#[derive(Debug)]
enum Content {
    /// For each product its buffers.
    Columns(Vec<Vec<Array>>),
    /// For each product its bytes and where events end in them.
    Products(Vec<ProductArrays>),
    Events {
        products: Array,
        offsets: Array,
    },
    /// With the first event of each batch, and behind the last the number of events.
    Batches {
        products: Array,
        offsets: Array,
        starts: Vec<u64>,
    },
    Packed(PackedSource),
}

#[derive(Debug)]
struct ProductArrays {
    bytes: Array,
    ends: Array,
}

impl Hdf5Source {
    /// Opens the file at `path`, whose layout it finds out.
    ///
    /// # Errors
    /// It is no HDF5 file of events, or contradicts its layout.
    pub fn open(path: &Path) -> Result<Self> {
        let file = EventsFile::open(path)?;
        let opened = match (file.group(columns::EVENTS), file.group(LUMI)) {
            (Some(events), _) if events.text(LAYOUT_ATTRIBUTE)?.as_deref() == Some(columns::LAYOUT_NAME) => {
                open_columns(&file, events)?
            }
            (_, Some(lumi)) => match lumi.text(LAYOUT_ATTRIBUTE)?.as_deref() {
                Some(product::LAYOUT_NAME) => open_products(&file, lumi)?,
                Some(event::EVENT_NAME) => open_events(&file, lumi)?,
                Some(event::BATCH_NAME) => open_batches(&file, lumi)?,
                Some(other) => return Err(file.damaged(LUMI, format!("layout {other:?} is not known"))),
                None if lumi.has(EVENT_IDS) => open_framework_products(&file, lumi)?,
                None if lumi.has(OFFSETS) && lumi.has(PRODUCTS) => open_packed(&file, lumi)?,
                None => return Err(file.other()),
            },
            _ => return Err(file.other()),
        };
        let Opened { layout, schema, len_entries, ids, content } = opened;
        let ids_len_bytes = if matches!(ids, Ids::None) { 0 } else { size_of::<EventId>() as u64 };
        let entry_len_bytes = (content.len_bytes() / len_entries.max(1)).saturating_add(ids_len_bytes + 1);
        Ok(Self { file, layout, schema, len_entries, ids, content, entry_len_bytes })
    }

    /// How the file is laid out.
    pub fn layout(&self) -> FileLayout {
        self.layout
    }

    fn arrays(&self, products: &[usize]) -> Vec<&Array> {
        let mut arrays: Vec<&Array> = match &self.ids {
            Ids::None => Vec::new(),
            Ids::Arrays(arrays) => arrays.iter().collect(),
            Ids::Framework { events, .. } => vec![events.as_ref()],
        };
        match &self.content {
            Content::Columns(columns) => arrays.extend(products.iter().flat_map(|&product| &columns[product])),
            Content::Products(all) => {
                arrays.extend(products.iter().flat_map(|&product| [&all[product].bytes, &all[product].ends]));
            }
            Content::Events { products, offsets } | Content::Batches { products, offsets, .. } => {
                arrays.extend([products, offsets]);
            }
            Content::Packed(packed) => arrays.extend(packed.arrays()),
        }
        arrays
    }
}

/// A file whose layout is known.
struct Opened {
    layout: FileLayout,
    schema: Schema,
    len_entries: u64,
    ids: Ids,
    content: Content,
}

impl Content {
    /// Length of all products in memory, about.
    fn len_bytes(&self) -> u64 {
        let of = |array: &Array| array.len.saturating_mul(array.number.len_bytes() as u64);
        match self {
            Self::Columns(columns) => columns.iter().flatten().map(of).fold(0, u64::saturating_add),
            Self::Products(products) => {
                products.iter().map(|p| of(&p.bytes).saturating_add(of(&p.ends))).fold(0, u64::saturating_add)
            }
            Self::Events { products, offsets } | Self::Batches { products, offsets, .. } => {
                of(products).saturating_add(of(offsets))
            }
            Self::Packed(packed) => packed.len_bytes(),
        }
    }
}

fn open_columns(file: &EventsFile, events: GroupIn<'_>) -> Result<Opened> {
    let damaged = |what: String| file.damaged(columns::EVENTS, what);
    let stored = events.text(columns::SCHEMA_ATTRIBUTE)?.ok_or_else(|| damaged("it has no schema".to_owned()))?;
    let stored: Vec<StoredProduct> =
        serde_json::from_str(&stored).map_err(|error| damaged(format!("its schema: {error}")))?;
    let length = events.number(columns::LENGTH_ATTRIBUTE)?;
    let len_entries = length.ok_or_else(|| damaged("it has no number of events".to_owned()))? as u64;
    let (mut schema, mut arrays) = (Schema::default(), Vec::with_capacity(stored.len()));
    for StoredProduct { product, buffers } in stored {
        let forms = product.form.buffers();
        if forms.len() != buffers.len() {
            return Err(damaged(format!(
                "product {:?} has {} arrays, not {}",
                product.name,
                buffers.len(),
                forms.len()
            )));
        }
        let mut of_product = Vec::with_capacity(forms.len());
        for (form, name) in forms.iter().zip(&buffers) {
            let number = match form.kind {
                BufferKind::Offsets => Number::Uint64,
                BufferKind::Values(number) => number,
            };
            of_product.push(events.array(name, &[number])?);
        }
        check_first_lengths(file, &product.form, len_entries, &mut of_product.iter())?;
        schema.products.push(product);
        arrays.push(of_product);
    }
    check_names(file, &schema)?;
    let ids = match file.group(columns::IDS).filter(|group| group.has("event")) {
        Some(group) => Ids::Arrays(Box::new([
            group.array("run", &[Number::Uint32])?,
            group.array("lumi", &[Number::Uint32])?,
            group.array("event", &[Number::Uint64])?,
        ])),
        None => Ids::None,
    };
    check_ids(file, &ids, len_entries)?;
    Ok(Opened { layout: FileLayout::Columns, schema, len_entries, ids, content: Content::Columns(arrays) })
}

/// Checks the lengths of those arrays that the number of entries alone says.
fn check_first_lengths(
    file: &EventsFile,
    form: &Form,
    values: u64,
    arrays: &mut std::slice::Iter<'_, Array>,
) -> Result<()> {
    let mut check = |expected: u64, below: usize| -> Result<()> {
        if let Some(array) = arrays.next()
            && array.len != expected
        {
            return Err(file.damaged(&array.path, format!("it has {} elements, not {expected}", array.len)));
        }
        // What is below has a length that only offsets say.
        arrays.by_ref().take(below).for_each(|_| ());
        Ok(())
    };
    match form {
        Form::Number(_) => check(values, 0),
        Form::Regular { length, content } => check_first_lengths(file, content, values.saturating_mul(*length), arrays),
        Form::List(content) => check(values.saturating_add(1), content.buffers().len()),
        Form::String | Form::Blob(_) => check(values.saturating_add(1), 1),
        Form::Record(fields) => {
            fields.iter().try_for_each(|field| check_first_lengths(file, &field.form, values, arrays))
        }
    }
}

/// Fails if two products have one name.
fn check_names(file: &EventsFile, schema: &Schema) -> Result<()> {
    let mut names: Vec<&str> = schema.products.iter().map(|product| product.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(file.damaged(LUMI, format!("two products are called {:?}", pair[0]))),
    }
}

fn check_ids(file: &EventsFile, ids: &Ids, len_entries: u64) -> Result<()> {
    let arrays: Vec<&Array> = match ids {
        Ids::None => Vec::new(),
        Ids::Arrays(arrays) => arrays.iter().collect(),
        Ids::Framework { events, .. } => vec![events.as_ref()],
    };
    match arrays.into_iter().find(|array| array.len != len_entries) {
        None => Ok(()),
        Some(array) => Err(file.damaged(&array.path, format!("it has {} ids for {len_entries} events", array.len))),
    }
}

/// Products as the attributes of a file of ours list them.
fn listed_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Schema> {
    let list = |name: &str| lumi.texts(name).map(Option::unwrap_or_default);
    let (names, classes, serializations) = (list(PRODUCT_NAMES)?, list(CLASS_NAMES)?, list(SERIALIZATIONS)?);
    if names.len() != classes.len() || names.len() != serializations.len() {
        return Err(file.damaged(LUMI, "its lists of products have different lengths".to_owned()));
    }
    let mut schema = Schema::default();
    for ((name, class), serialization) in names.into_iter().zip(classes).zip(serializations) {
        let all = [Serialization::Root, Serialization::Unrolled, Serialization::Basket];
        let Some(known) = all.into_iter().find(|known| known.name() == serialization) else {
            return Err(file.damaged(LUMI, format!("serialisation {serialization:?} is not known")));
        };
        schema.products.push(Product { name, class, form: Form::Blob(known) });
    }
    check_names(file, &schema)?;
    Ok(schema)
}

fn id_arrays(lumi: GroupIn<'_>, run: &str, lumisec: &str, event: &str) -> Result<Ids> {
    Ok(Ids::Arrays(Box::new([
        lumi.array(run, &[Number::Uint32])?,
        lumi.array(lumisec, &[Number::Uint32])?,
        lumi.array(event, &[Number::Uint64])?,
    ])))
}

fn open_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Opened> {
    let schema = listed_products(file, lumi)?;
    let names = lumi.texts(DATASETS)?.unwrap_or_default();
    if names.len() != schema.products.len() {
        return Err(file.damaged(LUMI, "its list of datasets is not as long as that of products".to_owned()));
    }
    let ids = id_arrays(lumi, product::RUNS, product::LUMIS, EVENT_IDS)?;
    let products = product_arrays(lumi, &names, Number::Uint8)?;
    products_opened(file, FileLayout::Product, schema, ids, products)
}

fn product_arrays(lumi: GroupIn<'_>, names: &[String], bytes: Number) -> Result<Vec<ProductArrays>> {
    let arrays = |name: &String| {
        let ends = lumi.array(&format!("{name}{SIZES}"), &[Number::Uint64])?;
        Ok(ProductArrays { bytes: lumi.array(name, &[bytes])?, ends })
    };
    names.iter().map(arrays).collect()
}

fn products_opened(
    file: &EventsFile,
    layout: FileLayout,
    schema: Schema,
    ids: Ids,
    products: Vec<ProductArrays>,
) -> Result<Opened> {
    let len_entries = ids.len();
    check_ids(file, &ids, len_entries)?;
    if let Some(wrong) = products.iter().find(|product| product.ends.len != len_entries) {
        let what = format!("it has {} ends for {len_entries} events", wrong.ends.len);
        return Err(file.damaged(&wrong.ends.path, what));
    }
    Ok(Opened { layout, schema, len_entries, ids, content: Content::Products(products) })
}

fn open_framework_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Opened> {
    // As the framework's own reader takes them: everything that is not of sizes, in the order of links.
    let names = lumi.links().filter_map(|name| std::str::from_utf8(name).ok());
    let names: Vec<String> =
        names.filter(|name| !name.contains(SIZES) && *name != EVENT_IDS).map(str::to_owned).collect();
    let mut schema = Schema::default();
    for name in &names {
        let class = lumi.text_of(name, CLASS_NAME)?;
        schema.products.push(Product { name: name.clone(), class, form: Form::Blob(Serialization::Root) });
    }
    let ids = framework_ids(lumi, EVENT_IDS)?;
    let products = product_arrays(lumi, &names, Number::Int8)?;
    products_opened(file, FileLayout::FrameworkProduct, schema, ids, products)
}

fn framework_ids(lumi: GroupIn<'_>, events: &str) -> Result<Ids> {
    let first = |name: &str| lumi.number(name).map(|number| number.unwrap_or(0) as u32);
    let events = Box::new(lumi.array(events, &[Number::Int32])?);
    Ok(Ids::Framework { run: first(RUN)?, lumi: first(LUMISEC)?, events })
}

/// Number of offsets of `events` events, which have one end more than there are blobs.
fn offsets_len(events: u64, schema: &Schema) -> u64 {
    events.saturating_mul(schema.products.len() as u64).saturating_add(1)
}

fn open_events(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Opened> {
    let schema = listed_products(file, lumi)?;
    let ids = id_arrays(lumi, event::RUNS, event::LUMIS, event::EVENT_IDS)?;
    let (products, offsets) = event_arrays(file, lumi, &schema, &ids)?;
    let len_entries = ids.len();
    Ok(Opened { layout: FileLayout::Event, schema, len_entries, ids, content: Content::Events { products, offsets } })
}

fn event_arrays(file: &EventsFile, lumi: GroupIn<'_>, schema: &Schema, ids: &Ids) -> Result<(Array, Array)> {
    check_ids(file, ids, ids.len())?;
    let products = lumi.array(PRODUCTS, &[Number::Uint8])?;
    let offsets = lumi.array(OFFSETS, &[Number::Uint64])?;
    let expected = offsets_len(ids.len(), schema);
    if offsets.len != expected {
        return Err(file.damaged(&offsets.path, format!("it has {} offsets, not {expected}", offsets.len)));
    }
    Ok((products, offsets))
}

fn open_batches(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Opened> {
    let schema = listed_products(file, lumi)?;
    let ids = id_arrays(lumi, event::RUNS, event::LUMIS, event::EVENT_IDS)?;
    let (products, offsets) = event_arrays(file, lumi, &schema, &ids)?;
    let len_entries = ids.len();
    let batches = lumi.array(BATCHES, &[Number::Uint64])?;
    let mut reader = file.reader(std::iter::once(&batches));
    let starts = file.read_rising(&mut reader, &batches, 0..batches.len, len_entries)?;
    if starts.first() != Some(&0) || starts.last() != Some(&len_entries) {
        return Err(file.damaged(&batches.path, format!("the batches do not hold the {len_entries} events")));
    }
    let layout = FileLayout::Batch(starts.len() as u64 - 1);
    Ok(Opened { layout, schema, len_entries, ids, content: Content::Batches { products, offsets, starts } })
}

fn open_packed(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Opened> {
    let ids = framework_ids(lumi, event::EVENT_IDS)?;
    let len_entries = ids.len();
    let (schema, layout, packed) = PackedSource::open(file, lumi, len_entries)?;
    check_names(file, &schema)?;
    Ok(Opened { layout, schema, len_entries, ids, content: Content::Packed(packed) })
}

impl Ids {
    fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Arrays(arrays) => arrays[2].len,
            Self::Framework { events, .. } => events.len,
        }
    }

    fn read(&self, file: &EventsFile, reader: &mut DatasetReader, entries: Range<u64>) -> Result<Vec<EventId>> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Arrays(arrays) => {
                let [runs, lumis, events] = arrays.as_ref();
                let runs = file.read(reader, runs, entries.clone())?;
                let lumis = file.read(reader, lumis, entries.clone())?;
                let events = file.read_u64(reader, events, entries)?;
                let ids = words(&runs).zip(words(&lumis)).zip(events);
                let id = |((run, lumi), event)| EventId {
                    run: u32::from_le_bytes(run),
                    lumi: u32::from_le_bytes(lumi),
                    event,
                };
                Ok(ids.map(id).collect())
            }
            Self::Framework { run, lumi, events } => {
                let events = file.read(reader, events, entries)?;
                // Cut or clamped when it was written: what is left is read as unsigned.
                let id = |event| EventId { run: *run, lumi: *lumi, event: u64::from(u32::from_le_bytes(event)) };
                Ok(words(&events).map(id).collect())
            }
        }
    }
}

impl Source for Hdf5Source {
    fn place(&self) -> Place {
        self.file.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.len_entries
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let entries = (target_len_bytes / self.entry_len_bytes).max(1);
        start.saturating_add(entries).min(self.len_entries)
    }

    fn unit_len_bytes(&self, entries: Range<u64>) -> u64 {
        (entries.end - entries.start).saturating_mul(self.entry_len_bytes)
    }

    fn reads_products_alone(&self) -> bool {
        matches!(self.content, Content::Columns(_) | Content::Products(_))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        let datasets = self.file.reader(self.arrays(products).into_iter());
        let packed = match &self.content {
            Content::Packed(packed) => Some(packed.reader()),
            _ => None,
        };
        let schema = self.schema.select(products);
        Ok(Box::new(Hdf5Reader { source: self, products: products.to_vec(), schema, datasets, packed, with_ids: true }))
    }
}

struct Hdf5Reader<'source> {
    source: &'source Hdf5Source,
    with_ids: bool,
    products: Vec<usize>,
    schema: Schema,
    datasets: DatasetReader,
    packed: Option<PackedReader<'source>>,
}

impl Reader for Hdf5Reader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let Hdf5Source { file, ids, content, len_entries, .. } = self.source;
        check_entries(&file.place(), &entries, *len_entries)?;
        let ids = match self.with_ids {
            true => ids.read(file, &mut self.datasets, entries.clone())?,
            false => Vec::new(),
        };
        let columns = match content {
            Content::Columns(arrays) => self.columns(arrays, entries.clone())?,
            Content::Products(arrays) => self.products(arrays, entries.clone())?,
            Content::Events { products, offsets } => self.events(products, offsets, entries.clone())?,
            Content::Batches { products, offsets, starts } => {
                self.batches(products, offsets, starts, entries.clone())?
            }
            Content::Packed(_) => match &mut self.packed {
                Some(packed) => packed.read(file, &mut self.datasets, &self.products, entries.clone())?,
                None => Vec::new(),
            },
        };
        Ok(Block { entries, ids, columns })
    }

    fn leave_out_ids(&mut self) {
        self.with_ids = false;
    }
}

impl Hdf5Reader<'_> {
    fn columns(&mut self, arrays: &[Vec<Array>], entries: Range<u64>) -> Result<Vec<Column>> {
        let mut columns = Vec::with_capacity(self.products.len());
        for (&product, described) in self.products.iter().zip(&self.schema.products) {
            let mut buffers = Vec::with_capacity(arrays[product].len());
            let mut arrays = arrays[product].iter();
            read_form(
                &self.source.file,
                &mut self.datasets,
                &described.form,
                entries.clone(),
                &mut arrays,
                &mut buffers,
            )?;
            columns.push(Column { buffers });
        }
        Ok(columns)
    }

    fn products(&mut self, arrays: &[ProductArrays], entries: Range<u64>) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let mut columns = Vec::with_capacity(self.products.len());
        for &product in &self.products {
            let ProductArrays { bytes, ends } = &arrays[product];
            // The end of the entry before is where the first begins.
            let first = entries.start.saturating_sub(1);
            let mut offsets = file.read_rising(&mut self.datasets, ends, first..entries.end, bytes.len)?;
            if entries.start == 0 {
                offsets.insert(0, 0);
            }
            let range = offsets[0]..offsets[offsets.len() - 1];
            let values = file.read(&mut self.datasets, bytes, range)?;
            columns.push(Column::of_bytes(from_zero(offsets), values));
        }
        Ok(columns)
    }

    fn events(&mut self, products: &Array, offsets: &Array, entries: Range<u64>) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let count = self.source.schema.products.len();
        let range = entries.start * count as u64..entries.end * count as u64 + 1;
        let offsets = file.read_rising(&mut self.datasets, offsets, range, products.len)?;
        let start = offsets[0];
        let bytes = file.read(&mut self.datasets, products, start..offsets[offsets.len() - 1])?;
        let mut columns: Vec<Column> = self.schema.products.iter().map(|product| Column::new(&product.form)).collect();
        for event in 0..(entries.end - entries.start) as usize {
            for (column, &product) in columns.iter_mut().zip(&self.products) {
                let at = event * count + product;
                let range = (offsets[at] - start) as usize..(offsets[at + 1] - start) as usize;
                column.push_bytes(&bytes[range]);
            }
        }
        Ok(columns)
    }

    fn batches(
        &mut self,
        products: &Array,
        offsets: &Array,
        starts: &[u64],
        entries: Range<u64>,
    ) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let count = self.source.schema.products.len() as u64;
        let mut columns: Vec<Column> = self.schema.products.iter().map(|product| Column::new(&product.form)).collect();
        let mut batch = starts.partition_point(|&start| start <= entries.start).saturating_sub(1);
        while batch + 1 < starts.len() && starts[batch] < entries.end {
            let (start, end) = (starts[batch], starts[batch + 1]);
            let (from, to) = (start.max(entries.start), end.min(entries.end));
            batch += 1;
            if from >= to {
                continue;
            }
            for (column, &product) in columns.iter_mut().zip(&self.products) {
                let first = start * count + product as u64 * (end - start);
                let range = first + (from - start)..first + (to - start) + 1;
                let offsets = file.read_rising(&mut self.datasets, offsets, range, products.len)?;
                let bytes = file.read(&mut self.datasets, products, offsets[0]..offsets[offsets.len() - 1])?;
                // Both are blobs.
                let _ = column.append(&Column::of_bytes(from_zero(offsets), bytes));
            }
        }
        Ok(columns)
    }
}

/// Appends the buffers of some values of a form.
fn read_form<'a>(
    file: &EventsFile,
    reader: &mut DatasetReader,
    form: &Form,
    values: Range<u64>,
    arrays: &mut impl Iterator<Item = &'a Array>,
    buffers: &mut Vec<Buffer>,
) -> Result<()> {
    let mut next = || arrays.next().ok_or_else(|| file.damaged(columns::EVENTS, "an array is missing".to_owned()));
    match form {
        Form::Number(_) => buffers.push(Buffer::Values(file.read(reader, next()?, values)?)),
        Form::Regular { length, content } => {
            let scale = |value: u64| value.checked_mul(*length);
            let (Some(start), Some(end)) = (scale(values.start), scale(values.end)) else {
                return Err(file.damaged(columns::EVENTS, "an array of fixed length is too long".to_owned()));
            };
            read_form(file, reader, content, start..end, arrays, buffers)?;
        }
        Form::List(_) | Form::String | Form::Blob(_) => {
            let offsets = file.read_rising(reader, next()?, values.start..values.end.saturating_add(1), u64::MAX)?;
            let below = offsets[0]..offsets[offsets.len() - 1];
            buffers.push(Buffer::Offsets(from_zero(offsets)));
            match form {
                Form::List(content) => read_form(file, reader, content, below, arrays, buffers)?,
                _ => buffers.push(Buffer::Values(file.read(reader, next()?, below)?)),
            }
        }
        Form::Record(fields) => {
            for field in fields {
                read_form(file, reader, &field.form, values.clone(), arrays, buffers)?;
            }
        }
    }
    Ok(())
}

/// Offsets that begin with 0.
fn from_zero(mut offsets: Vec<u64>) -> Vec<u64> {
    let first = offsets.first().copied().unwrap_or(0);
    offsets.iter_mut().for_each(|offset| *offset -= first);
    offsets
}
