//! A tree whose objects are products. Each object is whole, as ROOT serialises it, even if ROOT split it into branches.
//!
//! [`super::assembly`] plans which bytes go where. Invariant: a product is reassembled from all of its branches, or
//! requesting it is an error; the other products can still be read.

use super::apart::{ReassemblyError, SplitReason};
use super::assembly::{Assembly, ProductPart, ReassembledBranch};
use super::file::RootFile;
use super::item::Item;
use super::pieces::{Pieces, cut_exactly};
use super::source::{RootOptions, TreeSource, UnreadBranch, distinct};
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::{Location, Result, UnlocatedError};
use raddle_columns::schema::{Form, Product, Schema, Serialization};
use raddle_columns::source::{RangeReader, Source, check_products};
use std::collections::HashSet;
use std::ops::Range;

/// A tree read as whole objects.
#[derive(Debug)]
pub struct WholeTree {
    /// The tree, with branches read as bytes.
    tree: TreeSource,
    schema: Schema,
    /// Origin of each product.
    makings: Vec<ProductOrigin>,
    id_product: Option<usize>,
}

/// Origin of a product.
#[derive(Debug)]
enum ProductOrigin {
    /// A product of the tree: a branch of numbers or strings.
    Stored(usize),
    /// Reassembled from products of the tree, one for each stored branch.
    Assembled(Assembly, Vec<usize>),
    /// Cannot be reassembled.
    Refused(SplitReason),
}

impl ProductOrigin {
    /// Returns the products of the tree that are needed.
    fn parts(&self) -> &[usize] {
        match self {
            Self::Stored(product) => std::slice::from_ref(product),
            Self::Assembled(_, products) => products,
            Self::Refused(_) => &[],
        }
    }
}

impl WholeTree {
    /// Opens the tree `path` of a file.
    ///
    /// # Errors
    /// As for [`TreeSource::open`].
    pub fn open(file: RootFile, path: &str) -> Result<Self> {
        TreeSource::open(file, path, RootOptions { raw: true }).map(Self::of_tree)
    }

    /// Plans the products of a tree that was opened for reading bytes.
    fn of_tree(source: TreeSource) -> Self {
        let tree = source.tree();
        let is_read = |branch: usize| source.product_of(branch).is_some();
        let (mut schema, mut makings, mut taken) = (Schema::default(), Vec::new(), HashSet::new());
        let tops = (0..tree.branches.len()).filter(|&number| tree.branches[number].depth == 0);
        for number in tops {
            let branch = &tree.branches[number];
            let product = source.product_of(number);
            let is_text = |class: &str| matches!(class, "string" | "TString");
            let making = match (&branch.element, product) {
                (None, None) if !branch.has_branches => continue,
                (None, Some(product)) if !branch.has_branches => ProductOrigin::Stored(product),
                // Strings are not objects of a class.
                (Some(element), Some(product)) if is_text(&element.class) => ProductOrigin::Stored(product),
                _ => match Assembly::of_branch(tree, number, source.infos(), &is_read) {
                    Ok(assembly) => {
                        let products = assembly.stored.iter().filter_map(|stored| source.product_of(stored.branch));
                        let products = products.collect();
                        ProductOrigin::Assembled(assembly, products)
                    }
                    Err(why) => ProductOrigin::Refused(why),
                },
            };
            let name = distinct(branch.name.trim_end_matches('.').to_owned(), &mut taken);
            let (class, form) = match (&making, &branch.element) {
                (ProductOrigin::Stored(product), _) => {
                    let product = &source.schema().products[*product];
                    (product.class.clone(), product.form.clone())
                }
                (ProductOrigin::Assembled(assembly, _), element) => {
                    (class_of(element), Form::Blob(assembly.serialization))
                }
                (ProductOrigin::Refused(_), element) => (class_of(element), Form::Blob(Serialization::Root)),
            };
            schema.products.push(Product { name, class, form });
            makings.push(making);
        }
        let stored = |making: &ProductOrigin| match making {
            ProductOrigin::Stored(product) => Some(*product),
            _ => None,
        };
        let id_product = source.id_branch().and_then(|branch| {
            let product = source.product_of(branch)?;
            makings.iter().position(|making| stored(making) == Some(product) || making.parts() == [product])
        });
        Self { schema, makings, id_product, tree: source }
    }

    /// Returns the products that cannot be reassembled, with the reasons.
    pub fn refused(&self) -> impl Iterator<Item = (&Product, &SplitReason)> {
        let makings = self.schema.products.iter().zip(&self.makings);
        makings.filter_map(|(product, making)| match making {
            ProductOrigin::Refused(why) => Some((product, why)),
            _ => None,
        })
    }

    /// Returns the branches that are not read, with the reasons.
    pub fn unread(&self) -> &[UnreadBranch] {
        self.tree.unread()
    }

    fn place_of(&self, product: usize) -> Location {
        self.place().branch(&self.schema.products[product].name)
    }
}

fn class_of(element: &Option<super::tree::ElementBranch>) -> String {
    element.as_ref().map_or_else(String::new, |element| element.class.clone())
}

impl Source for WholeTree {
    fn place(&self) -> Location {
        self.tree.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.tree.len_entries()
    }

    fn has_ids(&self) -> bool {
        self.tree.has_ids()
    }

    fn id_product(&self) -> Option<usize> {
        self.id_product
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.tree.unit_end(start, target_len_bytes)
    }

    /// Returns the memory for a batch, in which branches and the products made from them exist at the same time.
    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.tree.batch_len_bytes(entries).saturating_mul(2)
    }

    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        let parts: Vec<usize> = products.iter().flat_map(|&product| self.makings[product].parts()).copied().collect();
        self.tree.reader_len_bytes(&parts)
    }

    fn reads_products_alone(&self) -> bool {
        true
    }

    fn check_unchanged(&self) -> Result<()> {
        self.tree.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        let mut parts = Vec::new();
        for &product in products {
            if let ProductOrigin::Refused(why) = &self.makings[product] {
                return Err(ReassemblyError { place: self.place_of(product), why: why.clone() }.into());
            }
            parts.extend_from_slice(self.makings[product].parts());
        }
        let inner = self.tree.reader(&parts)?;
        Ok(Box::new(WholeReader { source: self, products: products.to_vec(), inner }))
    }
}

struct WholeReader<'source> {
    source: &'source WholeTree,
    products: Vec<usize>,
    inner: Box<dyn RangeReader + 'source>,
}

impl RangeReader for WholeReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let block = self.inner.read(entries)?;
        let mut parts = block.columns.into_iter();
        let mut columns = Vec::with_capacity(self.products.len());
        for &product in &self.products {
            let making = &self.source.makings[product];
            let mut of_product: Vec<Column> = parts.by_ref().take(making.parts().len()).collect();
            columns.push(match making {
                ProductOrigin::Assembled(assembly, _) => {
                    let entries = block.entries.clone();
                    assemble(assembly, &of_product, entries.end - entries.start).map_err(
                        |(number, branch, fault)| {
                            let entry = entries.start + number;
                            let path = branch.map_or(self.source.schema.products[product].name.as_str(), |branch| {
                                self.source.tree.tree().branches[branch].path.as_str()
                            });
                            fault.at(&self.source.place().branch(path).entries(entry..entry + 1))
                        },
                    )?
                }
                _ => of_product.pop().unwrap_or_default(),
            });
        }
        Ok(Block { entries: block.entries, ids: block.ids, columns })
    }

    fn leave_out_ids(&mut self) {
        self.inner.leave_out_ids();
    }
}

/// Reassembles the entries of a product. An error contains the index of the entry and, if a single branch caused it,
/// the branch.
fn assemble(
    assembly: &Assembly,
    columns: &[Column],
    entries: u64,
) -> Result<Column, (u64, Option<usize>, UnlocatedError)> {
    let mut whole = Column::new(&Form::Blob(assembly.serialization));
    let mut buffers: Vec<Column> = assembly.stored.iter().map(|stored| Column::new(&stored.form)).collect();
    let (mut pieces, mut bytes) = (Vec::<Pieces>::new(), Vec::new());
    for entry in 0..entries {
        pieces.clear();
        for ((stored, column), buffers) in assembly.stored.iter().zip(columns).zip(&mut buffers) {
            let cut = cut_entry(stored, entry_of(column, entry), &pieces, buffers);
            pieces.push(cut.map_err(|fault| (entry, Some(stored.branch), fault))?);
        }
        bytes.clear();
        write(&assembly.part, 0, &pieces, &mut bytes).map_err(|fault| (entry, None, fault))?;
        whole.push_bytes(&bytes);
    }
    Ok(whole)
}

/// Returns the bytes of an entry.
fn entry_of(column: &Column, entry: u64) -> &[u8] {
    let Some((offsets, bytes)) = column.as_bytes() else { return &[] };
    &bytes[offsets[entry as usize] as usize..offsets[entry as usize + 1] as usize]
}

/// Cuts the entry of a stored branch into pieces; `before` are the pieces of the branches before it.
fn cut_entry(
    stored: &ReassembledBranch,
    entry: &[u8],
    before: &[Pieces],
    column: &mut Column,
) -> Result<Pieces, UnlocatedError> {
    let mut bytes = Bytes::new(entry, 0, "entries");
    let objects = match stored.count {
        None => 1,
        Some(count) => u64::from(count_in(before[count].bare(0), &bytes)?),
    };
    // Without objects, even the front is missing.
    if objects == 0 && entry.is_empty() {
        return Ok(Pieces::default());
    }
    column.buffers.iter_mut().for_each(clear);
    let Some(counter) = stored.counter.map(|counter| &before[counter]) else {
        return cut_exactly(&stored.item, objects, &mut bytes, &mut column.buffers);
    };
    let counts =
        (0..counter.len()).map(|object| count_in(counter.bare(object), &bytes)).collect::<Result<Vec<_>, _>>()?;
    match &stored.item {
        Item::PointedRest { arrays, content, .. } => {
            let values = arrays.saturating_mul(u64::from(counts.first().copied().unwrap_or(0)));
            let len_bytes = values.saturating_mul(content.fixed_len_bytes().unwrap_or(1) as u64).saturating_add(1);
            // A null pointer has no values, whatever its count is. A length that does not follow from the count means
            // that the count belongs to another array.
            if len_bytes != entry.len() as u64 {
                return Err(
                    bytes.damaged(format!("{} bytes of arrays, but their count implies {len_bytes}", entry.len()))
                );
            }
            cut_exactly(&stored.item, objects, &mut bytes, &mut column.buffers)
        }
        item => {
            // The item expects the counts in this buffer.
            let little_endian = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            column.buffers.push(Buffer::Values(little_endian));
            let pieces = cut_exactly(item, objects, &mut bytes, &mut column.buffers);
            column.buffers.pop();
            pieces
        }
    }
}

/// Decodes a stored count of 32 bits.
fn count_in(stored: &[u8], bytes: &Bytes<'_>) -> Result<u32, UnlocatedError> {
    let count = stored.try_into().ok().map(i32::from_be_bytes).and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| bytes.damaged(format!("a count of {stored:02x?}")))
}

/// Removes the values from a buffer.
fn clear(buffer: &mut Buffer) {
    match buffer {
        Buffer::Offsets(offsets) => offsets.truncate(1),
        Buffer::Values(values) => values.clear(),
    }
}

/// Appends a part of object `number` of the enclosing collection, in the form of a member.
fn write(part: &ProductPart, number: usize, pieces: &[Pieces], out: &mut Vec<u8>) -> Result<(), UnlocatedError> {
    match part {
        ProductPart::Stored(stored) => pieces[*stored].write_member(number, out),
        ProductPart::Object { front, members } => {
            front.write(out, |out| members.iter().try_for_each(|member| write(member, number, pieces, out)))
        }
        ProductPart::Pair { members } => members.iter().try_for_each(|member| match member {
            ProductPart::Stored(stored) => {
                out.extend_from_slice(pieces[*stored].bare(number));
                Ok(())
            }
            object => write(object, number, pieces, out),
        }),
        ProductPart::Collection { count, front, element } => front.write(out, |out| {
            let count = pieces[*count].bare(0);
            out.extend_from_slice(count);
            let objects = count_in(count, &Bytes::new(count, 0, "entries"))?;
            (0..objects as usize).try_for_each(|object| write(element, object, pieces, out))
        }),
        ProductPart::Clones { count, front, name, class, element } => front.write(out, |out| {
            out.extend_from_slice(&EMPTY_TOBJECT);
            write_text(name, out);
            write_text(class, out);
            let count = pieces[*count].bare(0);
            out.extend_from_slice(count);
            out.extend_from_slice(&FIRST_INDEX.to_be_bytes());
            let objects = count_in(count, &Bytes::new(count, 0, "entries"))?;
            (0..objects as usize).try_for_each(|object| {
                out.push(IS_THERE);
                write(element, object, pieces, out)
            })
        }),
    }
}

/// Stored `TObject` (version 1, no id, no bits), as in an array whose objects are written one by one.
const EMPTY_TOBJECT: [u8; 10] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// First index of a `TClonesArray`.
const FIRST_INDEX: i32 = 0;

/// Flag that precedes each existing object of a `TClonesArray`.
const IS_THERE: u8 = 1;

/// Appends a `TString`.
fn write_text(text: &str, out: &mut Vec<u8>) {
    match u8::try_from(text.len()) {
        Ok(len) if len < u8::MAX => out.push(len),
        _ => {
            out.push(u8::MAX);
            out.extend_from_slice(&(text.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}
