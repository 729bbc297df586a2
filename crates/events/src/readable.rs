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
use std::sync::{Mutex, PoisonError};

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
    let bad = Mutex::new(Vec::new());
    let jobs_at: Vec<usize> = (0..products.len()).collect();
    parallel::for_each(
        &jobs_at,
        jobs.get(),
        cancel,
        || (),
        |(), &at| -> Result<()> {
            if let Err(error) = read_to_end(source, products[at], entries.clone(), unit_len_bytes, cancel) {
                bad.lock().unwrap_or_else(PoisonError::into_inner).push((at, error));
            }
            Ok(())
        },
    )?;
    cancel.check()?;
    let mut bad = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    bad.sort_by_key(|(at, _)| *at);
    let is_bad = |at: usize| bad.iter().any(|(bad, _)| *bad == at);
    let good = products.iter().enumerate().filter(|(at, _)| !is_bad(*at)).map(|(_, &product)| product).collect();
    Ok(Readable { products: good, bad: bad.into_iter().map(|(at, error)| (products[at], error)).collect() })
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
