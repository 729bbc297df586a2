//! A source that presents the blobs of another source as columns, if their classes describe the contents.
//!
//! Trees do not need it: they are read as columns directly.

use crate::error::Fault;
use crate::model::block::Column;
use crate::model::schema::{Form, Product};
use crate::model::source::Source;
use crate::root::BlobDecoder;
use crate::sources::map::{MapSource, Recode};

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
