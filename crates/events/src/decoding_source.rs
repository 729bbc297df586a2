//! A source that presents the blobs of another source as columns, if their classes describe the contents.
//!
//! Trees do not need it: they are read as columns directly.

use crate::block::Column;
use crate::error::Fault;
use crate::map_source::{MapSource, Recode};
use crate::root::BlobDecoder;
use crate::schema::{Form, Product};
use crate::source::Source;

/// Source whose blobs are decoded.
pub type DecodingSource = MapSource<BlobDecoder>;

impl DecodingSource {
    /// Decodes those products of `inner` that can be decoded.
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
