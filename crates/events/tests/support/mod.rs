//! Shared parts of the tests: conversions without progress reports.

use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_events::{ConversionReport, ConvertOptions, Result, Sink, Source, convert};
use std::num::NonZeroUsize;

/// Returns default options with `jobs` threads.
pub fn options(jobs: usize) -> ConvertOptions {
    ConvertOptions { jobs: NonZeroUsize::new(jobs).unwrap(), ..ConvertOptions::default() }
}

/// Runs a conversion.
pub fn run<K: Sink>(source: &dyn Source, sink: K, options: &ConvertOptions) -> Result<(ConversionReport, K::Summary)> {
    convert(source, sink, options, &Silent, &CancelToken::new())
}
