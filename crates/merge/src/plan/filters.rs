//! Filters of an output dataset, chosen from the filters of its model and from the options.
//!
//! They apply to data that raddle encodes and to data that libhdf5 writes; moved chunks keep their filters.

use crate::options::{Compress, Shuffle};
use crate::plan::asked_layout::AskedFilters;
use raddle_codec::{Compression, Effort, Encoder, EncoderOptions, Filter, KnownFilter};
use raddle_hdf5::model::Dataset;

/// Returns the encoder of a new dataset.
pub(super) fn encoder(asked: &AskedFilters, model: &Dataset) -> Encoder {
    encoder_with(compression(asked, model), shuffles(asked, model), has_checksums(asked, model), model)
}

fn compression(asked: &AskedFilters, model: &Dataset) -> Option<Compression> {
    match asked.compress {
        Compress::Keep if model.filters.iter().all(|filter| !compresses(filter)) => None,
        Compress::Keep => kept(model).or(asked.compress.compression()),
        compress => compress.compression(),
    }
}

/// Returns an encoder with the same filters as the pipeline of a dataset; without compression if the dataset has none.
pub(crate) fn encoder_like(compress: Compress, model: &Dataset) -> Encoder {
    let asked = match compress {
        Compress::Keep => None,
        compress => compress.compression(),
    };
    let compression = kept(model).map(|kept| match (asked, kept) {
        (Some(asked), kept) if asked.known_filter() == kept.known_filter() => asked,
        // A different compression was requested; the effort spent on deflate is up to this run.
        (_, Compression::Deflate(_)) if compress != Compress::Keep => Effort::Balanced.into(),
        (_, kept) => kept,
    });
    encoder_with(compression, has(model, KnownFilter::Shuffle), has(model, KnownFilter::Fletcher32), model)
}

/// Returns whether a dataset keeps the filters of its inputs.
pub(super) fn stay(asked: &AskedFilters, model: &Dataset) -> bool {
    asked.compress == Compress::Keep
        && shuffles(asked, model) == has(model, KnownFilter::Shuffle)
        && has_checksums(asked, model) == has(model, KnownFilter::Fletcher32)
}

fn has_checksums(asked: &AskedFilters, model: &Dataset) -> bool {
    asked.fletcher32.unwrap_or_else(|| has(model, KnownFilter::Fletcher32))
}

/// Returns whether the chunks of a dataset are shuffled. Without compression, shuffling gains nothing.
fn shuffles(asked: &AskedFilters, model: &Dataset) -> bool {
    let is_compressed = compression(asked, model).is_some();
    match asked.shuffle {
        Shuffle::Keep => has(model, KnownFilter::Shuffle) && (is_compressed || asked.compress == Compress::Keep),
        Shuffle::Yes => is_compressed || asked.shuffles_alone,
        Shuffle::No => false,
    }
}

fn encoder_with(compression: Option<Compression>, shuffle: bool, fletcher32: bool, model: &Dataset) -> Encoder {
    Encoder::new(&EncoderOptions {
        compression,
        shuffle,
        fletcher32,
        element_len_bytes: model.datatype.class.len_bytes() as usize,
    })
}

fn has(model: &Dataset, filter: KnownFilter) -> bool {
    model.filters.iter().any(|known| known.id == filter.id())
}

/// Returns whether a filter may compress. An unknown filter may.
fn compresses(filter: &Filter) -> bool {
    KnownFilter::from_id(filter.id).is_none_or(KnownFilter::compresses)
}

/// Returns the compression of a dataset; `None` if it has none that raddle can write.
fn kept(model: &Dataset) -> Option<Compression> {
    model.filters.iter().find_map(Compression::of_filter)
}

/// Returns the ids of filters.
pub(crate) fn ids(filters: &[Filter]) -> Vec<u16> {
    filters.iter().map(|filter| filter.id).collect()
}

/// Returns the filters that libhdf5 can apply to elements of any type. Others are omitted from file-local data, whose
/// values do not depend on them. Shuffle is one of the omitted filters: its parameter is the size of a descriptor,
/// which differs in old files.
pub(crate) fn library_filters(filters: &[Filter]) -> Vec<Filter> {
    filters
        .iter()
        .filter(|filter| [KnownFilter::Deflate.id(), KnownFilter::Fletcher32.id()].contains(&filter.id))
        .cloned()
        .collect()
}
