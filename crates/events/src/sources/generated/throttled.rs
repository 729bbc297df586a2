//! Simulation of processing time: a source that waits for each event, like the framework's waiters.
//!
//! It sleeps rather than computes, to measure how well reading and writing overlap with other work.

use raddle_columns::block::Block;
use raddle_columns::error::{Location, Result};
use raddle_columns::schema::Schema;
use raddle_columns::source::{RangeReader, Source};
use std::ops::Range;
use std::time::Duration;

/// Source that waits for each event.
pub struct ThrottledSource {
    inner: Box<dyn Source>,
    per_event: Duration,
    /// Waiting time per byte; the framework's scale counts microseconds.
    per_byte: Duration,
    /// Additional waiting time of each event; the list is repeated if there are more events.
    recorded: Vec<Duration>,
}

/// Reason why a string is not a list of event times.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventTimesError {
    /// The text contains no times.
    #[error("it holds no times: give one for each event, in microseconds, with spaces or line ends between them")]
    Empty,
    /// A word is not a time.
    #[error("word {number}, {word:?}, is not a time in microseconds from 0 to 10^12")]
    NoTime {
        /// Number of the word, counted from 1.
        number: usize,
        /// Word that is not a number.
        word: String,
    },
}

/// Maximum time of an event: eleven days.
const MAX_MICROSECONDS: f64 = 1e12;

/// Parses the times of events in the format of the framework's files: microseconds separated by white space.
///
/// # Errors
/// If a word is not a time, or there are none.
pub fn parse_event_times(text: &str) -> Result<Vec<Duration>, EventTimesError> {
    let time = |(number, word): (usize, &str)| match word.parse::<f64>() {
        Ok(time) if (0.0..=MAX_MICROSECONDS).contains(&time) => Ok(Duration::from_secs_f64(time / 1e6)),
        _ => Err(EventTimesError::NoTime { number: number + 1, word: word.to_owned() }),
    };
    let times: Vec<Duration> = text.split_whitespace().enumerate().map(time).collect::<Result<_, _>>()?;
    if times.is_empty() { Err(EventTimesError::Empty) } else { Ok(times) }
}

impl ThrottledSource {
    /// Creates a source that waits for each event that is read from `inner`, and for each byte.
    pub fn new(inner: Box<dyn Source>, per_event: Duration, per_byte: Duration) -> Self {
        Self { inner, per_event, per_byte, recorded: Vec::new() }
    }

    /// Adds the recorded waiting time of each event, counted from the source's first; the list is repeated if it is too
    /// short.
    #[must_use]
    pub fn as_recorded(self, recorded: Vec<Duration>) -> Self {
        Self { recorded, ..self }
    }

    /// Returns the time to wait for reading these events, which have `len_bytes`.
    fn wait(&self, entries: Range<u64>, len_bytes: usize) -> Duration {
        let events = self.per_event.as_secs_f64() * entries.end.saturating_sub(entries.start) as f64;
        let bytes = self.per_byte.as_secs_f64() * len_bytes as f64;
        let of_event = |entry: u64| self.recorded[(entry % self.recorded.len() as u64) as usize].as_secs_f64();
        let recorded: f64 = if self.recorded.is_empty() { 0.0 } else { entries.map(of_event).sum() };
        Duration::try_from_secs_f64(events + bytes + recorded).unwrap_or(Duration::MAX)
    }
}

impl Source for ThrottledSource {
    fn place(&self) -> Location {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries()
    }

    fn has_ids(&self) -> bool {
        self.inner.has_ids()
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.inner.unit_end(start, target_len_bytes)
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.batch_len_bytes(entries)
    }

    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        self.inner.reader_len_bytes(products)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.inner.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        Ok(Box::new(WaitingReader { inner: self.inner.reader(products)?, source: self }))
    }
}

struct WaitingReader<'source> {
    inner: Box<dyn RangeReader + 'source>,
    source: &'source ThrottledSource,
}

impl RangeReader for WaitingReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let block = self.inner.read(entries)?;
        std::thread::sleep(self.source.wait(block.entries.clone(), block.len_bytes()));
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::generated::Empty;

    #[test]
    fn recorded_times_are_replayed_in_turn() {
        let times = parse_event_times("100 200.5\n\t0\n").unwrap();
        assert_eq!(times, [100_000, 200_500, 0].map(Duration::from_nanos));
        let source = || ThrottledSource::new(Box::new(Empty::new(100)), Duration::ZERO, Duration::ZERO);
        let recorded = source().as_recorded(times);
        for (entries, nanoseconds) in [(0..1, 100_000), (1..3, 200_500), (2..5, 300_500), (0..30, 3_005_000), (7..7, 0)]
        {
            let wait = recorded.wait(entries.clone(), 0).as_secs_f64();
            assert!((wait - nanoseconds as f64 / 1e9).abs() < 1e-9, "{entries:?}: {wait}");
        }
        let all = ThrottledSource::new(Box::new(Empty::new(9)), Duration::from_micros(5), Duration::from_nanos(2));
        let all = all.as_recorded(vec![Duration::from_micros(1)]);
        assert_eq!(all.wait(4..6, 1000).as_micros(), 2 * 5 + 2 + 2);
        // Without times, nothing waits.
        assert_eq!(source().wait(0..50, 1 << 20), Duration::ZERO);
    }

    #[test]
    fn strings_without_times_are_refused() {
        assert_eq!(parse_event_times(" \n"), Err(EventTimesError::Empty));
        for (text, number) in [("1 -2", 2), ("x", 1), ("5 6 nan", 3), ("1e13", 1), ("inf", 1)] {
            assert!(
                matches!(parse_event_times(text), Err(EventTimesError::NoTime { number: at, .. }) if at == number),
                "{text}"
            );
        }
    }
}
