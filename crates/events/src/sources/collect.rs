//! Reading of entries into memory: the columns of a range, each in one piece.
//!
//! If the source can read products independently, threads share the products and every column grows in place.
//! Otherwise, threads share the entries, as in a conversion, and the parts are concatenated. Invariant: the result is
//! the same as with one reader.

use crate::convert::{ConvertOptions, convert};
use crate::error::Result;
use crate::sinks::CollectSink;
use raddle_columns::block::Block;
use raddle_columns::source::{Source, check_entries, check_products};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::report::progress::{Event, Observer, Stage};
use std::ops::Range;

/// Reads `products` of `entries` with the threads of `options`. Without `with_ids`, ids are left out where that saves
/// work.
///
/// # Errors
/// If reading fails, or the operation is cancelled.
pub fn collect(
    source: &dyn Source,
    products: &[usize],
    entries: Range<u64>,
    with_ids: bool,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<Block> {
    check_entries(&source.place(), &entries, source.len_entries())?;
    check_products(&source.place(), products, source.schema())?;
    if !source.reads_products_alone() || products.len() < options.jobs.get() {
        let options =
            ConvertOptions { products: Some(products.to_vec()), entries: Some(entries.clone()), ..options.clone() };
        let sink = CollectSink::new(source.schema().select(products), source.place(), entries.end - entries.start);
        return convert(source, sink, &options, observer, cancel).map(|(_, block)| block);
    }
    observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    let read = |product: &[usize], with_ids| {
        read_whole(source, product, entries.clone(), with_ids, options.batch_len_bytes, observer, cancel)
    };
    let one = |(): &mut (), product: &usize| read(&[*product], false);
    let columns = parallel::map(products, options.jobs.get(), cancel, || (), one)?;
    source.check_unchanged()?;
    let mut block = Block::new(&source.schema().select(&[]), entries.start);
    if with_ids {
        block = read(&[], true)?;
    }
    block.entries = entries.clone();
    block.columns = columns.into_iter().flat_map(|block| block.columns).collect();
    Ok(block)
}

/// Reads products of entries range by range and concatenates the ranges.
fn read_whole(
    source: &dyn Source,
    products: &[usize],
    entries: Range<u64>,
    with_ids: bool,
    batch_len_bytes: u64,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<Block> {
    let mut reader = source.reader(products)?;
    if !with_ids {
        reader.leave_out_ids();
    }
    let mut block = Block::new(&source.schema().select(products), entries.start);
    while block.entries.end < entries.end {
        cancel.check()?;
        let start = block.entries.end;
        let end = source.unit_end(start, batch_len_bytes).clamp(start + 1, entries.end);
        let before = block.len_bytes();
        reader.append(start..end, &mut block)?;
        if start == entries.start {
            block.grow_capacity(entries.end - entries.start);
        }
        let bytes = (block.len_bytes() - before) as u64;
        observer.event(&Event::Advanced { stage: Stage::Read, bytes, items: 0 });
    }
    Ok(block)
}
