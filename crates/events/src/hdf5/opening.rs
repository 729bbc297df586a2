//! Opening of an event file: finds its layout, products and arrays.
//!
//! Events are read elsewhere. Invariant: an opened file has all arrays of its layout, with the lengths that follow from
//! its number of events. Lengths that only offsets determine are checked when the offsets are read.

use super::columns::{self, StoredProduct};
use super::contents::{Ids, ProductArrays, ProductStorage};
use super::event::{self, BATCHES, OFFSETS, PRODUCTS};
use super::file::{Array, EventsFile, GroupIn};
use super::lumi::{CLASS_NAMES, LUMISEC, PRODUCT_NAMES, RUN, SERIALIZATIONS};
use super::packed_source::PackedSource;
use super::product::{self, CLASS_NAME, DATASETS, EVENT_IDS, SIZES};
use super::{COUNTED_IDS, FileLayout, IDS_ATTRIBUTE, LAYOUT_ATTRIBUTE, LUMI};
use crate::error::Result;
use raddle_columns::schema::{BufferKind, Form, Number, Product, Schema, Serialization};

/// File whose layout is known.
pub(super) struct OpenedLayout {
    pub layout: FileLayout,
    pub schema: Schema,
    pub len_entries: u64,
    pub ids: Ids,
    pub content: ProductStorage,
}

impl OpenedLayout {
    /// Detects the layout of `file`.
    ///
    /// # Errors
    /// If the file does not contain events, or contradicts its layout.
    pub(super) fn of(file: &EventsFile) -> Result<Self> {
        match (file.group(columns::EVENTS), file.group(LUMI)) {
            (Some(events), _) if events.text(LAYOUT_ATTRIBUTE)?.as_deref() == Some(columns::LAYOUT_NAME) => {
                open_columns(file, events)
            }
            (_, Some(lumi)) => match lumi.text(LAYOUT_ATTRIBUTE)?.as_deref() {
                Some(product::LAYOUT_NAME) => open_products(file, lumi)?.without_counted_ids(lumi),
                Some(event::EVENT_NAME) => open_events(file, lumi)?.without_counted_ids(lumi),
                Some(event::BATCH_NAME) => open_batches(file, lumi)?.without_counted_ids(lumi),
                Some(other) => Err(file.damaged(LUMI, format!("layout {other:?} is not known"))),
                None if lumi.has(EVENT_IDS) => open_framework_products(file, lumi),
                None if lumi.has(OFFSETS) && lumi.has(PRODUCTS) => open_packed(file, lumi),
                None => Err(file.other()),
            },
            _ => Err(file.other()),
        }
    }

    /// Removes ids that were only counted because the source of the file had none.
    fn without_counted_ids(self, lumi: GroupIn<'_>) -> Result<Self> {
        Ok(match lumi.text(IDS_ATTRIBUTE)?.as_deref() {
            Some(COUNTED_IDS) => Self { ids: Ids::None, ..self },
            _ => self,
        })
    }
}

fn open_columns(file: &EventsFile, events: GroupIn<'_>) -> Result<OpenedLayout> {
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
    Ok(OpenedLayout { layout: FileLayout::Columns, schema, len_entries, ids, content: ProductStorage::Columns(arrays) })
}

/// Checks the lengths of those arrays for which the number of entries determines it.
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
        // The lengths of the remaining arrays depend on offsets.
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

/// Fails if two products have the same name.
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

/// Reads the products from the attributes of a file written by raddle.
fn listed_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<Schema> {
    let list = |name: &str| lumi.strings(name).map(Option::unwrap_or_default);
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

fn open_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<OpenedLayout> {
    let schema = listed_products(file, lumi)?;
    let names = lumi.strings(DATASETS)?.unwrap_or_default();
    if names.len() != schema.products.len() {
        return Err(file.damaged(LUMI, "its lists of datasets and products have different lengths".to_owned()));
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
) -> Result<OpenedLayout> {
    let len_entries = ids.len();
    check_ids(file, &ids, len_entries)?;
    if let Some(wrong) = products.iter().find(|product| product.ends.len != len_entries) {
        let what = format!("it has {} ends for {len_entries} events", wrong.ends.len);
        return Err(file.damaged(&wrong.ends.path, what));
    }
    Ok(OpenedLayout { layout, schema, len_entries, ids, content: ProductStorage::Products(products) })
}

fn open_framework_products(file: &EventsFile, lumi: GroupIn<'_>) -> Result<OpenedLayout> {
    // As in the framework's own reader: every dataset that does not hold sizes, in the order of links.
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

/// Returns the number of offsets of `events` events: one more than the number of blobs.
fn offsets_len(events: u64, schema: &Schema) -> u64 {
    events.saturating_mul(schema.products.len() as u64).saturating_add(1)
}

fn open_events(file: &EventsFile, lumi: GroupIn<'_>) -> Result<OpenedLayout> {
    let schema = listed_products(file, lumi)?;
    let ids = id_arrays(lumi, event::RUNS, event::LUMIS, event::EVENT_IDS)?;
    let (products, offsets) = event_arrays(file, lumi, &schema, &ids)?;
    let len_entries = ids.len();
    Ok(OpenedLayout {
        layout: FileLayout::Event,
        schema,
        len_entries,
        ids,
        content: ProductStorage::Events { products, offsets },
    })
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

fn open_batches(file: &EventsFile, lumi: GroupIn<'_>) -> Result<OpenedLayout> {
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
    Ok(OpenedLayout {
        layout,
        schema,
        len_entries,
        ids,
        content: ProductStorage::Batches { products, offsets, starts },
    })
}

fn open_packed(file: &EventsFile, lumi: GroupIn<'_>) -> Result<OpenedLayout> {
    let ids = framework_ids(lumi, event::EVENT_IDS)?;
    let len_entries = ids.len();
    let (schema, layout, packed) = PackedSource::open(file, lumi, len_entries)?;
    check_names(file, &schema)?;
    Ok(OpenedLayout { layout, schema, len_entries, ids, content: ProductStorage::Packed(packed) })
}
