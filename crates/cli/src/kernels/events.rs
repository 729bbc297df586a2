//! Generated events written in one format, in the same way as in the HEP-CCE test framework's measurements of
//! outputters.

use super::{KernelOutput, Work, values};
use crate::exit::Exit;
use crate::options::size::Size;
use raddle::Error;
use raddle::tuned::events::gzip;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::shares::even_share;
use raddle_core::report::progress::{Silent, Watch};
use raddle_events::formats::{Batch, OpenOptions, WriteJob, WriteOptions, open_source, write};
use raddle_events::pds::PdsCodec;
use raddle_events::request::BenchSink;
use raddle_events::sinks::NullSink;
use raddle_events::sources::generated::{CyclicSource, RandomOptions, RandomProducts, SizeLaw};
use raddle_events::{Block, ColumnsError, ConversionReport, ConvertOptions, RangeReader, Source, convert};
use raddle_tune::events::Events;
use raddle_tune::worker::Request;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Zstandard level of everything except HDF5: the fastest that compresses about as well as gzip 6.
const ZSTD_LEVEL: i32 = 3;

/// Number of entries compared at once.
const COMPARED_ENTRIES: u64 = 1000;

/// Conversion of generated events by one process: their source, and the file to write.
pub(super) struct EventsWork {
    source: Box<dyn Source>,
    /// Options of the file; `None` if nothing is written.
    options: Option<WriteOptions>,
    path: PathBuf,
    threads: NonZeroUsize,
}

impl EventsWork {
    /// Generates the events.
    ///
    /// # Errors
    /// If the format is unknown.
    pub(super) fn new(events: &Events, request: &Request, folder: &Path) -> Result<Self, Error> {
        let failed = |error| Error::of_events(&error, None);
        let seed = values::bytes(&[request.seed], 8).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let products = RandomProducts::new(RandomOptions {
            len_entries: events.events,
            products: usize::try_from(events.products).unwrap_or(usize::MAX),
            size: SizeLaw::Exponential { mean_len_bytes: events.product_len_bytes },
            seed,
        });
        // Held in memory, so that generating events is not measured.
        let source = CyclicSource::new(&products, events.kept.min(events.events), events.events)
            .map_err(|error| failed(error.into()))?;
        let options = WriteOptions {
            batch: Batch::Events(NonZeroU64::new(events.batch).unwrap_or(NonZeroU64::MIN)),
            compress: Some(gzip(events.gzip)),
            chunk: Some(Size(events.chunk_len_bytes)),
            codec: Some(match events.gzip {
                0 => PdsCodec::None.into(),
                _ => PdsCodec::Zstd(ZSTD_LEVEL).into(),
            }),
            ..WriteOptions::default()
        };
        let sink: BenchSink = events.format.parse().map_err(|error| Error::usage(&format!("{error}")))?;
        Ok(Self {
            source: Box::new(source),
            options: sink.options(&options),
            path: folder.join("events"),
            threads: usize::try_from(events.threads).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN),
        })
    }
}

impl EventsWork {
    /// Returns whether the products of two blocks have the same bytes. Packed data streams pad products to whole words.
    fn are_equal(&self, expected: &Block, actual: &Block) -> bool {
        let padding_len_bytes = self.options.map_or(1, |options| options.layout.padding_len_bytes());
        let len_of = |len: usize| len.next_multiple_of(padding_len_bytes);
        let of_entry = |(offsets, bytes): (&[u64], &'_ [u8]), at: usize| -> Option<Vec<u8>> {
            Some(bytes.get(*offsets.get(at)? as usize..*offsets.get(at + 1)? as usize)?.to_vec())
        };
        expected.columns.len() == actual.columns.len()
            && expected.columns.iter().zip(&actual.columns).all(|(expected, actual)| {
                let (Some(expected), Some(actual)) = (expected.as_bytes(), actual.as_bytes()) else { return false };
                expected.0.len() == actual.0.len()
                    && (0..expected.0.len() - 1).all(|at| {
                        let Some(mut wanted) = of_entry(expected, at) else { return false };
                        wanted.resize(len_of(wanted.len()), 0);
                        of_entry(actual, at) == Some(wanted)
                    })
            })
    }
}

impl Work for EventsWork {
    fn write(&self, ranks: &dyn Communicator) -> Result<KernelOutput, Error> {
        let cancel = CancelToken::new();
        let watch = Watch { observer: &Silent, cancel: &cancel };
        let convert_options = &ConvertOptions { jobs: self.threads, ..ConvertOptions::default() };
        let source = self.source.as_ref();
        let converted = match &self.options {
            None => {
                convert(source, NullSink::default(), convert_options, &Silent, &cancel).map(|(converted, _)| converted)
            }
            Some(options) => {
                let (output, convert) = (&self.path, convert_options);
                let job = WriteJob { source, output, replace: false, options, convert, watch: &watch, ranks };
                write(&job).map(|written| written.converted)
            }
        };
        let converted = converted.map_err(|error| Error::of_events(&error, Some(&self.path)))?;
        let mut written = KernelOutput {
            len_bytes: self.source.batch_len_bytes(0..self.source.len_entries()),
            ..KernelOutput::default()
        };
        let ConversionReport { read_s, prepare_s, encode_s, commit_s, metadata_s, .. } = converted;
        // Sums over the threads of all processes.
        let steps = [("read_s", read_s), ("prepare_s", prepare_s), ("encode_s", encode_s), ("write_s", commit_s)];
        steps.into_iter().chain([("metadata_s", metadata_s)]).for_each(|(name, seconds)| written.count(name, seconds));
        Ok(written)
    }

    fn check(&self, ranks: &dyn Communicator) -> Result<(), Error> {
        if self.options.is_none() {
            return Ok(());
        }
        let failed = |error| Error::of_events(&error, None);
        let unread = |error: ColumnsError| failed(error.into());
        let found = open_source(&self.path, &OpenOptions::raw()).map_err(failed)?;
        let differs = |what: &str| {
            Error::new(Exit::Internal, &format!("{}: {what} differ from what was written", self.path.display()))
        };
        let (schema, events) = (self.source.schema(), self.source.len_entries());
        if found.len_entries() != events {
            return Err(differs("numbers of events"));
        }
        let places = schema.products.iter().map(|product| found.schema().position(&product.name));
        let places: Vec<usize> = places.collect::<Option<_>>().ok_or_else(|| differs("names of products"))?;
        let all: Vec<usize> = (0..places.len()).collect();
        let mut source_reader: Box<dyn RangeReader> = self.source.reader(&all).map_err(unread)?;
        let mut file_reader: Box<dyn RangeReader> = found.reader(&places).map_err(unread)?;
        // Each process compares its share.
        let Range { start: mut at, end } = even_share(events, ranks.rank() as u64, ranks.size() as u64);
        while at < end {
            let next = (at + COMPARED_ENTRIES).min(end);
            let (expected, actual) =
                (source_reader.read(at..next).map_err(unread)?, file_reader.read(at..next).map_err(unread)?);
            if (found.has_ids() && expected.ids != actual.ids) || !self.are_equal(&expected, &actual) {
                return Err(differs(&format!("events {at} to {next}")));
            }
            at = next;
        }
        Ok(())
    }
}
