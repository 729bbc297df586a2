//! Options of written events that a measured profile sets.

use crate::error::Error;
use crate::options::ProfileChoice;
use raddle_codec::Effort;
use raddle_core::output::folder_of;
use raddle_core::size::Size;
use raddle_events::formats::{EventCompression, WriteOptions};
use raddle_tune::knob::{Knob, SettingValue};
use std::path::Path;

/// Element length of the datasets whose chunks `raddle tune` measures.
const MEASURED_ELEMENT_LEN_BYTES: u64 = 4;

/// Returns `options` for an output at `path`, with chunk length and compression taken from a profile where they are
/// `None` and affect the layout.
///
/// # Errors
/// If the profile does not exist.
pub fn with_profile(mut options: WriteOptions, profile: &ProfileChoice, path: &Path) -> Result<WriteOptions, Error> {
    let settings = profile.read(folder_of(path))?.values(true);
    if !options.layout.is_hdf5() {
        return Ok(options);
    }
    if let (None, Some(SettingValue::Shape(shape))) = (options.chunk, settings.get(Knob::Chunk)) {
        let elements = shape.iter().fold(1_u64, |product, count| product.saturating_mul(*count));
        options.chunk = Some(Size(elements.saturating_mul(MEASURED_ELEMENT_LEN_BYTES)));
    }
    let level = settings.whole(Knob::Gzip).filter(|_| options.compat.is_none());
    let level = level.and_then(|level| u8::try_from(level).ok());
    options.compress = options.compress.or(level.map(gzip));
    Ok(options)
}

/// Returns the compression of a gzip level; level 0 stands for no compression.
pub fn gzip(level: u8) -> EventCompression {
    EventCompression((level > 0).then(|| Effort::Gzip(level).into()))
}
