//! Search for the products of a damaged source that can be read to the end, to be converted without the others.
//!
//! This reads every product once more than a conversion would. Invariant: the outcome depends only on the source, not
//! on threads.

use crate::error::{EventsError, Result};
use raddle_columns::source::{RangeReader, Source};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Products that can be read, and the others with the reasons why they cannot.
#[derive(Debug, Default)]
pub struct ReadableProducts {
    /// Numbers of the readable products, in the order in which they were requested.
    pub products: Vec<usize>,
    /// Numbers of the unreadable products, each with its first fault.
    pub bad: Vec<(usize, EventsError)>,
}

/// Tries to read `entries` of each of `products`, in ranges of about `batch_len_bytes`.
///
/// # Errors
/// If the operation is cancelled, or no thread can be started.
pub fn readable(
    source: &dyn Source,
    products: &[usize],
    entries: Range<u64>,
    batch_len_bytes: u64,
    jobs: NonZeroUsize,
    cancel: &CancelToken,
) -> Result<ReadableProducts> {
    let read_one = |(): &mut (), &product: &usize| -> Result<Option<EventsError>> {
        let read = || {
            let mut reader = source.reader(&[product])?;
            // Bad ids of the events do not make a product bad.
            reader.leave_out_ids();
            read_to_end(source, reader.as_mut(), entries.clone(), batch_len_bytes, cancel)
        };
        Ok(read().err())
    };
    let outcomes = parallel::map(products, jobs.get(), cancel, || (), read_one)?;
    cancel.check()?;
    let mut readable = ReadableProducts::default();
    for (&product, outcome) in products.iter().zip(outcomes) {
        match outcome {
            None => readable.products.push(product),
            Some(error) => readable.bad.push((product, error)),
        }
    }
    Ok(readable)
}

/// Returns the first fault of the ids of `entries`, if a source has ids that cannot be read.
///
/// # Errors
/// If the operation is cancelled.
pub fn fault_of_ids(
    source: &dyn Source,
    entries: Range<u64>,
    batch_len_bytes: u64,
    cancel: &CancelToken,
) -> Result<Option<EventsError>> {
    let read = || read_to_end(source, source.reader(&[])?.as_mut(), entries, batch_len_bytes, cancel);
    let fault = if source.has_ids() { read().err() } else { None };
    cancel.check()?;
    Ok(fault)
}

fn read_to_end(
    source: &dyn Source,
    reader: &mut dyn RangeReader,
    entries: Range<u64>,
    batch_len_bytes: u64,
    cancel: &CancelToken,
) -> Result<()> {
    let mut start = entries.start;
    while start < entries.end && !cancel.is_cancelled() {
        let end = source.unit_end(start, batch_len_bytes).clamp(start + 1, entries.end);
        reader.read(start..end)?;
        start = end;
    }
    Ok(())
}
