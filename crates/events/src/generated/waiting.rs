//! Another source that takes its time, as reconstruction and its algorithms would: the framework's waiters.
//!
//! Sleeping, not computing: it measures how well reading and writing hide behind other work.

use crate::block::Block;
use crate::error::{Place, Result};
use crate::schema::Schema;
use crate::source::{Reader, Source};
use std::ops::Range;
use std::time::Duration;

/// A source that waits.
pub struct Waiting {
    inner: Box<dyn Source>,
    per_event: Duration,
    /// The framework's scale, which counts microseconds.
    per_byte: Duration,
}

impl Waiting {
    /// Waits for each event that is read of `inner`, and for each byte.
    pub fn new(inner: Box<dyn Source>, per_event: Duration, per_byte: Duration) -> Self {
        Self { inner, per_event, per_byte }
    }
}

impl Source for Waiting {
    fn place(&self) -> Place {
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

    fn unit_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.unit_len_bytes(entries)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.inner.check_unchanged()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
        Ok(Box::new(WaitingReader { inner: self.inner.reader(products)?, source: self }))
    }
}

struct WaitingReader<'source> {
    inner: Box<dyn Reader + 'source>,
    source: &'source Waiting,
}

impl Reader for WaitingReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let block = self.inner.read(entries)?;
        let events = self.source.per_event.as_secs_f64() * block.len_entries() as f64;
        let bytes = self.source.per_byte.as_secs_f64() * block.len_bytes() as f64;
        if let Ok(wait) = Duration::try_from_secs_f64(events + bytes) {
            std::thread::sleep(wait);
        }
        Ok(block)
    }
}
