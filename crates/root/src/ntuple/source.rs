//! An RNTuple as a source: one product per top-level field.

use super::clusters::{Cluster, Page, read_groups};
use super::envelope::{EnvelopeKind, check_features, open, read_anchor, read_envelope, record, text};
use super::pages::{PageBuffers, decode};
use super::schema::{ColumnKind, DeferredColumn, Description, Node, Understood};
use crate::file::RootFile;
use crate::ids::{IdColumn, IdFault, NAMES, WHOLE, collect, of_record, whole_number};
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::error::{Location, Result, UnlocatedError};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Schema};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use std::collections::HashMap;
use std::ops::Range;

/// RNTuple of a file, as a source of events.
#[derive(Debug)]
pub struct NtupleSource {
    file: RootFile,
    name: String,
    schema: Schema,
    nodes: Vec<Node>,
    kinds: Vec<ColumnKind>,
    /// Other representations of each column.
    alternatives: Vec<Vec<usize>>,
    /// Columns that were added later, indexed by number.
    deferred: HashMap<usize, DeferredColumn>,
    clusters: Vec<Cluster>,
    unread: Vec<String>,
    ids: Option<IdFields>,
    entry_len_bytes: u64,
}

/// Locations of run, subrun and event in the columns of the products.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdFields(pub(super) [IdColumn; 3]);

impl NtupleSource {
    /// Opens the RNTuple `path` of a file.
    ///
    /// # Errors
    /// If the RNTuple does not exist, or its metadata is damaged or requires unsupported features.
    pub fn open(file: RootFile, path: &str) -> Result<Self> {
        let place = Location::file(file.input().path()).tree(path);
        let key = file.ntuple_key(path)?.clone();
        let (description, clusters) = read(&file, &key).map_err(|fault| fault.at(&place))?;
        let (mut schema, mut nodes, mut unread) = (Schema::default(), Vec::new(), Vec::new());
        let mut deferred = HashMap::new();
        for product in description.products() {
            match product {
                Ok(Understood { product, node, deferred: more }) if schema.position(&product.name).is_none() => {
                    schema.products.push(product);
                    nodes.push(node);
                    deferred.extend(more.into_iter().map(|deferred| (deferred.column, deferred)));
                }
                Ok(Understood { product, .. }) => {
                    unread.push(format!("{}: two fields have this name", product.name));
                }
                Err((name, why)) => unread.push(format!("{name}: {why}")),
            }
        }
        let kinds: Vec<ColumnKind> = description.columns.iter().map(|column| column.kind).collect();
        let mut total_len_bytes = 0_u64;
        for cluster in &clusters {
            for (pages, kind) in cluster.columns.iter().zip(&kinds) {
                let elements = pages.as_ref().and_then(|pages| pages.last()).map_or(0, |page| page.end);
                total_len_bytes =
                    total_len_bytes.saturating_add(elements.saturating_mul(kind.bits().div_ceil(8).max(1)));
            }
        }
        let len_entries = clusters.last().map_or(0, |cluster| cluster.end);
        let entry_len_bytes = (total_len_bytes / len_entries.max(1)).saturating_add(1);
        let ids = find_ids(&schema);
        let (name, alternatives) = (path.to_owned(), description.alternatives());
        Ok(Self { name, file, schema, nodes, kinds, alternatives, deferred, clusters, unread, ids, entry_len_bytes })
    }

    /// Returns the fields that are not read as products, and why.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }
}

fn read(file: &RootFile, key: &super::super::key::Key) -> Result<(Description, Vec<Cluster>), UnlocatedError> {
    let anchor = read_anchor(file, key)?;
    let mut description = Description::default();
    let header = read_envelope(file, EnvelopeKind::Header, anchor.header)?;
    let mut bytes = open(&header)?;
    check_features(&mut bytes)?;
    let (_name, _description, _writer) = (text(&mut bytes)?, text(&mut bytes)?, text(&mut bytes)?);
    description.read(&mut bytes)?;
    let footer = read_envelope(file, EnvelopeKind::Footer, anchor.footer)?;
    let mut bytes = open(&footer)?;
    check_features(&mut bytes)?;
    let _header_checksum = bytes.le_u64()?;
    let mut extension = record(&mut bytes)?;
    if extension.remaining() > 0 {
        description.read(&mut extension)?;
    }
    let clusters = read_groups(file, &mut bytes)?;
    Ok((description, clusters))
}

/// Finds run, subrun and event, under the names that experiments or the framework use.
pub(super) fn find_ids(schema: &Schema) -> Option<IdFields> {
    let of_record = schema.position(WHOLE).and_then(|column| match &schema.products[column].form {
        Form::Record(fields) => of_record(fields, column),
        _ => None,
    });
    let place = |names: &[&str]| {
        let column = names.iter().find_map(|name| schema.position(name))?;
        Some(IdColumn { column, buffer: 0, number: whole_number(&schema.products[column].form)? })
    };
    let of_three = || {
        let [runs, lumis, events] = NAMES;
        Some([place(runs)?, place(lumis)?, place(events)?])
    };
    of_record.or_else(of_three).map(IdFields)
}

impl Source for NtupleSource {
    fn place(&self) -> Location {
        Location::file(self.file.input().path()).tree(&self.name)
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.clusters.last().map_or(0, |cluster| cluster.end)
    }

    fn has_ids(&self) -> bool {
        self.ids.is_some()
    }

    /// Returns the last end of a cluster within the target size; the end of the target if no cluster ends there.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let entries = (target_len_bytes / self.entry_len_bytes).max(1);
        let end = start.saturating_add(entries).min(self.len_entries());
        let before = self.clusters.partition_point(|cluster| cluster.end <= end);
        match before.checked_sub(1).map(|last| self.clusters[last].end) {
            Some(boundary) if boundary > start => boundary,
            _ => end,
        }
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        (entries.end - entries.start).saturating_mul(self.entry_len_bytes)
    }

    /// Returns the memory for the longest page of each column in decoded form, and for one more page, stored and
    /// decompressed.
    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        let mut columns = Vec::new();
        products.iter().for_each(|&product| self.nodes[product].push_columns(&mut columns));
        let ids = self.ids.iter().flat_map(|IdFields(places)| places);
        ids.for_each(|id| self.nodes[id.column].push_columns(&mut columns));
        columns.sort_unstable();
        columns.dedup();
        let longest = |column: &usize| self.longest_page_len_bytes(*column);
        let kept = columns.iter().map(longest).fold(0, u64::saturating_add);
        kept.saturating_add(columns.iter().map(longest).max().unwrap_or(0).saturating_mul(2))
    }

    fn reads_products_alone(&self) -> bool {
        true
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.input().check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        Ok(Box::new(NtupleReader {
            source: self,
            products: products.to_vec(),
            schema: self.schema.select(products),
            with_ids: true,
            columns: Columns { source: self, buffers: PageBuffers::default(), open: HashMap::new() },
        }))
    }
}

struct NtupleReader<'source> {
    source: &'source NtupleSource,
    with_ids: bool,
    products: Vec<usize>,
    schema: Schema,
    columns: Columns<'source>,
}

impl RangeReader for NtupleReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let source = self.source;
        let place = source.place();
        check_entries(&place, &entries, source.len_entries())?;
        let mut block = Block::new(&self.schema, entries.start);
        block.entries.end = entries.end;
        for (&product, column) in self.products.iter().zip(&mut block.columns) {
            self.columns.read_product(&place, product, entries.clone(), column)?;
        }
        if let (Some(IdFields(places)), true) = (source.ids, self.with_ids) {
            block.ids = self.columns.read_ids(&place, places, entries)?;
        }
        Ok(block)
    }

    fn leave_out_ids(&mut self) {
        self.with_ids = false;
    }
}

/// Reader of elements of columns, which keeps the page of each column that was read last.
struct Columns<'source> {
    source: &'source NtupleSource,
    buffers: PageBuffers,
    /// Cluster, page and decoded elements of the open page of each column.
    open: HashMap<usize, (usize, usize, Vec<u8>)>,
}

impl Columns<'_> {
    fn read_product(
        &mut self,
        place: &Location,
        product: usize,
        entries: Range<u64>,
        column: &mut Column,
    ) -> Result<()> {
        let source = self.source;
        let first = source.clusters.partition_point(|cluster| cluster.end <= entries.start);
        let clusters = source.clusters.iter().enumerate().skip(first);
        for (number, cluster) in clusters.take_while(|(_, cluster)| cluster.start < entries.end) {
            let (from, to) = (cluster.start.max(entries.start), cluster.end.min(entries.end));
            // Writers may store clusters without entries.
            if from >= to {
                continue;
            }
            let inside = from - cluster.start..to - cluster.start;
            self.read_node(number, &source.nodes[product], inside, &mut column.buffers).map_err(|fault| {
                fault.at(&place.branch(&source.schema.products[product].name).entries(cluster.start..cluster.end))
            })?;
        }
        Ok(())
    }

    fn read_ids(&mut self, place: &Location, places: [IdColumn; 3], entries: Range<u64>) -> Result<Vec<EventId>> {
        let products = &self.source.schema.products;
        let mut columns = places.map(|place| Column::new(&products[place.column].form));
        for (place_of, column) in places.iter().zip(&mut columns) {
            self.read_product(place, place_of.column, entries.clone(), column)?;
        }
        // Each number now has a column of its own.
        let mut own = places;
        own.iter_mut().enumerate().for_each(|(number, place)| place.column = number);
        collect(&own, &columns, entries.end - entries.start).map_err(|IdFault { column, entry, fault }| {
            let (name, entry) = (&products[places[column].column].name, entries.start + entry);
            fault.at(&place.branch(name).entries(entry..entry + 1))
        })
    }

    /// Appends the values of a node for some elements of a cluster.
    fn read_node(
        &mut self,
        cluster: usize,
        node: &Node,
        values: Range<u64>,
        buffers: &mut [Buffer],
    ) -> Result<(), UnlocatedError> {
        match node {
            Node::Number { column, buffer } => self.append(cluster, *column, values, &mut buffers[*buffer]),
            Node::Sizes { column, len_bytes, buffer } => {
                let (_, sizes) = self.sizes(cluster, *column, values)?;
                if let Buffer::Values(bytes) = &mut buffers[*buffer] {
                    sizes.iter().for_each(|size| bytes.extend_from_slice(&size.to_le_bytes()[..*len_bytes]));
                }
                Ok(())
            }
            Node::Text { index, characters, buffer } => {
                let below = self.push_lists(cluster, *index, values, &mut buffers[*buffer])?;
                self.append(cluster, *characters, below, &mut buffers[*buffer + 1])
            }
            Node::List { index, buffer, content } => {
                let below = self.push_lists(cluster, *index, values, &mut buffers[*buffer])?;
                self.read_node(cluster, content, below, buffers)
            }
            Node::Regular { length, content } => {
                let scale = |value: u64| {
                    value.checked_mul(*length).ok_or_else(|| damaged("an array of fixed length is too long".to_owned()))
                };
                self.read_node(cluster, content, scale(values.start)?..scale(values.end)?, buffers)
            }
            Node::Record(nodes) => {
                nodes.iter().try_for_each(|node| self.read_node(cluster, node, values.clone(), buffers))
            }
        }
    }

    /// Appends lists to offsets; returns the range of their elements in the column below.
    fn push_lists(
        &mut self,
        cluster: usize,
        index: usize,
        values: Range<u64>,
        offsets: &mut Buffer,
    ) -> Result<Range<u64>, UnlocatedError> {
        let (start, sizes) = self.sizes(cluster, index, values)?;
        let mut end = start;
        if let Buffer::Offsets(offsets) = offsets {
            let mut at = offsets.last().copied().unwrap_or(0);
            offsets.reserve(sizes.len());
            for size in sizes {
                (at, end) = (at.wrapping_add(size), end + size);
                offsets.push(at);
            }
        }
        Ok(start..end)
    }

    /// Returns the beginning of the first of some collections, and the length of each.
    fn sizes(&mut self, cluster: usize, index: usize, values: Range<u64>) -> Result<(u64, Vec<u64>), UnlocatedError> {
        // The first collection begins at the end of the one before it.
        let first = values.start.saturating_sub(1);
        let mut bytes = Buffer::Values(Vec::new());
        self.append(cluster, index, first..values.end, &mut bytes)?;
        let Buffer::Values(bytes) = bytes else { return Ok((0, Vec::new())) };
        let mut ends: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|end| u64::from_le_bytes(*end)).collect();
        if values.start == 0 {
            ends.insert(0, 0);
        }
        if ends.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(damaged(format!("the ends of collections in column {index} decrease")));
        }
        Ok((ends.first().copied().unwrap_or(0), ends.windows(2).map(|pair| pair[1] - pair[0]).collect()))
    }

    /// Appends elements of a column to `out`.
    fn append(
        &mut self,
        cluster: usize,
        column: usize,
        elements: Range<u64>,
        out: &mut Buffer,
    ) -> Result<(), UnlocatedError> {
        let source = self.source;
        let (column, pages) = source.pages(cluster, column)?;
        let missing = source.missing(cluster, column);
        let len = missing.saturating_add(pages.last().map_or(0, |page| page.end));
        if elements.start > elements.end || elements.end > len {
            let Range { start, end } = elements;
            return Err(damaged(format!(
                "column {column} has {len} elements in cluster {cluster}, not {start}..{end}"
            )));
        }
        let Buffer::Values(out) = out else { return Ok(()) };
        let zeros = elements.end.min(missing).saturating_sub(elements.start);
        out.resize(out.len() + zeros as usize * source.kinds[column].decoded_len_bytes(), 0);
        let elements = elements.start.saturating_sub(missing)..elements.end.saturating_sub(missing);
        let first = pages.partition_point(|page| page.end <= elements.start);
        let pages = pages.iter().enumerate().skip(first);
        for (number, page) in pages.take_while(|(_, page)| page.end - page.len < elements.end) {
            let start = page.end - page.len;
            let (from, to) = (start.max(elements.start), page.end.min(elements.end));
            // A page may have no elements.
            if from >= to {
                continue;
            }
            let open = self.open.entry(column).or_insert((usize::MAX, 0, Vec::new()));
            if (open.0, open.1) != (cluster, number) {
                open.0 = usize::MAX;
                decode(&source.file, page, source.kinds[column], &mut self.buffers, &mut open.2)?;
                (open.0, open.1) = (cluster, number);
            }
            let len_bytes = (open.2.len() as u64 / page.len.max(1)) as usize;
            let range = (from - start) as usize * len_bytes..(to - start) as usize * len_bytes;
            out.extend_from_slice(&open.2[range]);
        }
        Ok(())
    }
}

impl NtupleSource {
    /// Returns the pages of a column in a cluster, and the number of the stored column: that of another representation
    /// if the cluster contains it instead.
    fn pages(&self, cluster: usize, column: usize) -> Result<(usize, &[Page]), UnlocatedError> {
        let columns = &self.clusters[cluster].columns;
        let all = std::iter::once(&column).chain(&self.alternatives[column]);
        for &column in all {
            match columns.get(column) {
                Some(Some(pages)) => return Ok((column, pages)),
                // Stored in another representation.
                Some(None) => {}
                // The column was added in a later cluster.
                None => return Ok((column, &[])),
            }
        }
        Err(unsupported(format!("cluster {cluster} has column {column} in another representation")))
    }

    /// Returns the length of the longest page of a column when decoded, in any of its representations.
    fn longest_page_len_bytes(&self, column: usize) -> u64 {
        let of_column = |column: &usize| {
            let pages = self.clusters.iter().filter_map(|cluster| cluster.columns.get(*column)?.as_ref()).flatten();
            let elements = pages.map(|page| page.len).max().unwrap_or(0);
            elements.saturating_mul(self.kinds[*column].decoded_len_bytes() as u64)
        };
        std::iter::once(&column).chain(&self.alternatives[column]).map(of_column).max().unwrap_or(0)
    }

    /// Returns the number of elements at the beginning of a cluster that are zero and not stored.
    fn missing(&self, cluster: usize, column: usize) -> u64 {
        let Some(DeferredColumn { first, per_entry, .. }) = self.deferred.get(&column) else { return 0 };
        let [start, end] =
            [self.clusters[cluster].start, self.clusters[cluster].end].map(|entry| entry.saturating_mul(*per_entry));
        (*first).clamp(start, end) - start
    }
}

fn damaged(what: String) -> UnlocatedError {
    UnlocatedError::Damaged { address: 0, structure: "RNTuple", what }
}

fn unsupported(what: String) -> UnlocatedError {
    UnlocatedError::Unsupported { address: 0, structure: "RNTuple", what }
}
