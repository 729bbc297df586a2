//! Measurement of how fast events are written in each layout, in the same way as the HEP-CCE framework's test of its
//! outputters.

use super::{ConvertOptions, Resources};
use crate::convert::ConversionReport;
use crate::convert::ranks::convert_collective;
use crate::error::{EventsError, Result};
use crate::formats::{Batch, Compat, EventCodec, EventCompression, OpenOptions, OutputLayout};
use crate::formats::{WriteJob, WriteOptions, open_source, write};
use crate::pds::PdsCodec;
use crate::sinks::NullSink;
use crate::sources::generated::{
    CyclicSource, Empty, RandomOptions, RandomProducts, SizeLaw, TestProducts, ThrottledSource, parse_event_times,
};
use crate::sources::serializing::SerializingSource;
use raddle_columns::error::ColumnsError;
use raddle_columns::schema::Serialization;
use raddle_columns::source::Source;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Silent, Watch};
use raddle_core::size::Size;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Request to measure the writing of events.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_events::BenchRequest;
///
/// let request = BenchRequest { events: 50, sinks: vec!["null".parse()?, "cce-batch".parse()?], ..BenchRequest::default() };
/// let cancel = CancelToken::new();
/// let measured = request.run(&Watch { observer: &Silent, cancel: &cancel }, &SingleProcess)?;
/// assert_eq!(measured.len(), request.sinks.len() * request.threads.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BenchRequest {
    /// Source of events: `random`, `test`, `empty`, or a file whose first events are repeated from memory.
    pub source: String,
    /// Number of events.
    pub events: u64,
    /// Number of products of random events.
    pub products: usize,
    /// Mean length of random products, which are exponentially distributed.
    pub product_size: Size,
    /// Number of events that are kept in memory and repeated.
    pub repeat: u64,
    /// Formats to measure.
    pub sinks: Vec<BenchSink>,
    /// Numbers of threads to measure with.
    pub threads: Vec<NonZeroUsize>,
    /// Number of interleaved repetitions; the result is the round with the median time.
    pub rounds: NonZeroUsize,
    /// Time to wait for each event, in microseconds.
    pub wait_event: u64,
    /// File with the time to wait for each event: numbers of microseconds separated by white space, repeated from the
    /// first when all are used.
    pub wait_file: Option<PathBuf>,
    /// Time to wait for each byte, in nanoseconds.
    pub wait_byte: u64,
    /// Length of a batch.
    pub batch: Batch,
    /// HDF5 compression.
    pub compress: EventCompression,
    /// Compression of packed data streams, RNTuples and the framework's layouts.
    pub codec: EventCodec,
    /// Folder for the files, which are removed afterwards; the folder of temporary files if `None`.
    pub folder: Option<PathBuf>,
    /// Memory for buffers; 1 GiB if `None`.
    pub memory: Option<Size>,
}

impl Default for BenchRequest {
    fn default() -> Self {
        Self {
            source: "random".to_owned(),
            events: 10_000,
            products: 21,
            product_size: Size(286),
            repeat: 200,
            sinks: BenchSink::DEFAULT.to_vec(),
            threads: vec![NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(1)],
            rounds: NonZeroUsize::MIN.saturating_add(2),
            wait_event: 0,
            wait_file: None,
            wait_byte: 0,
            batch: Batch::default(),
            compress: EventCompression::default(),
            codec: PdsCodec::Zstd(3).into(),
            folder: None,
            memory: None,
        }
    }
}

/// Output of a measurement: `null`, the name of a layout, or `cce-` and the name of a layout of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BenchSink {
    /// Nothing: events are only read.
    Null,
    /// A file.
    File(OutputLayout, Option<Compat>),
}

impl BenchSink {
    /// Outputs that are measured by default.
    pub const DEFAULT: [Self; 6] = [
        Self::Null,
        Self::File(OutputLayout::Columns, None),
        Self::File(OutputLayout::Product, None),
        Self::File(OutputLayout::Event, None),
        Self::File(OutputLayout::Batch, None),
        Self::File(OutputLayout::Pds, None),
    ];

    /// Returns everything that can be measured.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = OutputLayout::ALL.into_iter().map(|layout| Self::File(layout, None));
        let of_framework = OutputLayout::ALL.into_iter().filter(|layout| layout.has_compat());
        [Self::Null].into_iter().chain(plain).chain(of_framework.map(|layout| Self::File(layout, Some(Compat::Cce))))
    }

    /// Returns the options of the file, with everything but layout and form from `options`; `None` if nothing is
    /// written.
    pub fn options(self, options: &WriteOptions) -> Option<WriteOptions> {
        match self {
            Self::Null => None,
            Self::File(layout, compat) => Some(WriteOptions { layout, compat, ..*options }),
        }
    }
}

impl fmt::Display for BenchSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::File(layout, None) => write!(f, "{layout}"),
            Self::File(layout, Some(Compat::Cce)) => write!(f, "cce-{layout}"),
        }
    }
}

/// Error for the name of something that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchSinkError(String);

impl fmt::Display for BenchSinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = BenchSink::all().map(|sink| sink.to_string()).collect();
        write!(
            f,
            "{:?} is not a format of events that can be measured; available formats are {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for BenchSinkError {}

impl FromStr for BenchSink {
    type Err = BenchSinkError;

    fn from_str(text: &str) -> Result<Self, BenchSinkError> {
        Self::all().find(|sink| sink.to_string() == text).ok_or_else(|| BenchSinkError(text.to_owned()))
    }
}

raddle_core::serde_as_text!(BenchSink);

/// One measured conversion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredConversion {
    /// Name of the output.
    pub sink: String,
    /// Number of ranks that shared the events.
    pub number_of_ranks: usize,
    /// Number of threads of each rank.
    pub threads: usize,
    /// Length of the file.
    pub len_bytes: u64,
    /// Figures of the round with the median time.
    #[serde(flatten)]
    pub converted: ConversionReport,
}

impl BenchRequest {
    /// Collective. Measures every sink with every number of threads.
    ///
    /// # Errors
    /// If the source cannot be read, or a file cannot be written.
    pub fn run(&self, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Vec<MeasuredConversion>> {
        let folder = ScratchFolder::create_collective(self.folder.as_deref(), ranks)?;
        let source = ranks.agree("open the source", self.source())?;
        let cases = || self.threads.iter().flat_map(|threads| self.sinks.iter().map(move |sink| (*sink, *threads)));
        let mut rounds: Vec<Vec<MeasuredConversion>> = cases().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds.get() {
            for ((sink, threads), measured) in cases().zip(&mut rounds) {
                measured.push(self.measure(sink, threads, source.as_ref(), &folder.path, watch, ranks)?);
            }
        }
        Ok(rounds.into_iter().filter_map(median).collect())
    }

    /// Opens or generates the events, which wait as requested.
    fn source(&self) -> Result<Box<dyn Source>> {
        let recorded = self.wait_file.as_deref().map(recorded_times).transpose()?.unwrap_or_default();
        let (event, byte) = (Duration::from_micros(self.wait_event), Duration::from_nanos(self.wait_byte));
        let source = self.events()?;
        Ok(match event.is_zero() && byte.is_zero() && recorded.is_empty() {
            true => source,
            false => Box::new(ThrottledSource::new(source, event, byte).as_recorded(recorded)),
        })
    }

    fn events(&self) -> Result<Box<dyn Source>> {
        let events = self.events;
        let source: Box<dyn Source> = match self.source.as_str() {
            "random" => Box::new(RandomProducts::new(RandomOptions {
                len_entries: events,
                products: self.products,
                size: SizeLaw::Exponential { mean_len_bytes: self.product_size.0 },
                seed: 1,
            })),
            "test" => Box::new(TestProducts::new(events, Some(Serialization::Root))),
            "empty" => Box::new(Empty::new(events)),
            path => {
                let opened = open_source(Path::new(path), &OpenOptions::raw())?;
                let source = SerializingSource::new(opened, Serialization::Root);
                return Ok(Box::new(CyclicSource::new(&source, self.repeat, events)?));
            }
        };
        // Kept in memory, so that generating events is not measured.
        Ok(Box::new(CyclicSource::new(source.as_ref(), self.repeat.min(events), events)?))
    }

    /// Collective. Measures one conversion.
    fn measure(
        &self,
        sink: BenchSink,
        threads: NonZeroUsize,
        source: &dyn Source,
        folder: &Path,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<MeasuredConversion> {
        let convert = &Resources { jobs: Some(threads), memory: self.memory }.options(ranks.size());
        let (batch, compress, codec) = (self.batch, Some(self.compress), Some(self.codec));
        let options = sink.options(&WriteOptions { batch, compress, codec, ..WriteOptions::default() });
        // Progress bars would only flicker for many short conversions.
        let watch = &Watch { observer: &Silent, cancel: watch.cancel };
        let (len_bytes, converted) = match &options {
            None => (0, read(source, convert, watch, ranks)?),
            Some(options) => {
                let output = &folder.join("events");
                let job = WriteJob { source, output, replace: true, options, convert, watch, ranks };
                let written = write(&job)?;
                (written.len_bytes, written.converted)
            }
        };
        let (number_of_ranks, threads) = (ranks.size(), threads.get());
        Ok(MeasuredConversion { sink: sink.to_string(), number_of_ranks, threads, len_bytes, converted })
    }
}

/// Collective. Reads all events and writes nothing.
fn read(
    source: &dyn Source,
    options: &ConvertOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<ConversionReport> {
    let sink = NullSink::default();
    convert_collective(source, sink, options, watch.observer, watch.cancel, ranks).map(|(converted, _)| converted)
}

/// Folder of the measured files, created and removed by the first rank.
struct ScratchFolder {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl ScratchFolder {
    /// Collective. Creates a folder in `parent`, or in the folder of temporary files.
    fn create_collective(parent: Option<&Path>, ranks: &dyn Communicator) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let created = match ranks.rank() {
            0 => tempfile::tempdir_in(&parent).map(Some).map_err(|source| ColumnsError::Io {
                path: parent,
                operation: "create a folder in it",
                source,
            }),
            _ => Ok(None),
        };
        let folder = ranks.agree("create a folder", created)?;
        let path = folder.as_ref().map_or(&[][..], |folder| folder.path().as_os_str().as_bytes());
        let path = PathBuf::from(OsString::from_vec(ranks.broadcast(0, path)?));
        Ok(Self { path, _folder: folder })
    }
}

/// Reads the event times from a file.
fn recorded_times(path: &Path) -> Result<Vec<Duration>> {
    let path = path.to_path_buf();
    match std::fs::read_to_string(&path) {
        Ok(text) => parse_event_times(&text).map_err(|source| EventsError::Times { path, source }),
        Err(source) => Err(ColumnsError::Io { path, operation: "read", source }.into()),
    }
}

/// Returns the round with the median time.
fn median(mut rounds: Vec<MeasuredConversion>) -> Option<MeasuredConversion> {
    rounds.sort_by(|a, b| a.converted.elapsed_s.total_cmp(&b.converted.elapsed_s));
    let middle = rounds.len() / 2;
    (!rounds.is_empty()).then(|| rounds.swap_remove(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sinks_are_read_back() {
        let names: Vec<String> = BenchSink::all().map(|sink| sink.to_string()).collect();
        assert_eq!(names.len(), 10);
        for name in &names {
            assert_eq!(name.parse::<BenchSink>().unwrap().to_string(), *name);
        }
        for name in ["cce-columns", "cce-pds", "cce-null", "rows", ""] {
            let refused = name.parse::<BenchSink>().unwrap_err().to_string();
            assert!(refused.contains("cce-batch"), "{refused}");
        }
    }
}
