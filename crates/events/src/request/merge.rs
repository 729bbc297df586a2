//! Concatenation of files with the same layout.

use super::Resources;
use crate::error::{EventsError, Result};
use crate::formats::{EventCompression, MergeJob, WriteOptions, WrittenEvents, merge};
use raddle_core::output::check::check_output;
use raddle_core::output::publish::published_path;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use raddle_core::size::Size;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to concatenate the events of files with the same layout. Packed data streams and the framework's packed
/// layouts are copied without decompressing events.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_events::sources::generated::TestProducts;
/// use raddle_events::{EventsMergeRequest, Serialization, WriteRequest};
///
/// let (folder, cancel) = (tempfile::tempdir()?, CancelToken::new());
/// let watch = Watch { observer: &Silent, cancel: &cancel };
/// let write = serde_json::from_str(r#"{"layout": "batch", "batch": 10}"#)?;
/// let request = WriteRequest { output: folder.path().join("part.h5"), write, ..WriteRequest::default() };
/// request.run(&TestProducts::new(25, Some(Serialization::Root)), &watch, &SingleProcess)?;
///
/// let inputs = vec![request.output.clone(), request.output];
/// let merge = EventsMergeRequest { inputs, output: folder.path().join("all.h5"), ..Default::default() };
/// let written = merge.run(&watch, &SingleProcess)?.expect("a single process has the report");
/// assert_eq!((written.layout, written.events), ("batch", 50));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsMergeRequest {
    /// Paths of the inputs, in the order of their events. At least one; the output has the layout of the first.
    pub inputs: Vec<PathBuf>,
    /// File to write. It appears under this name only when it is complete.
    pub output: PathBuf,
    /// Whether to replace an existing output.
    pub force: bool,
    /// HDF5 compression; `balanced` if `None`.
    pub compress: Option<EventCompression>,
    /// Length of an HDF5 chunk before compression. If `None`, 1 MiB, or less if there are thousands of datasets.
    pub chunk: Option<Size>,
    /// Threads and memory.
    #[serde(flatten)]
    pub resources: Resources,
}

impl EventsMergeRequest {
    /// Collective. Merges the inputs. Returns the report on rank 0, and on every rank if all took part.
    ///
    /// # Errors
    /// If inputs cannot be read, do not fit together or cannot be merged ([`EventsError::NotMergeable`]), or the output
    /// exists or cannot be written.
    pub fn run(&self, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Option<WrittenEvents>> {
        let checked = check_output(&self.output, &self.inputs, self.force).map_err(EventsError::from);
        ranks.agree("check the output", checked)?;
        let options = WriteOptions { compress: self.compress, chunk: self.chunk, ..WriteOptions::default() };
        merge(&MergeJob {
            inputs: &self.inputs,
            output: &published_path(&self.output),
            replace: self.force,
            options: &options,
            convert: &self.resources.options(ranks.size()),
            watch,
            ranks,
        })
    }
}
