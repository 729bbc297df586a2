//! HDF5 event files: opening and writing in every layout, and merging.
//!
//! Files of the framework's packed layouts are merged without decompressing their events. Files of all other layouts
//! are read, and their events are written to new chunks.

use super::{Batch, DEFAULT_BATCH, WriteOptions, WrittenEvents};
use super::{Compat, EventCodec, EventFile, Format, MergeJob, OpenOptions, OutputLayout, WriteJob};
use crate::convert::ConvertOptions;
use crate::error::Result;
use crate::hdf5::{
    CceOptions, CompressionChoice, FileLayout, Hdf5Options, Hdf5Sink, Hdf5Source, Hdf5Summary, Layout, StoredEvents,
};
use crate::sources::concat::ConcatSource;
use raddle_codec::{Compression, KnownFilter};
use raddle_columns::source::{Source, mean_len_bytes};
use raddle_hdf5::native::superblock::SIGNATURE;
use raddle_report::quantity;
use std::num::NonZeroU64;
use std::path::Path;

/// Format of HDF5 files.
pub(super) struct Hdf5Format;

impl Format for Hdf5Format {
    fn title(&self) -> &'static str {
        "an HDF5 file"
    }

    fn is_match(&self, first: &[u8]) -> bool {
        first == SIGNATURE
    }

    fn open(&self, path: &Path, _options: &OpenOptions) -> Result<Box<dyn EventFile>> {
        Ok(Box::new(Hdf5Source::open(path)?))
    }

    fn layouts(&self) -> &'static [OutputLayout] {
        &[OutputLayout::Columns, OutputLayout::Product, OutputLayout::Event, OutputLayout::Batch]
    }

    fn filter(&self, options: &WriteOptions) -> Option<KnownFilter> {
        options.compression().filter(|_| options.compat.is_none()).map(Compression::known_filter)
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<WrittenEvents> {
        let WriteJob { source, options, convert, .. } = *job;
        let layout = match options.layout {
            OutputLayout::Product => Layout::Product,
            OutputLayout::Event => Layout::Event,
            OutputLayout::Batch => Layout::Batch(options.batch.events(mean_len_bytes(source))),
            _ => Layout::Columns,
        };
        let entries = convert.entries.clone().unwrap_or(0..source.len_entries());
        let hdf5 = Hdf5Options {
            compress: options.compression(),
            chunk_len_bytes: options.chunk_len_bytes(),
            expected_len_bytes: source.batch_len_bytes(entries),
            cce: options.cce()?,
            with_ids: source.has_ids(),
            replace: job.replace,
        };
        let sink = Hdf5Sink::begin_collective(job.output, &job.schema(), layout, &hdf5, job.ranks)?;
        if hdf5.cce.is_some() {
            job.warn_of_counted_ids();
        }
        fill(job, sink, &ConvertOptions { unit_multiple: layout.unit_multiple(), ..convert.clone() })
    }

    fn merge(&self, job: &MergeJob<'_>) -> Result<Option<WrittenEvents>> {
        let inputs = job.agree("open the inputs", Inputs::open(job))?;
        let written = match inputs {
            Inputs::Stored(stored) => copy(job, &stored),
            Inputs::Sources(layout, sources) => {
                let options = options_of(layout, sources[0].len_entries(), job.options);
                let source = job.agree("join the inputs", ConcatSource::new(sources))?;
                super::warn_of_filter(&options, job.watch, job.ranks);
                self.write(&job.writing(&source, &options))
            }
        };
        written.map(Some)
    }
}

/// Collective. Passes the entries to `sink`, and reports on the file.
fn fill(job: &WriteJob<'_>, sink: Hdf5Sink, options: &ConvertOptions) -> Result<WrittenEvents> {
    let (mut converted, summary) = job.fill(sink, options)?;
    let Hdf5Summary { events, datasets, chunks, len_bytes, metadata_s, .. } = summary;
    converted.metadata_s = metadata_s;
    let report = job.report(events, len_bytes, converted);
    Ok(WrittenEvents { datasets: Some(datasets), chunks: Some(chunks), ..report })
}

/// Inputs of a merge.
enum Inputs {
    /// Files whose stored events are copied.
    Stored(Box<StoredEvents>),
    /// Files whose chunks are filled again, in the layout of the first.
    Sources(FileLayout, Vec<Box<dyn Source>>),
}

impl Inputs {
    fn open(job: &MergeJob<'_>) -> Result<Self> {
        let (mut files, mut others): (Vec<Hdf5Source>, Vec<Box<dyn Source>>) = (Vec::new(), Vec::new());
        for path in job.inputs {
            let (_, first) = super::open_first(path)?;
            match Hdf5Format.is_match(&first) && others.is_empty() {
                true => files.push(Hdf5Source::open(path)?),
                false => others.push(super::open_source(path, &OpenOptions::raw())?),
            }
        }
        let layout = files.first().map_or(FileLayout::Columns, Hdf5Source::layout);
        if others.is_empty() {
            match StoredEvents::join(files)? {
                Ok(stored) => return Ok(Self::Stored(Box::new(stored))),
                Err(unjoined) => files = unjoined,
            }
        }
        let files = files.into_iter().map(|file| Box::new(file) as Box<dyn Source>);
        Ok(Self::Sources(layout, files.chain(others).collect()))
    }
}

/// Collective. Copies the stored events.
fn copy(job: &MergeJob<'_>, stored: &StoredEvents) -> Result<WrittenEvents> {
    let source = stored.source();
    let options = Hdf5Options {
        chunk_len_bytes: job.options.chunk_len_bytes(),
        expected_len_bytes: source.batch_len_bytes(0..source.len_entries()),
        replace: job.replace,
        ..Hdf5Options::default()
    };
    let sink = Hdf5Sink::begin_stored_collective(job.output, stored, &options, job.ranks)?;
    let written = fill(&job.writing(source, job.options), sink, job.convert)?;
    Ok(WrittenEvents { layout: stored.layout_name(), products: stored.len_products() as u64, ..written })
}

/// Returns the options that reproduce the layout of a file with this number of entries.
fn options_of(layout: FileLayout, entries: u64, requested: &WriteOptions) -> WriteOptions {
    let (layout, batches, cce) = match layout {
        FileLayout::Columns => (OutputLayout::Columns, None, None),
        FileLayout::Product => (OutputLayout::Product, None, None),
        FileLayout::Event => (OutputLayout::Event, None, None),
        FileLayout::Batch(batches) => (OutputLayout::Batch, Some(batches), None),
        FileLayout::FrameworkProduct => (OutputLayout::Product, None, Some(None)),
        FileLayout::FrameworkEvent(cce) => (OutputLayout::Event, None, Some(Some(cce))),
        FileLayout::FrameworkBatch(cce) => (OutputLayout::Batch, None, Some(Some(cce))),
    };
    // The mean length of the first file's batches, without its last batch.
    let batch_of =
        |batches: u64| Batch::Events(NonZeroU64::new(entries.div_ceil(batches.max(1))).unwrap_or(NonZeroU64::MIN));
    WriteOptions {
        layout,
        batch: batches.map_or(DEFAULT_BATCH, batch_of),
        compress: Some(requested.compress.unwrap_or_default()),
        chunk: requested.chunk,
        compat: cce.map(|_| Compat::Cce),
        codec: cce.flatten().map(|cce| cce.codec.into()),
        choice: cce.flatten().map_or(CompressionChoice::default(), |cce| cce.choice),
        serialize: None,
    }
}

impl EventFile for Hdf5Source {
    fn description(&self) -> String {
        match self.layout() {
            FileLayout::Columns => "HDF5, columns".to_owned(),
            FileLayout::Product => "HDF5, product layout".to_owned(),
            FileLayout::Event => "HDF5, event layout".to_owned(),
            FileLayout::Batch(count) => format!("HDF5, batch layout, {}", quantity::counted(count, "batch")),
            FileLayout::FrameworkProduct => "HDF5, product layout of HEP-CCE".to_owned(),
            FileLayout::FrameworkEvent(cce) => {
                format!("HDF5, event layout of HEP-CCE, compression {}", EventCodec::from(cce.codec))
            }
            FileLayout::FrameworkBatch(cce) => {
                format!("HDF5, batch layout of HEP-CCE, compression {}", compression_of(cce))
            }
        }
    }
}

fn compression_of(CceOptions { codec, choice }: CceOptions) -> String {
    let codec = EventCodec::from(codec);
    match choice {
        CompressionChoice::None => "none".to_owned(),
        CompressionChoice::Events => format!("{codec} of events"),
        CompressionChoice::Batch => format!("{codec} of batches"),
        CompressionChoice::Both => format!("{codec} of events and of batches"),
    }
}
