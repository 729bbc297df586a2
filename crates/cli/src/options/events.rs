//! Options for events: selection of products and inputs, and layout of the output.

use super::size::{Size, SizeError};
use crate::failure::Failure;
use raddle::options::ProfileChoice;
use raddle::options::compression;
use raddle_codec::Effort;
use raddle_events::MismatchPolicy;
use raddle_events::hdf5::{CceOptions, CompressionChoice, Layout};
use raddle_events::pds::PdsCodec;
use raddle_events::root::{NtupleOptions, RootCodec};
use raddle_merge::options::Compress;
use raddle_tune::knob::{Knob, Value};
use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;
use std::str::FromStr;

/// Selection from the inputs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct SelectionArgs {
    /// Tree or RNTuple of ROOT files, for example Events or 'folder/Events;1', the first cycle [default: Events, or the
    /// only one]
    #[arg(long, value_name = "NAME")]
    pub tree: Option<String>,

    /// Products whose names match, for example 'Muon_*'; may be given several times [default: all]
    #[arg(long, value_name = "GLOB")]
    pub products: Vec<String>,

    /// Treat products as the stored bytes instead of columns
    #[arg(long)]
    pub raw: bool,

    /// Read objects of ROOT trees as the bytes of whole objects, even if they are split into branches
    ///
    /// Each top-level branch becomes a product, object by object as ROOT's TBufferFile writes it. --layout pds and
    /// --compat cce hold such products.
    #[arg(long, conflicts_with = "raw")]
    pub whole: bool,

    /// What to do with products that some inputs lack or have in a different form
    #[arg(long, value_name = "WHAT", default_value = "refuse")]
    pub differing: DifferingProducts,
}

/// Treatment of products that some inputs lack or have in a different form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DifferingProducts {
    /// Name the first one and write nothing
    Refuse,
    /// Leave them out; the run then ends with exit code 4
    LeaveOut,
    /// Write zeros and empty lists for events of inputs without them
    Fill,
}

impl From<DifferingProducts> for MismatchPolicy {
    fn from(what: DifferingProducts) -> Self {
        match what {
            DifferingProducts::Refuse => Self::Refuse,
            DifferingProducts::LeaveOut => Self::LeaveOut,
            DifferingProducts::Fill => Self::Fill,
        }
    }
}

/// Layout of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EventLayout {
    /// HDF5: a flat array for each leaf, and offsets for each level of lists
    Columns,
    /// HDF5: the bytes of each product separately
    Product,
    /// HDF5: the bytes of each event together
    Event,
    /// HDF5: the bytes of many events together
    Batch,
    /// A packed data stream, as written by the HEP-CCE framework
    Pds,
    /// A ROOT file with an RNTuple named Events, with a field for each product
    Rntuple,
}

/// Program whose form the layouts of bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EventForm {
    /// That of the HEP-CCE framework, identical in every dataset and attribute
    Cce,
}

/// Data that the framework compresses in its batch layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// Nothing
    None,
    /// Each event
    Events,
    /// Each batch
    Batch,
    /// Each event, and then each batch
    Both,
}

/// Serialization of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Serialized {
    /// As ROOT does
    Root,
    /// Member after member, without byte counts
    Unrolled,
}

/// Options of the output layout.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Layout")]
pub struct EventLayoutArgs {
    /// Layout of the output
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = EventLayout::Columns)]
    pub layout: EventLayout,

    /// Length of a batch: a number of events, or a size such as 4MiB of products
    #[arg(long, value_name = "N|SIZE", default_value_t = Batch::Events(NonZeroU64::MIN.saturating_add(99)))]
    pub batch: Batch,

    /// Compression of HDF5.
    #[arg(short = 'c', long, value_name = "HOW", help = format!("{} [default: balanced]", compression::EVENTS_HELP))]
    pub compress: Option<Compress>,

    /// Length of an HDF5 chunk before compression [default: 1MiB, less for thousands of datasets]
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<Size>,

    /// Write the product, event and batch layouts in the form of another program
    #[arg(long, value_name = "WHOSE", value_enum)]
    pub compat: Option<EventForm>,

    /// Compression of packed data streams, --compat cce and RNTuples: none, lz4, zstd, zstd:1-22; for RNTuples also
    /// zlib, zlib:1-9 [default: zstd:18, for RNTuples zstd:10]
    #[arg(long, value_name = "CODEC")]
    pub codec: Option<EventCodec>,

    /// Data that --compat cce compresses in the batch layout
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Choice::Events)]
    pub choice: Choice,

    /// Reserialize products [default: as stored, or as ROOT does if the layout supports nothing else]
    #[arg(long, value_name = "HOW", value_enum)]
    pub serialize: Option<Serialized>,

    /// Use a profile of raddle tune for options not given on the command line; auto: the newest for this machine and
    /// file system
    ///
    /// Sets the chunk length and the gzip level of HDF5, if the profile has them.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<ProfileChoice>,
}

/// Element length of the datasets whose chunks `raddle tune` measures.
const MEASURED_ELEMENT_LEN_BYTES: u64 = 4;

impl EventLayoutArgs {
    /// Returns these options for an output at `path`, with those not given taken from the profile.
    ///
    /// # Errors
    /// If the profile does not exist.
    pub fn with_profile(&self, path: &Path) -> Result<Self, Failure> {
        let mut options = self.clone();
        let Some(profile) = &self.profile else { return Ok(options) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let settings = profile.read(folder.unwrap_or(Path::new(".")))?.values(true);
        if let (None, Some(Value::Shape(shape))) = (options.chunk, settings.get(Knob::Chunk)) {
            let elements = shape.iter().fold(1_u64, |product, count| product.saturating_mul(*count));
            options.chunk = Some(Size(elements.saturating_mul(MEASURED_ELEMENT_LEN_BYTES)));
        }
        let level = settings.whole(Knob::Gzip).and_then(|level| u8::try_from(level).ok());
        options.compress = options.compress.or(level.map(|level| Effort::Gzip(level).into()));
        Ok(options)
    }

    /// Returns the HDF5 layout with `batch` events per batch; `None` for streams and RNTuples.
    pub fn hdf5_layout(&self, batch: NonZeroU64) -> Option<Layout> {
        match self.layout {
            EventLayout::Columns => Some(Layout::Columns),
            EventLayout::Product => Some(Layout::Product),
            EventLayout::Event => Some(Layout::Event),
            EventLayout::Batch => Some(Layout::Batch(batch)),
            EventLayout::Pds | EventLayout::Rntuple => None,
        }
    }

    /// Whether products are written as columns rather than bytes.
    pub fn takes_columns(&self) -> bool {
        matches!(self.layout, EventLayout::Columns | EventLayout::Rntuple)
    }

    /// Returns the codec of the framework's formats.
    ///
    /// # Errors
    /// If they do not support the codec.
    pub fn framework_codec(&self) -> Result<PdsCodec, Failure> {
        match self.codec.map(|codec| codec.0) {
            None => Ok(PdsCodec::Zstd(USUAL_LEVEL)),
            Some(RootCodec::None) => Ok(PdsCodec::None),
            Some(RootCodec::Lz4) => Ok(PdsCodec::Lz4),
            Some(RootCodec::Zstd(level)) => Ok(PdsCodec::Zstd(level)),
            Some(RootCodec::Zlib(_)) => {
                Err(Failure::usage("--codec: zlib is for --layout rntuple").hint("give none, lz4 or zstd:1 to zstd:22"))
            }
        }
    }

    /// Returns the codec of an RNTuple.
    pub fn ntuple_codec(&self) -> RootCodec {
        self.codec.map_or(NtupleOptions::default().codec, |codec| codec.0)
    }

    /// Returns the options of the framework's form, if it is requested.
    ///
    /// # Errors
    /// If the framework does not support the codec.
    pub fn cce(&self) -> Result<Option<CceOptions>, Failure> {
        let choice = match self.choice {
            Choice::None => CompressionChoice::None,
            Choice::Events => CompressionChoice::Events,
            Choice::Batch => CompressionChoice::Batch,
            Choice::Both => CompressionChoice::Both,
        };
        match self.compat {
            Some(EventForm::Cce) => Ok(Some(CceOptions { codec: self.framework_codec()?, choice })),
            None => Ok(None),
        }
    }

    /// Returns the compression of HDF5 datasets; `None` for no compression.
    ///
    /// # Errors
    /// If events do not support the compression.
    pub fn compression(&self) -> Result<Option<raddle_codec::Compression>, Failure> {
        compression::of_events(self.compress.unwrap_or_default())
    }
}

/// Length of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// Number of events.
    Events(NonZeroU64),
    /// Mean number of bytes.
    Bytes(Size),
}

impl Batch {
    /// Returns the number of events of a batch for events of this mean length.
    pub fn events(self, mean_len_bytes: u64) -> NonZeroU64 {
        match self {
            Self::Events(events) => events,
            Self::Bytes(size) => NonZeroU64::new(size.0 / mean_len_bytes.max(1)).unwrap_or(NonZeroU64::MIN),
        }
    }
}

impl FromStr for Batch {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        match text.trim().parse() {
            Ok(events) => Ok(Self::Events(events)),
            Err(_) => text.parse().map(Self::Bytes),
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(events) => write!(f, "{events}"),
            Self::Bytes(size) => write!(f, "{}B", size.0),
        }
    }
}

/// Codec of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCodec(pub RootCodec);

impl From<PdsCodec> for EventCodec {
    fn from(codec: PdsCodec) -> Self {
        Self(match codec {
            PdsCodec::None => RootCodec::None,
            PdsCodec::Lz4 => RootCodec::Lz4,
            PdsCodec::Zstd(level) => RootCodec::Zstd(level),
        })
    }
}

/// Error for an invalid codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecNameError(String);

impl fmt::Display for CodecNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a codec for events; expected none, lz4, zstd, zstd:1 to zstd:22, zlib, or zlib:1 to zlib:9",
            self.0
        )
    }
}

impl std::error::Error for CodecNameError {}

/// Default Zstandard level of the framework.
const USUAL_LEVEL: i32 = 18;

/// Default level of zlib.
const USUAL_ZLIB_LEVEL: u8 = 6;

impl FromStr for EventCodec {
    type Err = CodecNameError;

    fn from_str(text: &str) -> Result<Self, CodecNameError> {
        Ok(Self(match text {
            "none" => RootCodec::None,
            "lz4" => RootCodec::Lz4,
            "zstd" => RootCodec::Zstd(USUAL_LEVEL),
            "zlib" => RootCodec::Zlib(USUAL_ZLIB_LEVEL),
            _ => match text.split_once(':').map(|(name, level)| (name, level.parse())) {
                Some(("zstd", Ok(level @ 1..=22))) => RootCodec::Zstd(level),
                Some(("zlib", Ok(level @ 1..=9))) => RootCodec::Zlib(level as u8),
                _ => return Err(CodecNameError(text.to_owned())),
            },
        }))
    }
}

impl fmt::Display for EventCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RootCodec::None => f.write_str("none"),
            RootCodec::Lz4 => f.write_str("lz4"),
            RootCodec::Zlib(level) => write!(f, "zlib:{level}"),
            // The level cannot be determined from a file.
            RootCodec::Zstd(0) => f.write_str("zstd"),
            RootCodec::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_what_no_option_says() {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            layout: EventLayoutArgs,
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("profile.toml"), folder.path().join("out.h5"));
        let example = include_str!("../../../tune/examples/profile.toml");
        let gzip = example.replace("layout.chunk", "layout.gzip").replace("[11, 360, 32]", "3");
        let of = |text: &str, words: &[&str]| {
            std::fs::write(&path, text).unwrap();
            let words = ["raddle", "--profile", path.to_str().unwrap()].into_iter().chain(words.iter().copied());
            let layout = <Alone as clap::Parser>::try_parse_from(words).unwrap().layout.with_profile(&out).unwrap();
            (layout.chunk, layout.compress)
        };
        assert_eq!(of(example, &[]), (Some(Size(11 * 360 * 32 * 4)), None));
        assert_eq!(of(example, &["--chunk", "1KiB"]).0, Some(Size(1024)));
        assert_eq!(of(&gzip, &[]), (None, Some(Effort::Gzip(3).into())));
        assert_eq!(of(&gzip, &["--compress", "none"]).1, Some(Compress::None));
    }

    #[test]
    fn codecs_and_batches_read_back_as_they_are_shown() {
        for text in ["none", "lz4", "zstd:1", "zstd:22", "zlib:1", "zlib:9"] {
            assert_eq!(text.parse::<EventCodec>().unwrap().to_string(), text);
        }
        for text in ["zstd:0", "zstd:23", "zlib:0", "zlib:10", "lz4:1", "gzip", ""] {
            assert!(text.parse::<EventCodec>().is_err(), "{text:?}");
        }
        assert_eq!("100".parse::<Batch>().unwrap().events(7).get(), 100);
        assert_eq!("1KiB".parse::<Batch>().unwrap().events(100).get(), 10);
        assert_eq!("1KiB".parse::<Batch>().unwrap().events(5000).get(), 1);
        assert!("0".parse::<Batch>().is_err() && "many".parse::<Batch>().is_err());
    }
}
