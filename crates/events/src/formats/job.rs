//! Requests to a format, and the report of a written file.

use super::WriteOptions;
use crate::convert::ranks::convert_collective;
use crate::convert::{ConversionReport, ConvertOptions};
use crate::error::Result;
use raddle_columns::schema::Schema;
use raddle_columns::sink::SharedSink;
use raddle_columns::source::Source;
use raddle_core::path_text;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Request to write the entries of a source to a file.
#[derive(Clone, Copy)]
pub struct WriteJob<'a> {
    /// Source of the entries.
    pub source: &'a dyn Source,
    /// Path of the output.
    pub output: &'a Path,
    /// Whether to replace an existing output.
    pub replace: bool,
    /// Layout of the output.
    pub options: &'a WriteOptions,
    /// Entries, products, threads and memory of the conversion.
    pub convert: &'a ConvertOptions,
    /// Observer and cancellation.
    pub watch: &'a Watch<'a>,
    /// Ranks that write the file together.
    pub ranks: &'a dyn Communicator,
}

impl WriteJob<'_> {
    /// Returns the products that are written.
    pub fn schema(&self) -> Schema {
        let schema = self.source.schema();
        self.convert.products.as_deref().map_or_else(|| schema.clone(), |products| schema.select(products))
    }

    /// Warns about something, once for all ranks.
    pub fn warn(&self, text: String) {
        if self.ranks.rank() == 0 {
            self.watch.warn(text);
        }
    }

    /// Warns if a format whose events always have ids gets events without ids.
    pub(super) fn warn_of_counted_ids(&self) {
        if !self.source.has_ids() && self.source.len_entries() > 0 {
            self.warn(
                "the events have no ids: the output has run 1, subrun 1 and events counted from 1, which readers take \
                 for ids"
                    .to_owned(),
            );
        }
    }

    /// Collective. Passes the entries to `sink`, which was begun for [`WriteJob::schema`].
    ///
    /// # Errors
    /// As for [`convert_collective`].
    pub fn fill<K: SharedSink + Sync>(
        &self,
        sink: K,
        options: &ConvertOptions,
    ) -> Result<(ConversionReport, K::Summary)> {
        convert_collective(self.source, sink, options, self.watch.observer, self.watch.cancel, self.ranks)
    }

    /// Returns the report of the written file, without datasets and chunks.
    pub fn report(&self, events: u64, len_bytes: u64, converted: ConversionReport) -> WrittenEvents {
        let products = self.convert.products.as_ref().map_or(self.source.schema().products.len(), Vec::len);
        WrittenEvents {
            output: self.output.to_path_buf(),
            layout: self.options.layout.name(),
            events,
            products: products as u64,
            len_bytes,
            datasets: None,
            chunks: None,
            left_out: Vec::new(),
            converted,
        }
    }
}

/// Request to merge files in the layout of the first.
#[derive(Clone, Copy)]
pub struct MergeJob<'a> {
    /// Paths of the files; at least one.
    pub inputs: &'a [PathBuf],
    /// Path of the output.
    pub output: &'a Path,
    /// Whether to replace an existing output.
    pub replace: bool,
    /// Compression and chunks of the output; the layout is that of the first input.
    pub options: &'a WriteOptions,
    /// Threads and memory of the conversion.
    pub convert: &'a ConvertOptions,
    /// Observer and cancellation.
    pub watch: &'a Watch<'a>,
    /// Ranks that write the file together.
    pub ranks: &'a dyn Communicator,
}

impl<'a> MergeJob<'a> {
    /// Returns the request to write `source` as the output.
    pub(super) fn writing(&self, source: &'a dyn Source, options: &'a WriteOptions) -> WriteJob<'a> {
        let Self { output, replace, convert, watch, ranks, .. } = *self;
        WriteJob { source, output, replace, options, convert, watch, ranks }
    }

    /// Collective. Returns `local` if the step succeeded on every rank.
    ///
    /// # Errors
    /// If the step failed on this rank or on another.
    pub fn agree<T>(&self, operation: &'static str, local: Result<T>) -> Result<T> {
        self.ranks.agree(operation, local)
    }
}

/// Report of a written file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WrittenEvents {
    /// Path of the file.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Name of the layout of the file.
    pub layout: &'static str,
    /// Number of events.
    pub events: u64,
    /// Number of products.
    pub products: u64,
    /// Length of the file.
    pub len_bytes: u64,
    /// Number of datasets, for HDF5.
    pub datasets: Option<u64>,
    /// Number of chunks, for HDF5.
    pub chunks: Option<u64>,
    /// Products that were left out, with the reasons.
    pub left_out: Vec<OmittedProduct>,
    /// Figures of the conversion.
    #[serde(flatten)]
    pub converted: ConversionReport,
}

/// Product that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedProduct {
    /// Name of the product.
    pub product: String,
    /// Reason why it was left out.
    pub reason: String,
}
