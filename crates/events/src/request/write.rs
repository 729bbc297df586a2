//! Writing of a source that the caller provides.

use super::Resources;
use crate::error::{EventsError, Result};
use crate::formats::{WriteJob, WriteOptions, WrittenEvents, write};
use raddle_columns::source::Source;
use raddle_core::output::check::check_output;
use raddle_core::output::publish::published_path;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to write all entries of a source to a file.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_events::{Block, Buffer, Column, MemorySource, Schema, WriteRequest};
///
/// let schema: Schema = serde_json::from_str(r#"{"products": [{"name": "n", "class": "", "form": {"number": "int32"}}]}"#)?;
/// let values = Buffer::Values([1_i32, 2, 3].iter().flat_map(|value| value.to_le_bytes()).collect());
/// let block = Block { entries: 0..3, ids: Vec::new(), columns: vec![Column { buffers: vec![values] }] };
/// let source = MemorySource::new(schema, block)?;
///
/// let (folder, cancel) = (tempfile::tempdir()?, CancelToken::new());
/// let request = WriteRequest { output: folder.path().join("n.h5"), ..WriteRequest::default() };
/// let written = request.run(&source, &Watch { observer: &Silent, cancel: &cancel }, &SingleProcess)?;
/// assert_eq!((written.events, written.products), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteRequest {
    /// File to write. It appears under this name only when it is complete.
    pub output: PathBuf,
    /// Whether to replace an existing output.
    pub force: bool,
    /// Layout of the output.
    #[serde(flatten)]
    pub write: WriteOptions,
    /// Threads and memory.
    #[serde(flatten)]
    pub resources: Resources,
}

impl WriteRequest {
    /// Collective. Writes the entries of `source`.
    ///
    /// # Errors
    /// [`EventsError::Option`] names an option that is not valid. Otherwise the source cannot be read, the layout
    /// cannot hold a product, or the output exists or cannot be written.
    pub fn run(&self, source: &dyn Source, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<WrittenEvents> {
        let checked = check_output(&self.output, &[], self.force).map_err(EventsError::from);
        let checked = checked.and_then(|()| self.write.check_used());
        ranks.agree("check the output", checked)?;
        let (output, convert) = (&published_path(&self.output), &self.resources.options(ranks.size()));
        write(&WriteJob { source, output, replace: self.force, options: &self.write, convert, watch, ranks })
    }
}
