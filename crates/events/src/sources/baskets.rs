//! Decompressed baskets as stored in the file, for callers with their own decoders, which need neither columns nor an
//! offset for each entry.
//!
//! This module does not interpret the bytes. Invariants: apart from decompression, nothing is copied or byte-swapped;
//! the result does not depend on the number of threads.

use crate::convert::ConvertOptions;
use crate::error::Result;
use raddle_columns::baskets::Baskets;
use raddle_columns::source::{Source, check_entries, check_products};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::report::progress::{Event, Observer, Stage};
use std::ops::Range;

/// Reads the baskets of `products` that hold any of `entries`, with the threads of `options`. Returns one or several
/// runs of consecutive baskets for each product.
///
/// # Errors
/// If the source stores no baskets, reading fails, or the operation is cancelled.
pub fn collect_baskets(
    source: &dyn Source,
    products: &[usize],
    entries: Range<u64>,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<Vec<Vec<Baskets>>> {
    check_entries(&source.place(), &entries, source.len_entries())?;
    check_products(&source.place(), products, source.schema())?;
    observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    let runs_each = options.jobs.get().div_ceil(products.len().max(1));
    let mut runs = Vec::new();
    for (at, &product) in products.iter().enumerate() {
        let wanted = among(&source.basket_ends(product)?, &entries);
        let run_len = wanted.len().div_ceil(runs_each).max(1);
        let starts = wanted.clone().step_by(run_len);
        runs.extend(starts.map(|start| (at, start..(start + run_len).min(wanted.end))));
    }
    let read_one = |(): &mut (), (at, run): &(usize, Range<usize>)| -> Result<Baskets> {
        let baskets = source.read_baskets(products[*at], run.clone(), cancel)?;
        let bytes = baskets.bytes.len() as u64;
        observer.event(&Event::Advanced { stage: Stage::Read, bytes, items: 0 });
        Ok(baskets)
    };
    let read = parallel::map(&runs, options.jobs.get(), cancel, || (), read_one)?;
    source.check_unchanged()?;
    let mut of_products = vec![Vec::new(); products.len()];
    for ((at, _), baskets) in runs.into_iter().zip(read) {
        of_products[at].push(baskets);
    }
    Ok(of_products)
}

/// Returns the numbers of the baskets that hold any of `entries`; `ends` holds the end of each basket.
fn among(ends: &[u64], entries: &Range<u64>) -> Range<usize> {
    if entries.is_empty() {
        return 0..0;
    }
    let first = ends.partition_point(|&end| end <= entries.start);
    let last = ends.partition_point(|&end| end < entries.end);
    first..(last + 1).min(ends.len())
}
