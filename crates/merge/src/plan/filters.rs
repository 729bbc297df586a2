//! Filters of an output dataset, from those of its model and what the user asked for.
//!
//! For what raddle encodes itself and what libhdf5 writes; chunks that are moved keep the filters that they have.

use crate::options::{Compress, MergeOptions, Shuffle};
use raddle_codec::{Compression, Effort, Encoder, EncoderOptions, Filter, KnownFilter};
use raddle_hdf5::model::Dataset;

/// The encoder of a new dataset.
pub(super) fn encoder(options: &MergeOptions, model: &Dataset) -> Encoder {
    encoder_with(compression(options, model), shuffles(options, model), model)
}

fn compression(options: &MergeOptions, model: &Dataset) -> Option<Compression> {
    match options.compress {
        Compress::Keep if model.filters.is_empty() => None,
        Compress::Keep => kept(model).or(options.compress.compression()),
        compress => compress.compression(),
    }
}

/// An encoder that does what the pipeline of a dataset does, if there is one.
pub(crate) fn encoder_like(compress: Compress, model: &Dataset) -> Encoder {
    let asked = match compress {
        Compress::Keep => None,
        compress => compress.compression(),
    };
    let compression = kept(model).map(|kept| match (asked, kept) {
        (Some(asked), kept) if asked.known_filter() == kept.known_filter() => asked,
        // What was asked for is another one; how much work goes into deflate is for whoever writes.
        (_, Compression::Deflate(_)) if compress != Compress::Keep => Effort::Balanced.into(),
        (_, kept) => kept,
    });
    encoder_with(compression, has(model, KnownFilter::Shuffle), model)
}

/// Whether the filters of a dataset are to stay what they are.
pub(super) fn stay(options: &MergeOptions, model: &Dataset) -> bool {
    options.compress == Compress::Keep && shuffles(options, model) == has(model, KnownFilter::Shuffle)
}

/// Whether the chunks of a dataset are to be shuffled: without compression nothing is gained by it.
fn shuffles(options: &MergeOptions, model: &Dataset) -> bool {
    let is_compressed = compression(options, model).is_some();
    match options.shuffle {
        Shuffle::Keep => has(model, KnownFilter::Shuffle) && (is_compressed || options.compress == Compress::Keep),
        Shuffle::Yes => is_compressed,
        Shuffle::No => false,
    }
}

/// An encoder that also checks as the model's pipeline does.
fn encoder_with(compression: Option<Compression>, shuffle: bool, model: &Dataset) -> Encoder {
    Encoder::new(&EncoderOptions {
        compression,
        shuffle,
        fletcher32: has(model, KnownFilter::Fletcher32),
        element_len_bytes: model.datatype.class.len_bytes() as usize,
    })
}

fn has(model: &Dataset, filter: KnownFilter) -> bool {
    model.filters.iter().any(|known| known.id == filter.id())
}

/// The compression of a dataset, if it has one that raddle writes.
fn kept(model: &Dataset) -> Option<Compression> {
    model.filters.iter().find_map(Compression::of_filter)
}

/// The numbers of filters.
pub(crate) fn ids(filters: &[Filter]) -> Vec<u16> {
    filters.iter().map(|filter| filter.id).collect()
}

/// Filters that libhdf5 itself writes whatever the element; others are left off file-local data, whose values do not
/// change by it. Shuffle is among those: its parameter is the size of a descriptor, which old files have otherwise.
pub(crate) fn library_filters(filters: &[Filter]) -> Vec<Filter> {
    filters
        .iter()
        .filter(|filter| [KnownFilter::Deflate.id(), KnownFilter::Fletcher32.id()].contains(&filter.id))
        .cloned()
        .collect()
}
