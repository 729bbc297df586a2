//! Options for events: selection of products and inputs, and layout of the output.

use super::size::Size;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use raddle::Error;
use raddle::options::ProfileChoice;
use raddle::options::compression::EVENTS_HELP;
use raddle::tuned::events::with_profile;
use raddle_events::formats::{Batch, Compat, EventCodec, EventCompression, OutputLayout, WriteOptions};
use raddle_events::hdf5::CompressionChoice;
use raddle_events::request::Selection;
use raddle_events::{MismatchPolicy, Serialization};
use std::path::Path;

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

impl SelectionArgs {
    /// Returns the selection that the options describe.
    pub fn selection(&self) -> Selection {
        Selection {
            tree: self.tree.clone(),
            products: self.products.clone(),
            raw: self.raw,
            whole: self.whole,
            differing: self.differing.into(),
        }
    }
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

/// Program whose form the layouts of bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EventForm {
    /// HEP-CCE framework: the same datasets and attributes
    Cce,
}

/// Data that the framework compresses in its batch layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompressionScope {
    /// Nothing
    None,
    /// Each event
    Events,
    /// Each batch
    Batch,
    /// Each event, and then each batch
    Both,
}

/// Serialisation of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SerializationArg {
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
    #[arg(long, value_name = "LAYOUT", value_parser = layouts(), default_value_t = OutputLayout::default())]
    pub layout: OutputLayout,

    /// Length of a batch: a number of events, or a size such as 4MiB of products
    #[arg(long, value_name = "N|SIZE", default_value_t = Batch::default())]
    pub batch: Batch,

    /// HDF5 compression.
    #[arg(short = 'c', long, value_name = "HOW", help = format!("{EVENTS_HELP} [default: balanced]"))]
    pub compress: Option<EventCompression>,

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
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = CompressionScope::Events)]
    pub choice: CompressionScope,

    /// Reserialise products [default: as stored, or as ROOT does if the layout supports nothing else]
    #[arg(long, value_name = "HOW", value_enum)]
    pub serialize: Option<SerializationArg>,

    /// Use a profile of raddle tune for options not given on the command line; auto: the newest for this machine and
    /// file system
    ///
    /// Sets the chunk length and the gzip level of HDF5, if the profile has them.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<ProfileChoice>,
}

/// Returns the parser of `--layout`.
fn layouts() -> impl TypedValueParser<Value = OutputLayout> {
    let names = OutputLayout::ALL.map(|layout| PossibleValue::new(layout.name()).help(layout.help()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<OutputLayout>())
}

impl EventLayoutArgs {
    /// Returns these options for an output at `path`, with those not given taken from the profile.
    ///
    /// # Errors
    /// If the profile does not exist.
    pub fn options(&self, path: &Path) -> Result<WriteOptions, Error> {
        let options = WriteOptions {
            layout: self.layout,
            batch: self.batch,
            compress: self.compress,
            chunk: self.chunk,
            compat: self.compat.map(|EventForm::Cce| Compat::Cce),
            codec: self.codec,
            choice: match self.choice {
                CompressionScope::None => CompressionChoice::None,
                CompressionScope::Events => CompressionChoice::Events,
                CompressionScope::Batch => CompressionChoice::Batch,
                CompressionScope::Both => CompressionChoice::Both,
            },
            serialize: self.serialize.map(|serialized| match serialized {
                SerializationArg::Root => Serialization::Root,
                SerializationArg::Unrolled => Serialization::Unrolled,
            }),
        };
        match &self.profile {
            Some(profile) => with_profile(options, profile, path),
            None => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle::tuned::events::gzip;

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
        let with_level = example.replace("layout.chunk", "layout.gzip").replace("[11, 360, 32]", "3");
        let of = |text: &str, words: &[&str]| {
            std::fs::write(&path, text).unwrap();
            let words = ["raddle", "--profile", path.to_str().unwrap()].into_iter().chain(words.iter().copied());
            let layout = <Alone as clap::Parser>::try_parse_from(words).unwrap().layout.options(&out).unwrap();
            (layout.chunk, layout.compress)
        };
        assert_eq!(of(example, &[]), (Some(Size(11 * 360 * 32 * 4)), None));
        assert_eq!(of(example, &["--chunk", "1KiB"]).0, Some(Size(1024)));
        assert_eq!(of(&with_level, &[]), (None, Some(gzip(3))));
        assert_eq!(of(&with_level, &["--compress", "none"]).1, Some(EventCompression(None)));
    }
}
