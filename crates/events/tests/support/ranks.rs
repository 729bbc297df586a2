//! Conversions across ranks that are threads.

use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::Silent;
use raddle_events::{ConversionReport, ConvertOptions, EventsError, Result, SharedSink, Source, convert_collective};
use std::num::NonZeroUsize;

/// Converts with `ranks` ranks, each with its own number of threads, and returns the result of each.
pub fn run_collective<K: SharedSink + Sync, E: Into<EventsError>>(
    ranks: usize,
    source: &dyn Source,
    begin: impl Fn(&dyn Communicator) -> Result<K, E> + Sync,
    options: &ConvertOptions,
) -> Vec<Result<(ConversionReport, K::Summary)>>
where
    K::Summary: Send,
{
    Threads::run(ranks, |ranks| {
        let jobs = NonZeroUsize::MIN.saturating_add(ranks.rank() % 2);
        let options = ConvertOptions { jobs, ..options.clone() };
        convert_collective(source, begin(ranks).map_err(Into::into)?, &options, &Silent, &CancelToken::new(), ranks)
    })
}
