//! Selection of inputs and products: several files as one source, with products in the form that a layout accepts.

use super::check_bytes;
use crate::error::{EventsError, Result};
use crate::formats::{self, EventFile, OmittedProduct, OpenOptions, WriteOptions};
use crate::sources::concat::{ConcatSource, MismatchPolicy};
use crate::sources::decoding::DecodingSource;
use crate::sources::serializing::SerializingSource;
use raddle_columns::error::listed;
use raddle_columns::schema::{Form, Product, ProductGlobs, Schema, Serialization};
use raddle_columns::source::Source;
use raddle_core::report::progress::Watch;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Selection from the inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Tree or RNTuple of ROOT files, optionally with a cycle: `Events;1`. If `None`, `Events` is read, or the only
    /// one.
    pub tree: Option<String>,
    /// Globs of product names. All products if empty.
    pub products: Vec<String>,
    /// Whether to read products as their stored bytes instead of columns.
    pub raw: bool,
    /// Whether to read objects of ROOT trees as the bytes of whole objects, even if they are split into branches.
    /// Cannot be combined with `raw`.
    pub whole: bool,
    /// Treatment of products that some inputs lack or have in a different form.
    pub differing: MismatchPolicy,
}

/// Inputs opened as one source.
pub struct OpenedInputs {
    /// Events of all inputs, in their order.
    pub source: Box<dyn Source>,
    /// Products left out because not all inputs have them in the same form.
    pub left_out: Vec<OmittedProduct>,
    /// Sentence about each input with branches or fields that cannot be read at all.
    pub unread: Vec<String>,
}

impl Selection {
    /// Opens the inputs as one source, with products in the form that the layout of `output` accepts.
    ///
    /// # Errors
    /// If no input is given, options contradict each other, an input cannot be read, or products differ in a way that
    /// `differing` does not allow.
    pub fn open<P: AsRef<Path>>(&self, inputs: &[P], output: &WriteOptions) -> Result<OpenedInputs> {
        check_bytes(self.raw, self.whole)?;
        output.check()?;
        let options =
            OpenOptions { tree: self.tree.clone(), raw: self.raw || !output.layout.holds_columns(), whole: self.whole };
        let files = inputs.iter().map(|path| formats::open(path.as_ref(), &options)).collect::<Result<Vec<_>>>()?;
        // Whole objects that are refused are products, so that they are reported when they are read.
        let unread = match self.whole {
            true => Vec::new(),
            false => {
                inputs.iter().zip(&files).filter_map(|(path, file)| unread_of(path.as_ref(), file.as_ref())).collect()
            }
        };
        let sources = files.into_iter().map(|file| file as Box<dyn Source>).collect();
        // Before they are joined, because inputs must agree on how products are read, not on how each file stores them.
        let mut sources = self.recoded(sources, output);
        match sources.len() {
            0 => return Err(EventsError::option("inputs", "no files are given")),
            1 => {
                self.check_patterns(&sources)?;
                return Ok(OpenedInputs { source: sources.remove(0), left_out: Vec::new(), unread });
            }
            _ => self.check_patterns(&sources)?,
        }
        // Invalid patterns are reported when products are chosen.
        let globs = ProductGlobs::new(&self.products).ok();
        let is_wanted = |name: &str| globs.as_ref().is_none_or(|globs| globs.is_match(name));
        let joined = ConcatSource::of(sources, is_wanted, self.differing)?;
        let left_out = |(product, error): &(String, EventsError)| OmittedProduct {
            product: product.clone(),
            reason: error.to_string(),
        };
        let left_out = joined.left_out().iter().map(left_out).collect();
        Ok(OpenedInputs { source: Box::new(joined), left_out, unread })
    }

    /// Checks that each pattern matches a product of a source. Invalid patterns are left to [`Selection::matching`].
    fn check_patterns(&self, sources: &[Box<dyn Source>]) -> Result<()> {
        let products = || sources.iter().flat_map(|source| &source.schema().products);
        let matches_nothing = |pattern: &&String| {
            let glob = ProductGlobs::new(std::slice::from_ref(*pattern));
            glob.is_ok_and(|glob| products().all(|product| !glob.is_match(&product.name)))
        };
        let unknown: Vec<&str> = self.products.iter().filter(matches_nothing).map(String::as_str).collect();
        let Some(first) = sources.first().filter(|_| !unknown.is_empty()) else { return Ok(()) };
        let mut available = Vec::new();
        for product in products() {
            if !available.contains(&product.name) {
                available.push(product.name.clone());
            }
        }
        Err(EventsError::NoMatch { place: first.place().branch(&unknown.join(" ")).into(), available })
    }

    /// Converts sources so that their products have the form that the layout accepts.
    fn recoded(&self, sources: Vec<Box<dyn Source>>, output: &WriteOptions) -> Vec<Box<dyn Source>> {
        if output.layout.holds_columns() {
            return match self.raw {
                true => sources,
                false => sources.into_iter().map(|source| DecodingSource::new(source).into_source()).collect(),
            };
        }
        match output.serialization(sources.iter().any(|source| has_baskets(source.schema()))) {
            Some(wanted) => {
                sources.into_iter().map(|source| SerializingSource::new(source, wanted).into_source()).collect()
            }
            None => sources,
        }
    }

    /// Returns the numbers of the selected products.
    ///
    /// # Errors
    /// If a glob is not valid, or none matches.
    pub fn matching(&self, source: &dyn Source) -> Result<Vec<usize>> {
        let schema = source.schema();
        let products =
            schema.matching(&self.products).map_err(|error| EventsError::option("products", error.to_string()))?;
        if products.is_empty() && !self.products.is_empty() {
            return Err(EventsError::NoMatch {
                place: source.place().branch(&self.products.join(" ")).into(),
                available: schema.products.iter().map(|product| product.name.clone()).collect(),
            });
        }
        Ok(products)
    }

    /// Returns the numbers of the selected products for an output. The framework's formats store event ids separately,
    /// so a product that holds only ids is left out, unless it is the only one selected.
    ///
    /// # Errors
    /// As for [`Selection::matching`].
    pub(crate) fn matching_for(&self, source: &dyn Source, output: &WriteOptions) -> Result<Vec<usize>> {
        let mut products = self.matching(source)?;
        if let Some(ids) = source.id_product().filter(|_| output.is_of_framework() && products.len() > 1) {
            products.retain(|product| *product != ids);
        }
        Ok(products)
    }
}

fn has_baskets(schema: &Schema) -> bool {
    let basket = Form::Blob(Serialization::Basket);
    schema.products.iter().any(|product| product.form == basket)
}

/// Returns a sentence about the branches or fields of a file that cannot be read; `None` if there are none.
fn unread_of(path: &Path, file: &dyn EventFile) -> Option<String> {
    let unread = file.unread();
    let path = path.display();
    match unread.as_slice() {
        [] => None,
        [only] => Some(format!("{path}: left out: {only}")),
        [first, others @ ..] => {
            Some(format!("{path}: left out: {first}; and {} more, which raddle events inspect lists", others.len()))
        }
    }
}

/// Warns about products that were left out.
pub(super) fn warn_of(left_out: &[OmittedProduct], watch: &Watch<'_>) {
    for OmittedProduct { product, reason } in left_out {
        let text = format!("{} is left out: {reason}", product.escape_debug());
        watch.warn(text);
    }
}

/// Warns about products that become bytes although the layout holds columns.
pub(super) fn warn_of_bytes(schema: &Schema, watch: &Watch<'_>) {
    let is_bytes = |product: &&Product| matches!(product.form, Form::Blob(_));
    let names: Vec<String> = schema.products.iter().filter(is_bytes).map(|product| product.name.clone()).collect();
    if !names.is_empty() {
        let text = format!(
            "{} of {} products are written as bytes, because their classes are not described or not supported: {}; ROOT \
             trees describe their classes, streams and HDF5 files of objects do not",
            names.len(),
            schema.products.len(),
            listed(&names),
        );
        watch.warn(text);
    }
}
