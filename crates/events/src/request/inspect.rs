//! Description of an event file.

use super::{Resources, check_bytes};
use crate::convert::convert;
use crate::error::Result;
use crate::formats::{OpenOptions, open};
use crate::sinks::SizesSink;
use raddle_columns::schema::Product;
use raddle_columns::source::{Source, mean_len_bytes};
use raddle_core::report::progress::Watch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to describe a file.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_events::sources::generated::TestProducts;
/// use raddle_events::{InspectRequest, Serialization, WriteRequest};
///
/// let (folder, cancel) = (tempfile::tempdir()?, CancelToken::new());
/// let watch = Watch { observer: &Silent, cancel: &cancel };
/// let write = serde_json::from_str(r#"{"layout": "event"}"#)?;
/// let request = WriteRequest { output: folder.path().join("run1.h5"), write, ..WriteRequest::default() };
/// request.run(&TestProducts::new(10, Some(Serialization::Root)), &watch, &SingleProcess)?;
///
/// let inspection = InspectRequest { file: request.output, ..InspectRequest::default() }.run(&watch)?;
/// assert_eq!((inspection.format.as_str(), inspection.events), ("HDF5, event layout", 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InspectRequest {
    /// Path of the file.
    pub file: PathBuf,
    /// Tree or RNTuple of a ROOT file, optionally with a cycle: `Events;1`. If `None`, `Events` is read, or the only
    /// one.
    pub tree: Option<String>,
    /// Whether to show products as their stored bytes instead of columns.
    pub raw: bool,
    /// Whether to read objects of ROOT trees as the bytes of whole objects, even if they are split into branches.
    /// Cannot be combined with `raw`.
    pub whole: bool,
    /// Whether to read all events to determine the length of each product.
    pub sizes: bool,
    /// Threads and memory.
    #[serde(flatten)]
    pub resources: Resources,
}

/// Contents of an event file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventsInspection {
    /// Path of the file.
    pub file: String,
    /// Format and layout, as text.
    pub format: String,
    /// Number of events.
    pub events: u64,
    /// Mean length of an event in memory.
    pub mean_len_bytes: u64,
    /// Products.
    pub products: Vec<InspectedProduct>,
    /// Branches that are not products, because they have no data or a different number of entries.
    pub unread: Vec<String>,
}

/// Product of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectedProduct {
    /// Name, class and form.
    #[serde(flatten)]
    pub product: Product,
    /// Form of the product, as text.
    pub r#type: String,
    /// Total length of its values in memory, if requested.
    pub len_bytes: Option<u64>,
    /// Reason why the product is read as bytes, if it cannot be read as columns.
    pub as_bytes: Option<String>,
}

impl InspectRequest {
    /// Describes the file.
    ///
    /// # Errors
    /// [`EventsError::Option`](crate::EventsError::Option) names an option that is not valid. Otherwise the file cannot
    /// be read.
    pub fn run(&self, watch: &Watch<'_>) -> Result<EventsInspection> {
        check_bytes(self.raw, self.whole)?;
        let options = OpenOptions { tree: self.tree.clone(), raw: self.raw, whole: self.whole };
        let file = open(&self.file, &options)?;
        let source: &dyn Source = file.as_ref();
        let mut undecoded = file.undecoded();
        let mut inspected = |product: &Product| InspectedProduct {
            product: product.clone(),
            r#type: product.form.to_string(),
            len_bytes: None,
            as_bytes: undecoded.extract_if(.., |(name, _)| *name == product.name).next().map(|(_, why)| why),
        };
        let mut products: Vec<_> = source.schema().products.iter().map(&mut inspected).collect();
        if self.sizes {
            let sink = SizesSink::new(source.schema());
            let (_, lengths) = convert(source, sink, &self.resources.options(1), watch.observer, watch.cancel)?;
            products.iter_mut().zip(lengths).for_each(|(product, len_bytes)| product.len_bytes = Some(len_bytes));
        }
        Ok(EventsInspection {
            file: self.file.to_string_lossy().into_owned(),
            format: file.description(),
            events: source.len_entries(),
            mean_len_bytes: mean_len_bytes(source),
            products,
            unread: file.unread(),
        })
    }
}
