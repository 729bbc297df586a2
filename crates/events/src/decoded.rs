//! Another source with its blobs as columns, where their classes say what is in them.
//!
//! Not for trees, which are read as columns at once.

use crate::block::Column;
use crate::error::Fault;
use crate::recoded::{Recode, Recoded};
use crate::root::BlobDecoder;
use crate::schema::{Form, Product};
use crate::source::Source;

/// A source, decoded.
pub type Decoded = Recoded<BlobDecoder>;

impl Decoded {
    /// Decodes the products of `inner` that can be.
    pub fn new(inner: Box<dyn Source>) -> Self {
        Self::with(inner, |product: &mut Product| {
            let Form::Blob(serialization) = product.form else { return None };
            let decoder = BlobDecoder::of_class(&product.class, serialization)?;
            product.form = decoder.form().clone();
            Some(decoder)
        })
    }
}

impl Recode for BlobDecoder {
    fn recode(&self, column: &Column) -> Result<Column, (u64, Fault)> {
        self.decode(column)
    }
}
