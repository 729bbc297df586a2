//! Providers of events.
//!
//! Invariants of every source: any range of entries can be read at any time, by any number of readers at once, with the
//! same result; reading a range in parts gives the same result as reading it whole.

use crate::baskets::Baskets;
use crate::block::Block;
use crate::error::{ColumnsError, Location, Result};
use crate::schema::Schema;
use raddle_core::cancel::CancelToken;
use std::ops::Range;

/// Ordered set of entries, each with the same products.
pub trait Source: Send + Sync {
    /// Returns the file and tree, for messages.
    fn place(&self) -> Location;

    /// Returns the products.
    fn schema(&self) -> &Schema;

    /// Returns the number of entries.
    fn len_entries(&self) -> u64;

    /// Returns whether blocks contain the ids of their entries.
    fn has_ids(&self) -> bool;

    /// Returns the number of the product that holds the ids of entries and nothing else, if there is one. Formats that
    /// store ids separately do not need it.
    fn id_product(&self) -> Option<usize> {
        None
    }

    /// Returns the end of the best range to read in one step from `start` on: about `target_len_bytes` in memory if the
    /// source allows it, but at least one entry. Ends of ranges depend only on the source, the start and the target.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64;

    /// Returns the maximum memory needed to read all products of `entries`, as far as the source knows it.
    fn batch_len_bytes(&self, entries: Range<u64>) -> u64;

    /// Returns the maximum memory that a reader of `products` keeps between ranges, such as decoded baskets, as far as
    /// the source knows it; 0 if it is at most a few MiB.
    fn reader_len_bytes(&self, _products: &[usize]) -> u64 {
        0
    }

    /// Fails if the input has changed since it was opened.
    ///
    /// # Errors
    /// If the input has changed. The error names the file.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether products can be read independently at no extra cost, in which case threads may share them.
    fn reads_products_alone(&self) -> bool {
        false
    }

    /// Returns the end, in entries, of each basket in which a product is stored.
    ///
    /// # Errors
    /// If this source stores no baskets.
    fn basket_ends(&self, _product: usize) -> Result<Vec<u64>> {
        Err(ColumnsError::NoBaskets { place: self.place().into() })
    }

    /// Reads some of the baskets of a product; `_baskets` are numbers of the baskets that [`Source::basket_ends`]
    /// describes.
    ///
    /// # Errors
    /// If this source stores no baskets, or reading fails.
    fn read_baskets(&self, _product: usize, _baskets: Range<usize>, _cancel: &CancelToken) -> Result<Baskets> {
        Err(ColumnsError::NoBaskets { place: self.place().into() })
    }

    /// Creates a reader of the products with these numbers, for one thread.
    ///
    /// # Errors
    /// If a number lies beyond the schema.
    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>>;
}

/// Reader of ranges of entries of some products of a source. It keeps decompressors and buffers from range to range.
pub trait RangeReader: Send {
    /// Reads `entries`.
    ///
    /// # Errors
    /// If the entries cannot be read; the error names the place. The reader remains usable.
    fn read(&mut self, entries: Range<u64>) -> Result<Block>;

    /// Reads `entries`, which must follow those of `block`, and appends them to it. After an error, the contents of
    /// `block` are unspecified.
    ///
    /// # Errors
    /// As for [`RangeReader::read`].
    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        let more = self.read(entries)?;
        // Both come from the same reader, so they have the same form.
        block.append(&more).map_err(|fault| fault.at(&Location::default()))
    }

    /// Requests blocks without ids from now on.
    fn leave_out_ids(&mut self) {}
}

/// Fails if `entries` are not within a source of `len_entries` entries.
pub fn check_entries(place: &Location, entries: &Range<u64>, len_entries: u64) -> Result<()> {
    if entries.start > entries.end || entries.end > len_entries {
        return Err(ColumnsError::NoSuchEntries { place: place.entries(entries.clone()).into(), len_entries });
    }
    Ok(())
}

/// Fails if any of `products` is not a product of the schema.
pub fn check_products(place: &Location, products: &[usize], schema: &Schema) -> Result<()> {
    match products.iter().find(|&&number| number >= schema.products.len()) {
        None => Ok(()),
        Some(number) => Err(ColumnsError::NoSuch {
            place: place.branch(&number.to_string()).into(),
            kind: "product",
            available: schema.products.iter().map(|product| product.name.clone()).collect(),
        }),
    }
}

/// Returns the mean length of an event in memory.
pub fn mean_len_bytes(source: &dyn Source) -> u64 {
    let entries = source.len_entries();
    source.batch_len_bytes(0..entries) / entries.max(1)
}
