//! A source that presents the blobs of another source as columns, if their classes describe the contents.
//!
//! Trees do not need it: they are read as columns directly.

use crate::sources::map::{MapSource, Recode};
use raddle_columns::block::Column;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Form, Product, Serialization};
use raddle_columns::source::Source;
use raddle_root::BlobDecoder;

/// Source whose blobs are decoded.
pub type DecodingSource = MapSource<BlobDecoder>;

impl DecodingSource {
    /// Decodes those products of `inner` that can be decoded.
    pub fn new(inner: Box<dyn Source>) -> Self {
        Self::with(inner, |product: &mut Product| {
            let Form::Blob(serialization) = product.form else { return None };
            let decoder = match serialization {
                Serialization::Basket => BlobDecoder::of_branch(&product.name, &product.class)?,
                _ => BlobDecoder::of_class(&product.class, serialization)?,
            };
            product.form = decoder.form().clone();
            Some(decoder)
        })
    }
}

impl Recode for BlobDecoder {
    fn recode(&self, column: &Column) -> Result<Column, (u64, UnlocatedError)> {
        self.decode(column)
    }
}
