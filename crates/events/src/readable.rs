//! Which products of a source can be read to their end: what is left when the others are left out.
//!
//! Every product is read once more than a conversion would. Invariant: the outcome depends on the source alone, not on
//! threads.

use crate::error::{EventsError, Result};
use crate::source::{Reader, Source};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Which of some products can be read, and why others cannot.
#[derive(Debug, Default)]
pub struct Readable {
    /// Numbers of products that can be read, in the order in which they were asked for.
    pub products: Vec<usize>,
    /// Numbers of those that cannot, and the first fault of each.
    pub bad: Vec<(usize, EventsError)>,
}

/// Reads `entries` of each of `products`, in ranges of about `unit_len_bytes`.
///
/// # Errors
/// Cancellation, or a thread that cannot be had.
pub fn readable(
    source: &dyn Source,
    products: &[usize],
    entries: Range<u64>,
    unit_len_bytes: u64,
    jobs: NonZeroUsize,
    cancel: &CancelToken,
) -> Result<Readable> {
    let read_one = |(): &mut (), &product: &usize| -> Result<Option<EventsError>> {
        Ok(read_to_end(source, product, entries.clone(), unit_len_bytes, cancel).err())
    };
    let outcomes = parallel::map(products, jobs.get(), cancel, || (), read_one)?;
    cancel.check()?;
    let mut readable = Readable::default();
    for (&product, outcome) in products.iter().zip(outcomes) {
        match outcome {
            None => readable.products.push(product),
            Some(error) => readable.bad.push((product, error)),
        }
    }
    Ok(readable)
}

fn read_to_end(
    source: &dyn Source,
    product: usize,
    entries: Range<u64>,
    unit_len_bytes: u64,
    cancel: &CancelToken,
) -> Result<()> {
    let mut reader: Box<dyn Reader> = source.reader(&[product])?;
    let mut start = entries.start;
    while start < entries.end && !cancel.is_cancelled() {
        let end = source.unit_end(start, unit_len_bytes).clamp(start + 1, entries.end);
        reader.read(start..end)?;
        start = end;
    }
    Ok(())
}
