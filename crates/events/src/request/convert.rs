//! Conversion of files to another layout.

use super::selection::{OpenedInputs, warn_of, warn_of_bytes};
use super::{EntryRange, Resources, Selection};
use crate::convert::ConvertOptions;
use crate::error::{EventsError, Result};
use crate::formats::{OmittedProduct, WriteJob, WriteOptions, WrittenEvents, warn_of_filter, write};
use crate::sources::concat::ConcatSource;
use crate::sources::readable::{fault_of_ids, readable};
use raddle_columns::source::Source;
use raddle_core::output::check::check_output;
use raddle_core::output::publish::published_path;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to write the events of files in another layout.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_events::formats::{OutputLayout, WriteOptions};
/// use raddle_events::sources::generated::TestProducts;
/// use raddle_events::{ConvertRequest, Serialization, WriteRequest};
///
/// let folder = tempfile::tempdir()?;
/// let (stream, columns) = (folder.path().join("run1.pds"), folder.path().join("run1.h5"));
/// let (cancel, layout) = (CancelToken::new(), OutputLayout::Pds);
/// let watch = Watch { observer: &Silent, cancel: &cancel };
/// let write = WriteOptions { layout, ..WriteOptions::default() };
/// let source = TestProducts::new(100, Some(Serialization::Root));
/// WriteRequest { output: stream.clone(), write, ..WriteRequest::default() }.run(&source, &watch, &SingleProcess)?;
///
/// let request = ConvertRequest { inputs: vec![stream], output: columns, ..ConvertRequest::default() };
/// let written = request.run(&watch, &SingleProcess)?;
/// assert_eq!((written.layout, written.events), ("columns", 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConvertRequest {
    /// Paths of the inputs, in the order of their events. At least one.
    pub inputs: Vec<PathBuf>,
    /// File to write. It appears under this name only when it is complete.
    pub output: PathBuf,
    /// Whether to replace an existing output.
    pub force: bool,
    /// Range of events, counted from 0 over all inputs.
    pub entries: EntryRange,
    /// Whether to leave out products, and the ids of all events, that cannot be read. Everything is then read twice.
    pub skip_bad: bool,
    /// Selection from the inputs.
    #[serde(flatten)]
    pub selection: Selection,
    /// Layout of the output.
    #[serde(flatten)]
    pub write: WriteOptions,
    /// Threads and memory.
    #[serde(flatten)]
    pub resources: Resources,
}

impl ConvertRequest {
    /// Collective. Converts the inputs. Warns `watch` about everything that is left out.
    ///
    /// # Errors
    /// [`EventsError::Option`] names an option that is not valid. Otherwise an input cannot be read, the layout cannot
    /// hold a product, or the output exists or cannot be written.
    pub fn run(&self, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<WrittenEvents> {
        let opened = check_output(&self.output, &self.inputs, self.force)
            .map_err(EventsError::from)
            .and_then(|()| self.write.check_used())
            .and_then(|()| self.selection.open(&self.inputs, &self.write))
            .and_then(|opened| Ok((self.selection.matching_for(opened.source.as_ref(), &self.write)?, opened)));
        let (products, OpenedInputs { mut source, mut left_out, unread }) = ranks.agree("open the inputs", opened)?;
        warn_of(&left_out, watch);
        for text in unread {
            watch.warn(text);
        }
        if ranks.rank() == 0 && self.write.layout.holds_columns() && !self.selection.raw && !self.selection.whole {
            warn_of_bytes(&source.schema().select(&products), watch);
        }
        warn_of_filter(&self.write, watch, ranks);
        let mut convert = self.resources.options(ranks.size());
        convert.entries = Some(self.entries.of(source.len_entries()));
        if self.skip_bad {
            left_out.extend(self.bad_products(source.as_ref(), &products, &convert, watch, ranks)?);
            if let Some(ids) = self.bad_ids(source.as_ref(), &convert, watch, ranks)? {
                left_out.push(ids);
                source = Box::new(ranks.agree("leave out the ids", ConcatSource::without_ids(source))?);
            }
        }
        let source = source.as_ref();
        let is_readable = |product: &usize| {
            let name = &source.schema().products[*product].name;
            !left_out.iter().any(|left| left.product == *name)
        };
        convert.products = Some(products.into_iter().filter(is_readable).collect());
        let (output, convert) = (&published_path(&self.output), &convert);
        let job = WriteJob { source, output, replace: self.force, options: &self.write, convert, watch, ranks };
        Ok(WrittenEvents { left_out, ..write(&job)? })
    }

    /// Collective. Returns the products that cannot be read; each rank reads some of them.
    fn bad_products(
        &self,
        source: &dyn Source,
        products: &[usize],
        options: &ConvertOptions,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<OmittedProduct>> {
        let local: Vec<usize> = products.iter().skip(ranks.rank()).step_by(ranks.size()).copied().collect();
        let range = self.entries.of(source.len_entries());
        let found = readable(source, &local, range, options.batch_len_bytes, options.jobs, watch.cancel);
        let left_out = |(product, error): (usize, EventsError)| OmittedProduct {
            product: source.schema().products[product].name.clone(),
            reason: error.to_string(),
        };
        let found = ranks.agree("look for what cannot be read", found)?;
        let local: Vec<OmittedProduct> = found.bad.into_iter().map(left_out).collect();
        let mut all = ranks.all_gather_values("what cannot be read", &local)?.concat();
        all.sort_by_key(|left| source.schema().position(&left.product));
        warn_of(&all, watch);
        Ok(all)
    }

    /// Collective. Returns why the ids of all events are left out, if one of them cannot be read.
    fn bad_ids(
        &self,
        source: &dyn Source,
        options: &ConvertOptions,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Option<OmittedProduct>> {
        let range = self.entries.of(source.len_entries());
        let fault = match ranks.rank() {
            0 => fault_of_ids(source, range, options.batch_len_bytes, watch.cancel),
            _ => Ok(None),
        };
        let fault = ranks.agree("look for ids that cannot be read", fault)?;
        let left_out =
            |error: EventsError| OmittedProduct { product: "the ids of events".to_owned(), reason: error.to_string() };
        let local: Vec<OmittedProduct> = fault.map(left_out).into_iter().collect();
        let all = ranks.all_gather_values("ids that cannot be read", &local)?.concat();
        warn_of(&all, watch);
        Ok(all.into_iter().next())
    }
}
