//! Opening inputs and writing an output of events, shared by several subcommands.

use crate::failure::Failure;
use crate::options::events::{EventLayout, EventLayoutArgs, SelectionArgs, Serialized as Wanted};
use crate::options::running::RuntimeArgs;
use crate::render::escape;
use raddle::options::compression::readers_need;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Event, Severity};
use raddle_events::hdf5::{Hdf5Options, Hdf5Sink, Hdf5Summary};
use raddle_events::pds::{PdsOptions, PdsSink};
use raddle_events::root::{CLUSTER_LEN_BYTES, NtupleOptions, NtupleSink, renamed};
use raddle_events::sources::open::{OpenOptions, OpenedSource, open};
use raddle_events::{
    ConcatSource, ConvertOptions, Converted, DecodingSource, EventsError, ProductGlobs, Schema, Serialization,
    SerializingSource, Source, convert_collective,
};
use raddle_merge::options::Watch;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

/// Summary of a written file, for the report and the terminal.
#[derive(Debug, Clone, Serialize)]
pub struct WrittenEvents {
    /// Path of the file.
    pub output: PathBuf,
    /// Layout of the file.
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
    pub left_out: Vec<LeftOut>,
    /// Totals of the conversion.
    #[serde(flatten)]
    pub converted: Converted,
}

/// A product that was left out because it could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeftOut {
    /// Name of the product.
    pub product: String,
    /// Reason.
    pub reason: String,
}

/// Opens the inputs as one source, with products in the form that the layout accepts. Also returns the products left
/// out because not all inputs have them.
pub fn open_all(
    inputs: &[PathBuf],
    selection: &SelectionArgs,
    layout: &EventLayoutArgs,
) -> Result<(Box<dyn Source>, Vec<LeftOut>), EventsError> {
    let is_columns = layout.takes_columns();
    let options =
        OpenOptions { tree: selection.tree.clone(), raw: selection.raw || !is_columns, whole: selection.whole };
    let open_one = |path: &PathBuf| open(path, &options).map(OpenedSource::into_source);
    let sources = inputs.iter().map(open_one).collect::<Result<Vec<_>, _>>()?;
    // Before they are joined, because inputs must agree on how products are read, not on how each file stores them.
    let mut sources = as_taken(sources, selection, layout);
    if sources.len() == 1 {
        return Ok((sources.remove(0), Vec::new()));
    }
    // Invalid patterns, and patterns that match nothing, are reported when products are chosen.
    let globs = ProductGlobs::new(&selection.products).ok().filter(|globs| {
        sources.iter().flat_map(|source| &source.schema().products).any(|product| globs.is_match(&product.name))
    });
    let is_wanted = |name: &str| globs.as_ref().is_none_or(|globs| globs.is_match(name));
    let joined = ConcatSource::of(sources, is_wanted, selection.differing.into())?;
    let left_out =
        |(product, error): &(String, EventsError)| LeftOut { product: product.clone(), reason: error.to_string() };
    let left_out = joined.left_out().iter().map(left_out).collect();
    Ok((Box::new(joined), left_out))
}

/// Converts sources so that their products have the form that the layout accepts.
fn as_taken(
    sources: Vec<Box<dyn Source>>,
    selection: &SelectionArgs,
    layout: &EventLayoutArgs,
) -> Vec<Box<dyn Source>> {
    if layout.takes_columns() {
        return match selection.raw {
            true => sources,
            false => sources.into_iter().map(|source| DecodingSource::new(source).into_source()).collect(),
        };
    }
    let has_baskets = sources.iter().any(|source| has_baskets(source.schema()));
    let wanted = match layout.serialize {
        Some(Wanted::Root) => Some(Serialization::Root),
        Some(Wanted::Unrolled) => Some(Serialization::Unrolled),
        // The framework's product layout does not record the serialization; its other formats have no bytes of
        // branches.
        None if layout.compat.is_some() && layout.layout == EventLayout::Product => Some(Serialization::Root),
        None if (layout.compat.is_some() || layout.layout == EventLayout::Pds) && has_baskets => {
            Some(Serialization::Root)
        }
        None => None,
    };
    match wanted {
        Some(wanted) => {
            sources.into_iter().map(|source| SerializingSource::new(source, wanted).into_source()).collect()
        }
        None => sources,
    }
}

fn has_baskets(schema: &Schema) -> bool {
    let basket = raddle_events::Form::Blob(Serialization::Basket);
    schema.products.iter().any(|product| product.form == basket)
}

/// Returns the threads and memory of a conversion on a machine with `cores` cores.
pub fn convert_options(running: &RuntimeArgs, cores: usize) -> ConvertOptions {
    let mut options = ConvertOptions {
        jobs: running.execution.jobs.or_else(|| NonZeroUsize::new(cores)).unwrap_or(NonZeroUsize::MIN),
        ..ConvertOptions::default()
    };
    if let Some(memory) = running.execution.memory {
        options.memory_len_bytes = memory.0;
    }
    options
}

/// Returns the numbers of the selected products. The framework's formats store event ids separately, so a product that
/// holds only ids is left out, unless it is the only one selected.
pub fn chosen(source: &dyn Source, globs: &[String], layout: &EventLayoutArgs) -> Result<Vec<usize>, Failure> {
    let schema = source.schema();
    let mut chosen = schema.matching(globs).map_err(|error| Failure::usage(&format!("--products: {error}")))?;
    if chosen.is_empty() && !globs.is_empty() {
        return Err(no_such_product(source, globs));
    }
    let is_of_framework = layout.compat.is_some() || layout.layout == EventLayout::Pds;
    if let Some(ids) = source.id_product().filter(|_| is_of_framework && chosen.len() > 1) {
        chosen.retain(|product| *product != ids);
    }
    Ok(chosen)
}

/// Creates the failure for patterns that match no product.
pub fn no_such_product(source: &dyn Source, globs: &[String]) -> Failure {
    let error = EventsError::NoSuch {
        place: source.place().branch(&globs.join(" ")).into(),
        kind: "product",
        available: source.schema().products.iter().map(|product| product.name.clone()).collect(),
    };
    Failure::of_events(&error, None).hint("name some of these with --products, or use globs such as 'Muon_*'")
}

/// Returns the mean length of an event in memory.
pub fn mean_len_bytes(source: &dyn Source) -> u64 {
    let entries = source.len_entries();
    source.batch_len_bytes(0..entries) / entries.max(1)
}

/// Warns about filters that readers of the output may lack.
pub fn print_needs(layout: &EventLayoutArgs, watch: &Watch<'_>, ranks: &dyn Communicator) {
    let is_hdf5 = !matches!(layout.layout, EventLayout::Pds | EventLayout::Rntuple);
    let is_filtered = is_hdf5 && layout.compat.is_none() && ranks.rank() == 0;
    if let (true, Ok(compression)) = (is_filtered, layout.compression())
        && let Some(text) = readers_need(compression)
    {
        watch.observer.event(&Event::Message { severity: Severity::Warning, text });
    }
}

/// Warns about products that have different names in an RNTuple.
fn print_renamed(schema: &Schema, watch: &Watch<'_>, ranks: &dyn Communicator) {
    if ranks.rank() > 0 {
        return;
    }
    for (product, stored) in renamed(schema) {
        let text = match product == stored {
            true => {
                format!("{}: '_' replaces characters that RNTuples do not permit in names of fields", shown(&product))
            }
            false => format!(
                "{} is written as {}: RNTuples do not permit all characters in names",
                shown(&product),
                shown(&stored)
            ),
        };
        watch.observer.event(&Event::Message { severity: Severity::Warning, text });
    }
}

/// Collective. Writes products of `source` to `path`.
pub fn write(
    source: &dyn Source,
    path: &Path,
    force: bool,
    layout: &EventLayoutArgs,
    mut options: ConvertOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<WrittenEvents, Failure> {
    let failed = |error: EventsError| Failure::of_events(&error, Some(path));
    // Every rank reads the profile: the output is on a file system that all of them see anyway.
    let layout = &ranks.agree("read the profile", layout.with_profile(path))?;
    let all: Vec<usize> = (0..source.schema().products.len()).collect();
    let schema = source.schema().select(options.products.as_deref().unwrap_or(&all));
    let batch: NonZeroU64 = layout.batch.events(mean_len_bytes(source));
    let without_datasets = |events, len_bytes| Hdf5Summary {
        events,
        datasets: 0,
        chunks: 0,
        raw_len_bytes: 0,
        stored_len_bytes: len_bytes,
        len_bytes,
        metadata_s: 0.0,
    };
    let (mut converted, summary) = match layout.hdf5_layout(batch) {
        None if layout.layout == EventLayout::Rntuple => {
            let ntuple = NtupleOptions {
                codec: layout.ntuple_codec(),
                with_ids: source.has_ids(),
                replace: force,
                ..NtupleOptions::default()
            };
            options.batch_len_bytes = CLUSTER_LEN_BYTES;
            print_renamed(&schema, watch, ranks);
            let sink = NtupleSink::begin_collective(path, &schema, ntuple, ranks).map_err(failed)?;
            let (converted, summary) =
                convert_collective(source, sink, &options, watch.observer, watch.cancel, ranks).map_err(failed)?;
            (converted, without_datasets(summary.events, summary.len_bytes))
        }
        None => {
            let pds = PdsOptions { codec: layout.framework_codec()?, replace: force };
            let sink = PdsSink::begin_collective(path, &schema, pds, ranks).map_err(failed)?;
            let (converted, summary) =
                convert_collective(source, sink, &options, watch.observer, watch.cancel, ranks).map_err(failed)?;
            (converted, without_datasets(summary.events, summary.len_bytes))
        }
        Some(hdf5_layout) => {
            let entries = options.entries.clone().unwrap_or(0..source.len_entries());
            let hdf5 = Hdf5Options {
                compress: layout.compression()?,
                chunk_len_bytes: layout.chunk.and_then(|size| NonZeroU64::new(size.0)),
                expected_len_bytes: source.batch_len_bytes(entries),
                cce: layout.cce()?,
                replace: force,
            };
            options.unit_multiple = hdf5_layout.unit_multiple();
            let sink = Hdf5Sink::begin_collective(path, &schema, hdf5_layout, &hdf5, ranks).map_err(failed)?;
            convert_collective(source, sink, &options, watch.observer, watch.cancel, ranks).map_err(failed)?
        }
    };
    converted.metadata_s = summary.metadata_s;
    let (name, is_hdf5) = match (layout.layout, layout.hdf5_layout(batch)) {
        (_, Some(layout)) => (layout.name(), true),
        (EventLayout::Rntuple, None) => ("rntuple", false),
        (_, None) => ("pds", false),
    };
    Ok(WrittenEvents {
        output: path.to_path_buf(),
        layout: name,
        events: summary.events,
        products: schema.products.len() as u64,
        len_bytes: summary.len_bytes,
        datasets: is_hdf5.then_some(summary.datasets),
        chunks: is_hdf5.then_some(summary.chunks),
        left_out: Vec::new(),
        converted,
    })
}

/// Formats the name of a product for messages.
pub fn shown(name: &str) -> String {
    escape::text(name).into_owned()
}
