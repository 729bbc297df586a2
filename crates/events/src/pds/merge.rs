//! Concatenation of packed data streams, record by record, without decompressing them.
//!
//! Invariant: every copied record has been found complete in its stream, and all streams have the same products,
//! serialisation and compression.

use super::PdsSummary;
use super::reader::PdsSource;
use crate::error::{EventsError, Result};
use raddle_columns::error::Location;
use raddle_columns::output::UnpublishedFile;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::{Event, Observer, Stage};
use std::path::Path;

/// Number of bytes copied at once.
const COPY_LEN_BYTES: u64 = 4 << 20;

/// Writes the records of `streams`, one stream after the other, to `path`.
///
/// # Errors
/// If the headers of the streams differ, reading or writing fails, or the operation is cancelled. No output is left
/// then.
pub fn merge(
    streams: &[PdsSource],
    path: &Path,
    replace: bool,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<PdsSummary> {
    let mut output = UnpublishedFile::begin(path, replace)?;
    let (mut events, mut buffer) = (0, Vec::new());
    for (number, stream) in streams.iter().enumerate() {
        if number == 0 {
            output.write(stream.header_bytes(&mut buffer)?)?;
        } else if let Some(what) = streams[0].difference(stream) {
            return Err(EventsError::StreamDiffers { place: Location::file(stream.path()).into(), what });
        }
        let records = stream.records_range();
        let mut at = records.start;
        while at < records.end {
            cancel.check()?;
            let len_bytes = COPY_LEN_BYTES.min(records.end - at);
            stream.copy(at, len_bytes, &mut buffer)?;
            output.write(&buffer)?;
            observer.event(&Event::Advanced { stage: Stage::Read, bytes: len_bytes, items: 0 });
            at += len_bytes;
        }
        events += crate::Source::len_entries(stream);
    }
    streams.iter().try_for_each(crate::Source::check_unchanged)?;
    let len_bytes = output.publish()?;
    Ok(PdsSummary { events, len_bytes })
}
