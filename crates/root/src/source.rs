//! A tree as a source: one product per branch that has baskets.

use super::basket::{self, BasketDecoder, BasketOpener, BasketPlace};
use super::counted::{self, Lengths, LengthsBranch};
use super::file::RootFile;
use super::ids::{IdBranches, IdFault};
use super::item::Item;
use super::layout::{self, Unreadable};
use super::plain::PlainLists;
use super::streamer::StreamerInfos;
use super::tree::{Branch, Tree};
use super::walk;
use raddle_columns::baskets::{Basket, Baskets};
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::{ColumnsError, Location, Result, UnlocatedError};
use raddle_columns::schema::{Form, Product, Schema, Serialization};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use raddle_core::cancel::CancelToken;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Options for reading a tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootOptions {
    /// Whether to read every branch as the bytes of its entries.
    pub raw: bool,
}

/// Tree of a file.
#[derive(Debug)]
pub struct TreeSource {
    file: RootFile,
    name: String,
    tree: Tree,
    schema: Schema,
    /// Plan of each product.
    plans: Vec<ProductPlan>,
    unread: Vec<UnreadBranch>,
    /// Branches of run, subrun and event, if the tree has them.
    ids: Option<IdBranches>,
}

/// Branch that is not read as a product.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct UnreadBranch {
    /// Names from the top-level branch down, joined by `/`.
    pub path: String,
    /// Reason why it is not read.
    pub why: UnreadReason,
}

/// Reason why a branch is not read as a product.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadReason {
    /// The branch has no baskets, or a different number of entries than the tree.
    #[error("it has no entries, or a different number of them than the tree")]
    Entries,
    /// The metadata of the branch is not supported.
    #[error("{0}")]
    Metadata(String),
}

/// Plan for reading a product.
#[derive(Debug)]
struct ProductPlan {
    /// Number of the product's branch.
    branch: usize,
    /// Contents of the branch's entries; `None` if they are read as bytes.
    item: Option<Item>,
    /// Reason for reading bytes, unless that was requested.
    unknown: Option<Unreadable>,
    lengths: Lengths,
    counts: Option<LengthsBranch>,
}

impl TreeSource {
    /// Opens the tree `path` of a file.
    ///
    /// # Errors
    /// If the tree does not exist, or its metadata is damaged or of an unknown version.
    pub fn open(file: RootFile, path: &str, options: RootOptions) -> Result<Self> {
        let tree = Tree::read(&file, path)?;
        let mut uses = HashMap::<String, usize>::new();
        tree.branches.iter().for_each(|branch| *uses.entry(branch.product_name()).or_default() += 1);
        let (mut schema, mut plans, mut unread) = (Schema::default(), Vec::new(), Vec::new());
        let mut taken = HashSet::new();
        for (number, branch) in tree.branches.iter().enumerate() {
            let has_data = !branch.baskets.is_empty() || (tree.len_entries == 0 && !branch.has_branches);
            if !has_data || branch.len_entries != tree.len_entries {
                // Branches that only contain branches have no entries.
                if !branch.has_branches {
                    unread.push(UnreadBranch { path: branch.path.clone(), why: UnreadReason::Entries });
                }
                continue;
            }
            let layout = layout::of_branch(branch, file.infos());
            let lengths =
                Lengths::of_branch(&tree, branch, layout.as_ref().ok().map(|layout| &layout.item), file.infos());
            let counter = layout.as_ref().ok().and_then(|layout| layout.counter);
            let counts = counter.and_then(|id| LengthsBranch::of_branch(&tree, branch, id, file.infos()));
            let layout = match layout {
                Ok(layout) if layout.counter.is_some() && counts.is_none() => {
                    Err(Unreadable::CountElsewhere(layout::class_of(branch, file.infos())))
                }
                layout => layout,
            };
            let (item, form, unknown) = match layout {
                Ok(layout) if !options.raw => (Some(layout.item), layout.form, None),
                Err(unknown) if !options.raw => (None, Form::Blob(Serialization::Basket), Some(unknown)),
                _ => (None, Form::Blob(Serialization::Basket), None),
            };
            let name = branch.product_name();
            let is_unique = uses.get(&name) == Some(&1);
            let name = if is_unique { name } else { branch.path.clone() };
            let name = distinct(name, &mut taken);
            schema.products.push(Product { name, class: layout::class_of(branch, file.infos()), form });
            plans.push(ProductPlan { branch: number, item, unknown, lengths, counts });
        }
        let unsupported = tree.unsupported.iter().cloned();
        unread.extend(unsupported.map(|(path, why)| UnreadBranch { path, why: UnreadReason::Metadata(why) }));
        let ids = IdBranches::find(&tree, file.infos());
        Ok(Self { name: path.to_owned(), file, schema, plans, unread, ids, tree })
    }

    /// Returns the products that are read as bytes because their meaning is unknown, and why.
    pub fn unknown(&self) -> impl Iterator<Item = (&Product, String)> {
        let plans = self.schema.products.iter().zip(&self.plans);
        plans.filter_map(|(product, plan)| plan.unknown.as_ref().map(|unknown| (product, unknown.to_string())))
    }

    /// Returns the branches that are not read as products, and why.
    pub fn unread(&self) -> &[UnreadBranch] {
        &self.unread
    }

    /// Returns the file that contains the tree.
    pub fn into_file(self) -> RootFile {
        self.file
    }

    /// Returns the metadata of the tree.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the descriptions of the file's classes.
    pub(super) fn infos(&self) -> &StreamerInfos {
        self.file.infos()
    }

    /// Returns the product that is read from a branch.
    pub(super) fn product_of(&self, branch: usize) -> Option<usize> {
        // Plans are in the order of branches.
        self.plans.binary_search_by_key(&branch, |plan| plan.branch).ok()
    }

    /// Returns the branch that holds only the ids of entries; `None` if there is none.
    pub(super) fn id_branch(&self) -> Option<usize> {
        self.ids.as_ref()?.whole_branch()
    }

    fn branch_of(&self, product: usize) -> &Branch {
        &self.tree.branches[self.plans[product].branch]
    }

    /// Reserves memory for the baskets of `places`, the first of which has been read, assuming that the others are like
    /// it.
    fn make_room(&self, places: &[BasketPlace], read: &mut Baskets) {
        let stored = |place: &BasketPlace| place.stored.len_bytes();
        let all: u64 = places.iter().map(stored).fold(0, u64::saturating_add);
        // With a small margin, because the others are not exactly like it.
        let factor = 1.02 * all as f64 / stored(&places[0]).max(1) as f64;
        let max_len_bytes = self.file.input().len_bytes().saturating_mul(MAX_EXPANSION) as f64;
        let mut bytes = Vec::new();
        // A new allocation instead of a larger one, because large pages are not moved.
        if bytes.try_reserve_exact((factor * read.bytes.len() as f64).min(max_len_bytes) as usize).is_ok() {
            bytes.extend_from_slice(&read.bytes);
            read.bytes = bytes;
        }
        // Only a hint: if it is too short, it grows later.
        let offsets = (factor * read.offsets.len() as f64).min(max_len_bytes / size_of::<u32>() as f64);
        let _ = read.offsets.try_reserve_exact(offsets as usize);
    }

    /// Sets the lengths of the entries of a basket that does not record them. `at` adds the place of the basket.
    fn set_lengths(
        &self,
        opener: &mut BasketOpener,
        lengths: &Lengths,
        entries: Range<u64>,
        decoder: &mut BasketDecoder,
        at: &dyn Fn(UnlocatedError) -> ColumnsError,
    ) -> Result<()> {
        if !opener.lacks_lengths() {
            return Ok(());
        }
        let Lengths::Counted(counter) = lengths else {
            let what = "neither offsets nor counts in a branch of whole numbers".to_owned();
            return Err(at(UnlocatedError::Unsupported { address: 0, structure: "basket", what }));
        };
        let mut counts = Column::new(&counter.form);
        let mut reader = BranchReader::new(&self.tree.branches[counter.branch], Some(&counter.item));
        reader.read(self, &self.place(), entries.clone(), decoder, &mut counts)?;
        let lengths = counter.lengths(&counts.buffers[0], entries.end - entries.start).map_err(at)?;
        opener.set_lengths(lengths).map_err(at)
    }

    /// Returns the branches of which a reader of `products` keeps a basket, and whether their entries differ in length.
    fn branches_of<'a>(&'a self, products: &'a [usize]) -> impl Iterator<Item = (&'a Branch, bool)> {
        let varies = |item: &Item| item.fixed_len_bytes().is_none();
        let of_products = products.iter().flat_map(move |&product| {
            let ProductPlan { branch, item, counts, .. } = &self.plans[product];
            let counts = counts.as_ref().map(|counts| (counts.branch, varies(&counts.item)));
            std::iter::once((*branch, item.as_ref().is_none_or(varies))).chain(counts)
        });
        let of_ids = self.ids.iter().flat_map(IdBranches::parts).map(move |(branch, item)| (branch, varies(item)));
        of_products.chain(of_ids).map(|(branch, varies)| (&self.tree.branches[branch], varies))
    }

    /// Returns the average decoded length of an entry with all products.
    fn entry_len_bytes(&self) -> u64 {
        let total: u64 = (0..self.plans.len()).fold(0, |sum, product| {
            let branch = self.branch_of(product).total_len_bytes;
            branch.saturating_add(sum)
        });
        (total / self.tree.len_entries.max(1)).saturating_add(1)
    }
}

impl Source for TreeSource {
    fn place(&self) -> Location {
        Location::file(self.file.input().path()).tree(&self.name)
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.tree.len_entries
    }

    fn has_ids(&self) -> bool {
        self.ids.is_some()
    }

    fn id_product(&self) -> Option<usize> {
        self.product_of(self.id_branch()?)
    }

    /// Returns the end of a basket of the longest branch: the last within the target size, or the next one if that is
    /// not much farther.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let entries = (target_len_bytes / self.entry_len_bytes()).max(1);
        let end = start.saturating_add(entries).min(self.len_entries());
        let longest = (0..self.plans.len()).map(|product| self.branch_of(product)).max_by_key(|b| b.total_len_bytes);
        let baskets = longest.map_or(&[][..], |branch| &branch.baskets);
        let before = baskets.partition_point(|basket| basket.end <= end);
        let farthest = start.saturating_add(entries.saturating_mul(MAX_BEYOND_TARGET));
        match before.checked_sub(1).map(|last| baskets[last].end) {
            Some(boundary) if boundary > start => boundary,
            // Otherwise, threads that read parts of the same basket would each decode it.
            _ => match baskets.get(before) {
                Some(basket) if basket.end <= farthest => basket.end,
                _ => end,
            },
        }
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let offsets = 8 * self.plans.len() as u64;
        (entries.end - entries.start).saturating_mul(self.entry_len_bytes().saturating_add(offsets))
    }

    /// Returns the memory for the longest basket of each branch in decoded form, and for one stored basket.
    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        let decoded = |(branch, varies)| longest_decoded_len_bytes(branch, varies);
        let kept = self.branches_of(products).map(decoded).fold(0, u64::saturating_add);
        let baskets = self.branches_of(products).flat_map(|(branch, _)| &branch.baskets);
        kept.saturating_add(baskets.map(|basket| basket.stored.len_bytes()).max().unwrap_or(0))
    }

    fn reads_products_alone(&self) -> bool {
        true
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.input().check_unchanged()
    }

    fn basket_ends(&self, product: usize) -> Result<Vec<u64>> {
        check_products(&self.place(), &[product], &self.schema)?;
        Ok(self.branch_of(product).baskets.iter().map(|basket| basket.end).collect())
    }

    fn read_baskets(&self, product: usize, baskets: Range<usize>, cancel: &CancelToken) -> Result<Baskets> {
        check_products(&self.place(), &[product], &self.schema)?;
        let branch = self.branch_of(product);
        let (mut opener, mut decoder) = (BasketOpener::default(), BasketDecoder::default());
        let mut read = Baskets::default();
        let places = branch.baskets.get(baskets).unwrap_or_default();
        let mut end = 0;
        for place in places {
            cancel.check()?;
            let (entries, start) = (place.start..place.end, end);
            let at = |fault: UnlocatedError| fault.at(&self.place().branch(&branch.path).entries(entries.clone()));
            let lengths = &self.plans[product].lengths;
            let vary = lengths.vary();
            end += opener.open(self.file.input(), place, vary, &mut decoder, &mut read.bytes, start).map_err(at)?;
            self.set_lengths(&mut opener, lengths, entries.clone(), &mut decoder, &at)?;
            let offsets = opener.offsets().map(|more| {
                let start = read.offsets.len();
                read.offsets.extend_from_slice(more);
                start..read.offsets.len()
            });
            if read.baskets.is_empty() && places.len() > 1 {
                self.make_room(places, &mut read);
            }
            read.baskets.push(Basket { entries, bytes: start..end, offsets });
        }
        read.bytes.truncate(end);
        Ok(read)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        let branches = products.iter().map(|&product| {
            let ProductPlan { branch, item, lengths, counts, .. } = &self.plans[product];
            let reader = BranchReader::new(&self.tree.branches[*branch], item.as_ref());
            let counts = item.as_ref().and(counts.as_ref()).map(|counts| {
                let reader = BranchReader::new(&self.tree.branches[counts.branch], Some(&counts.item));
                (counts, Box::new(BranchReader { lengths: &counts.lengths, ..reader }))
            });
            BranchReader { lengths, counts, ..reader }
        });
        let of_ids = self.ids.iter().flat_map(IdBranches::parts);
        let of_ids = of_ids.map(|(branch, item)| BranchReader::new(&self.tree.branches[branch], Some(item)));
        let schema = self.schema.select(products);
        let (branches, ids) = (branches.collect(), of_ids.collect());
        Ok(Box::new(TreeReader {
            source: self,
            schema,
            branches,
            ids,
            decoder: BasketDecoder::default(),
            with_ids: true,
        }))
    }
}

/// Returns the name of a product, with `#2` and so on appended for further branches of the same path. A request for the
/// plain name returns the first branch, as in ROOT.
pub(super) fn distinct(name: String, taken: &mut HashSet<String>) -> String {
    let mut numbered = (2_u32..).map(|number| format!("{name}#{number}"));
    let mut candidate = name.clone();
    while !taken.insert(candidate.clone()) {
        candidate = numbered.next().unwrap_or_default();
    }
    candidate
}

/// Returns the length of the longest basket of a branch when decoded, if all baskets are compressed equally well. If
/// entries differ in length (`varies`), it includes the beginnings of the entries.
fn longest_decoded_len_bytes(branch: &Branch, varies: bool) -> u64 {
    let stored = |basket: &BasketPlace| basket.stored.len_bytes();
    let all = branch.baskets.iter().map(stored).fold(0, u64::saturating_add).max(1);
    let expansion = (branch.total_len_bytes as f64 / all as f64).max(1.0);
    let decoded = |basket: &BasketPlace| {
        let offsets = if varies { (basket.end - basket.start).saturating_mul(size_of::<u32>() as u64) } else { 0 };
        ((stored(basket) as f64 * expansion) as u64).saturating_add(offsets)
    };
    branch.baskets.iter().map(decoded).max().unwrap_or(0)
}

/// Multiple of the target size that a range may reach in order to end with a basket.
const MAX_BEYOND_TARGET: u64 = 8;

/// Maximum ratio of the length of decoded baskets to the length of the file for which memory is reserved at once: the
/// maximum ratio of deflate.
const MAX_EXPANSION: u64 = 1032;

struct TreeReader<'source> {
    source: &'source TreeSource,
    schema: Schema,
    branches: Vec<BranchReader<'source>>,
    ids: Vec<BranchReader<'source>>,
    decoder: BasketDecoder,
    with_ids: bool,
}

impl RangeReader for TreeReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let mut block = Block::new(&self.schema, entries.start);
        self.append(entries, &mut block)?;
        Ok(block)
    }

    fn leave_out_ids(&mut self) {
        self.with_ids = false;
    }

    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        let place = self.source.place();
        check_entries(&place, &entries, self.source.len_entries())?;
        block.entries.end = entries.end;
        for (branch, column) in self.branches.iter_mut().zip(&mut block.columns) {
            branch.read(self.source, &place, entries.clone(), &mut self.decoder, column)?;
        }
        if let Some(ids) = self.source.ids.as_ref().filter(|_| self.with_ids) {
            let mut columns = ids.columns();
            for (branch, column) in self.ids.iter_mut().zip(&mut columns) {
                branch.read(self.source, &place, entries.clone(), &mut self.decoder, column)?;
            }
            let collected = ids.collect(&columns, entries.end - entries.start);
            block.ids.extend(collected.map_err(|IdFault { column, entry, fault }| {
                let branch = ids.branch_of(column).map(|branch| &self.source.tree.branches[branch]);
                let entry = entries.start + entry;
                fault.at(&place.branch(branch.map_or("", |branch| &branch.path)).entries(entry..entry + 1))
            })?);
        }
        Ok(())
    }
}

/// Reader of one branch, which keeps the basket that it read last: the next range continues from there.
struct BranchReader<'source> {
    branch: &'source Branch,
    /// Contents of the entries; `None` for bytes.
    item: Option<&'source Item>,
    lengths: &'source Lengths,
    /// Reader of the counts of each object's values, if another branch holds them.
    counts: Option<(&'source LengthsBranch, Box<BranchReader<'source>>)>,
    basket: basket::Basket,
    open: Option<usize>,
}

impl<'source> BranchReader<'source> {
    /// Creates a reader of entries that record their lengths.
    fn new(branch: &'source Branch, item: Option<&'source Item>) -> Self {
        Self { branch, item, lengths: &Lengths::Stored, counts: None, basket: basket::Basket::default(), open: None }
    }

    fn read(
        &mut self,
        source: &TreeSource,
        place: &Location,
        entries: Range<u64>,
        decoder: &mut BasketDecoder,
        column: &mut Column,
    ) -> Result<()> {
        let baskets = &self.branch.baskets;
        let first = baskets.partition_point(|basket| basket.end <= entries.start);
        for (number, basket) in baskets.iter().enumerate().skip(first) {
            let from = basket.start.max(entries.start);
            let to = basket.end.min(entries.end);
            if from >= to {
                break;
            }
            let at = |fault: UnlocatedError, entries: Range<u64>| {
                fault.at(&place.branch(&self.branch.path).entries(entries))
            };
            if self.open != Some(number) {
                self.open = None;
                let of_basket = basket.start..basket.end;
                let at = |fault: UnlocatedError| at(fault, of_basket.clone());
                self.basket.open(source.file.input(), basket, self.lengths.vary(), decoder).map_err(at)?;
                source.set_lengths(self.basket.opener(), self.lengths, of_basket.clone(), decoder, &at)?;
                self.open = Some(number);
            }
            let range = (from - basket.start) as usize..(to - basket.start) as usize;
            let pushed = match (&mut self.counts, self.item) {
                (Some((counts, reader)), Some(item)) => {
                    let mut of_entries = Column::new(&counts.form);
                    reader.read(source, place, from..to, decoder, &mut of_entries)?;
                    let basket = &self.basket;
                    let entries = range.clone().map(|entry| bytes_of(basket, entry..entry + 1));
                    counted::read_entries(item, entries, &of_entries, &mut column.buffers)
                        .map_err(|(entry, fault)| (range.start + entry, fault))
                }
                _ => push_entries(&self.basket, range, self.item, &mut column.buffers),
            };
            pushed.map_err(|(entry, fault)| at(fault, basket.start + entry as u64..basket.start + entry as u64 + 1))?;
        }
        Ok(())
    }
}

/// Returns the bytes of entries of an open basket.
fn bytes_of(basket: &basket::Basket, range: Range<usize>) -> Bytes<'_> {
    let address = basket.start_of(range.start) as u64;
    Bytes::new(basket.entries(range), address, "entries")
}

/// Appends entries of an open basket to a column. An error contains the number of the entry in the basket.
fn push_entries(
    basket: &basket::Basket,
    range: Range<usize>,
    item: Option<&Item>,
    buffers: &mut [Buffer],
) -> Result<(), (usize, UnlocatedError)> {
    let bytes_of = |range: Range<usize>| bytes_of(basket, range);
    match item {
        None => {
            if let [Buffer::Offsets(offsets), Buffer::Values(values)] = buffers {
                basket.push_ends(range.clone(), 0, offsets);
                values.extend_from_slice(basket.entries(range));
            }
            Ok(())
        }
        // All at once, if every entry has the required length.
        Some(item)
            if item.fixed_len_bytes().is_some()
                && item.fixed_len_bytes() == basket.fixed_len_bytes()
                && is_one_buffer(item) =>
        {
            let entries = range.len() as u64;
            walk::read_values(item, entries, &mut bytes_of(range.clone()), buffers)
                .map_err(|fault| (range.start, fault))
        }
        Some(item) => match PlainLists::of(item) {
            Some(plain) => plain.read(basket, range, buffers),
            None => range.clone().try_for_each(|entry| {
                walk::read_entry(item, &mut bytes_of(entry..entry + 1), buffers).map_err(|fault| (entry, fault))
            }),
        },
    }
}

/// Returns whether consecutive values of an item are consecutive in its buffer.
fn is_one_buffer(item: &Item) -> bool {
    match item {
        Item::Number { .. } | Item::Packed { .. } => true,
        Item::Regular { content, .. } => is_one_buffer(content),
        _ => false,
    }
}
