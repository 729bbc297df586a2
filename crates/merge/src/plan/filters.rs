//! Filters of an output dataset, from those of its model and what the user asked for.
//!
//! For what raddle encodes itself and what libhdf5 writes; chunks that are moved keep the filters that they have.

use crate::options::Compress;
use raddle_codec::{Effort, Encoder, EncoderOptions, Filter};
use raddle_hdf5::model::Dataset;

/// Filter numbers of HDF5 that a merge treats by name.
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const DEFLATE: u16 = 1;

/// The encoder of a new dataset.
pub(super) fn encoder(compress: Compress, model: &Dataset) -> Encoder {
    encoder_with(effort(compress, model), model)
}

/// An encoder that does what the pipeline of a dataset does, if there is one.
pub(crate) fn encoder_like(compress: Compress, model: &Dataset) -> Encoder {
    let effort = match compress {
        _ if !has(model, DEFLATE) => None,
        Compress::Keep => effort(compress, model),
        compress => compress.effort().or(Some(Effort::Balanced)),
    };
    encoder_with(effort, model)
}

/// An encoder that shuffles and checks as the model's pipeline does.
fn encoder_with(effort: Option<Effort>, model: &Dataset) -> Encoder {
    Encoder::new(&EncoderOptions {
        effort,
        shuffle: has(model, SHUFFLE),
        fletcher32: has(model, FLETCHER32),
        element_len_bytes: model.datatype.class.len_bytes() as usize,
    })
}

fn has(model: &Dataset, id: u16) -> bool {
    model.filters.iter().any(|filter| filter.id == id)
}

fn effort(compress: Compress, model: &Dataset) -> Option<Effort> {
    match (compress, model.filters.iter().find(|filter| filter.id == DEFLATE)) {
        (Compress::Keep, Some(deflate)) => {
            let level = deflate.parameters.first().copied().unwrap_or(6).min(9);
            Compress::Gzip(level as u8).effort()
        }
        (Compress::Keep, None) if model.filters.is_empty() => None,
        (compress, _) => compress.effort(),
    }
}

/// The numbers of filters.
pub(crate) fn ids(filters: &[Filter]) -> Vec<u16> {
    filters.iter().map(|filter| filter.id).collect()
}

/// Filters that libhdf5 itself writes whatever the element; others are left off file-local data, whose values do not
/// change by it. Shuffle is among those: its parameter is the size of a descriptor, which old files have otherwise.
pub(crate) fn library_filters(filters: &[Filter]) -> Vec<Filter> {
    filters.iter().filter(|filter| [DEFLATE, FLETCHER32].contains(&filter.id)).cloned().collect()
}
