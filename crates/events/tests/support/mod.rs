//! What the tests share: a conversion that nobody watches.

use raddle_core::cancel::CancelToken;
use raddle_core::progress::Silent;
use raddle_events::{ConvertOptions, Converted, Result, Sink, Source, convert};
use std::num::NonZeroUsize;

/// Defaults with so many threads.
pub fn options(jobs: usize) -> ConvertOptions {
    ConvertOptions { jobs: NonZeroUsize::new(jobs).unwrap(), ..ConvertOptions::default() }
}

/// Converts.
pub fn run<K: Sink>(source: &dyn Source, sink: K, options: &ConvertOptions) -> Result<(Converted, K::Summary)> {
    convert(source, sink, options, &Silent, &CancelToken::new())
}
