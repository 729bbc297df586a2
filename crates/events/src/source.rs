//! Where events come from.
//!
//! Invariants of every source: any range of entries can be read at any time, by any number of readers at once, with the
//! same result; reading a range in parts gives the same as reading it whole.

use crate::baskets::Baskets;
use crate::block::Block;
use crate::error::{EventsError, Place, Result};
use crate::schema::Schema;
use raddle_core::cancel::CancelToken;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What names an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct EventId {
    /// Run.
    pub run: u32,
    /// Subrun, or luminosity block.
    pub lumi: u32,
    /// Event.
    pub event: u64,
}

/// A set of entries in an order, each with the same products.
pub trait Source: Send + Sync {
    /// File and tree, for messages.
    fn place(&self) -> Place;

    /// Products.
    fn schema(&self) -> &Schema;

    /// Number of entries.
    fn len_entries(&self) -> u64;

    /// Whether blocks have ids of their entries.
    fn has_ids(&self) -> bool;

    /// Number of the product that has the ids of entries and nothing else, if there is one. Formats that store ids by themselves
    /// need it no more.
    fn id_product(&self) -> Option<usize> {
        None
    }

    /// End of the range of entries from `start` on that is best read at once: of about `target_len_bytes` in memory if the
    /// source allows it, at least one entry, at most all that are left. Where ranges end depends on the source, the start
    /// and the target alone.
    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64;

    /// Bytes of memory that reading all products of `entries` takes at the most, as far as the source can tell.
    fn unit_len_bytes(&self, entries: Range<u64>) -> u64;

    /// Fails if what is read is no longer what was opened.
    ///
    /// # Errors
    /// Naming the file.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Whether reading a product costs nothing for those beside it, so that products may be shared among threads.
    fn reads_products_alone(&self) -> bool {
        false
    }

    /// Where the entries of each basket end that a product is stored in.
    ///
    /// # Errors
    /// This source stores no baskets.
    fn basket_ends(&self, _product: usize) -> Result<Vec<u64>> {
        Err(EventsError::NoBaskets { place: self.place().into() })
    }

    /// Some of the baskets of a product, which are among those that [`Source::basket_ends`] tells.
    ///
    /// # Errors
    /// As there, and as reading them.
    fn read_baskets(&self, _product: usize, _baskets: Range<usize>, _cancel: &CancelToken) -> Result<Baskets> {
        Err(EventsError::NoBaskets { place: self.place().into() })
    }

    /// A reader of the products with these numbers, for one thread.
    ///
    /// # Errors
    /// A number beyond the schema.
    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>>;
}

/// Reads ranges of entries of some products of a source; keeps decompressors and buffers from range to range.
pub trait Reader: Send {
    /// Reads `entries`.
    ///
    /// # Errors
    /// Naming the place and what is wrong there. The reader can be used further.
    fn read(&mut self, entries: Range<u64>) -> Result<Block>;

    /// Reads `entries`, which follow those of `block`, behind these. After an error `block` is of no use.
    ///
    /// # Errors
    /// As [`Reader::read`].
    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        let more = self.read(entries)?;
        // Of the same reader, so of the same form.
        block.append(&more).map_err(|fault| fault.at(&Place::default()))
    }

    /// Blocks need no ids from here on.
    fn leave_out_ids(&mut self) {}
}

/// Fails if `entries` are not of a source of `len_entries`.
pub(crate) fn check_entries(place: &Place, entries: &Range<u64>, len_entries: u64) -> Result<()> {
    if entries.start > entries.end || entries.end > len_entries {
        return Err(EventsError::NoSuchEntries { place: place.entries(entries.clone()).into(), len_entries });
    }
    Ok(())
}

/// Fails if one of `products` is not of a schema of so many.
pub(crate) fn check_products(place: &Place, products: &[usize], schema: &Schema) -> Result<()> {
    match products.iter().find(|&&number| number >= schema.products.len()) {
        None => Ok(()),
        Some(number) => Err(EventsError::NoSuch {
            place: place.branch(&number.to_string()).into(),
            kind: "product",
            there_is: schema.products.iter().map(|product| product.name.clone()).collect(),
        }),
    }
}
