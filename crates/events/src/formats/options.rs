//! Options of the output: layout, batches, compression, serialisation.

use super::{EventCodec, OutputLayout, codec};
use crate::error::{EventsError, Result};
use crate::hdf5::{CceOptions, CompressionChoice};
use crate::pds::PdsCodec;
use raddle_codec::{Compression, Effort};
use raddle_columns::schema::Serialization;
use raddle_core::size::{Size, SizeError};
use raddle_root::{NtupleOptions, RootCodec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Options of an output of events. Names and words are those of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteOptions {
    /// Layout of the output.
    pub layout: OutputLayout,
    /// Length of a batch in the batch layout.
    pub batch: Batch,
    /// HDF5 compression; `balanced` if `None`.
    pub compress: Option<EventCompression>,
    /// Length of an HDF5 chunk before compression. If `None`, 1 MiB, or less if there are thousands of datasets.
    pub chunk: Option<Size>,
    /// Program in whose form the product, event and batch layouts are written; raddle's own form if `None`.
    pub compat: Option<Compat>,
    /// Compression of packed data streams, RNTuples and [`Compat::Cce`]. If `None`, it is `zstd:10` for RNTuples and
    /// `zstd:18` otherwise.
    pub codec: Option<EventCodec>,
    /// Data that [`Compat::Cce`] compresses in the batch layout.
    pub choice: CompressionChoice,
    /// Serialisation of products, [`Serialization::Root`] or [`Serialization::Unrolled`]. If `None`, products are
    /// serialised as they are stored, or as ROOT does if the layout supports nothing else.
    pub serialize: Option<Serialization>,
}

impl WriteOptions {
    /// Returns whether the output is the framework's, which stores ids apart from products.
    pub(crate) fn is_of_framework(&self) -> bool {
        self.compat.is_some() || self.layout.is_of_framework()
    }

    /// Checks that the options fit each other.
    ///
    /// # Errors
    /// [`EventsError::Option`], which names the option.
    pub fn check(&self) -> Result<()> {
        if self.serialize == Some(Serialization::Basket) {
            return Err(EventsError::option("serialize", "expected root or unrolled"));
        }
        if self.compat.is_some() && self.layout.holds_columns() {
            let why = format!("the framework has no layout {}; give --layout product, event or batch", self.layout);
            return Err(EventsError::option("compat", why));
        }
        Ok(())
    }

    /// Checks that the options fit each other, and that each has an effect on the layout.
    ///
    /// # Errors
    /// [`EventsError::Option`], which names the option.
    pub(crate) fn check_used(&self) -> Result<()> {
        self.check()?;
        let in_form = if self.compat.is_some() { " in the form of the framework" } else { "" };
        let layout = format!("--layout {}{in_form}", self.layout);
        let refuse = |option, why: &str| Err(EventsError::option(option, format!("has no effect on {layout}: {why}")));
        let is_by_hdf5 = self.layout.is_hdf5() && self.compat.is_none();
        if self.codec.is_some() && is_by_hdf5 {
            return refuse("codec", "HDF5 compresses it, as --compress states");
        }
        if self.compress.is_some() && !is_by_hdf5 {
            return refuse("compress", "HDF5 does not compress it; give --codec");
        }
        if self.chunk.is_some() && !self.layout.is_hdf5() {
            return refuse("chunk", "it is not HDF5");
        }
        if self.serialize.is_some() && self.layout.holds_columns() {
            return refuse("serialize", "columns are not serialised");
        }
        Ok(())
    }

    /// Returns the serialisation that products need; `None` if they stay as they are stored. `has_baskets` states
    /// whether any product is stored as the bytes of a branch.
    pub(crate) fn serialization(&self, has_baskets: bool) -> Option<Serialization> {
        // The framework's product layout does not record the serialisation; its other formats have no bytes of
        // branches.
        let needs_root = match self.compat {
            Some(_) if self.layout == OutputLayout::Product => true,
            _ => self.is_of_framework() && has_baskets,
        };
        self.serialize.or(needs_root.then_some(Serialization::Root))
    }

    /// Returns the codec of the framework's formats.
    ///
    /// # Errors
    /// If these formats do not support the codec.
    pub(crate) fn framework_codec(&self) -> Result<PdsCodec> {
        let Some(codec) = self.codec else { return Ok(PdsCodec::Zstd(codec::DEFAULT_ZSTD_LEVEL)) };
        codec.of_framework().ok_or_else(|| {
            EventsError::option("codec", "zlib is for --layout rntuple; give none, lz4 or zstd:1 to zstd:22")
        })
    }

    /// Returns the codec of an RNTuple.
    pub(crate) fn ntuple_codec(&self) -> RootCodec {
        self.codec.map_or(NtupleOptions::default().codec, |codec| codec.0)
    }

    /// Returns the options of the framework's form; `None` if another form is requested.
    ///
    /// # Errors
    /// If the framework does not support the codec.
    pub(crate) fn cce(&self) -> Result<Option<CceOptions>> {
        let cce = |Compat::Cce| Ok(CceOptions { codec: self.framework_codec()?, choice: self.choice });
        self.compat.map(cce).transpose()
    }

    /// Returns the compression of HDF5 datasets; `None` for no compression.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compress.unwrap_or_default().0
    }

    /// Returns the requested length of an HDF5 chunk.
    pub(crate) fn chunk_len_bytes(&self) -> Option<NonZeroU64> {
        self.chunk.and_then(|size| NonZeroU64::new(size.0))
    }
}

/// Program in whose form the layouts of bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// The HEP-CCE framework; every dataset and attribute is as it writes them.
    Cce,
}

/// Compression of the HDF5 datasets of events: `fast`, `balanced`, `small`, `gzip:0` to `gzip:9`, `zstd:1` to
/// `zstd:22`, `lz4` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventCompression(
    /// Compression; `None` for none.
    pub Option<Compression>,
);

impl Default for EventCompression {
    fn default() -> Self {
        Self(Some(Compression::default()))
    }
}

/// Error for an invalid compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionNameError(String);

impl fmt::Display for CompressionNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "keep" => f.write_str("events get a new layout, so no filter can be kept"),
            text => write!(f, "invalid compression {text:?}; expected {} or none", Compression::WORDS),
        }
    }
}

impl std::error::Error for CompressionNameError {}

impl FromStr for EventCompression {
    type Err = CompressionNameError;

    fn from_str(text: &str) -> Result<Self, CompressionNameError> {
        if text == "none" {
            return Ok(Self(None));
        }
        let compression = text.parse().map_err(|_| CompressionNameError(text.to_owned()))?;
        Ok(Self(Some(compression).filter(|compression| *compression != Effort::Gzip(0).into())))
    }
}

impl fmt::Display for EventCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(compression) => compression.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// Length of a batch: a number of events (`100`), or a size (`4MiB`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText", into = "String")]
pub enum Batch {
    /// Number of events.
    Events(NonZeroU64),
    /// Mean number of bytes.
    Bytes(Size),
}

/// Length of a batch unless another is given.
pub const DEFAULT_BATCH: Batch = Batch::Events(NonZeroU64::MIN.saturating_add(99));

impl Default for Batch {
    fn default() -> Self {
        DEFAULT_BATCH
    }
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

/// Value that JSON may give as a number or as a string.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of events, or a size such as \"4MiB\"")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberOrText> for Batch {
    type Error = SizeError;

    fn try_from(value: NumberOrText) -> Result<Self, SizeError> {
        match value {
            NumberOrText::Number(number) => number.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl From<Batch> for String {
    fn from(batch: Batch) -> Self {
        batch.to_string()
    }
}

raddle_core::serde_as_text!(EventCompression);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_batches_are_read_back() {
        assert_eq!("100".parse::<Batch>().unwrap().events(7).get(), 100);
        assert_eq!("1KiB".parse::<Batch>().unwrap().events(100).get(), 10);
        assert_eq!("1KiB".parse::<Batch>().unwrap().events(5000).get(), 1);
        assert!("0".parse::<Batch>().is_err() && "many".parse::<Batch>().is_err());
        for text in ["7", "\"7\""] {
            assert_eq!(serde_json::from_str::<Batch>(text).unwrap(), "7".parse().unwrap(), "{text}");
        }
        assert!(serde_json::from_str::<Batch>("[]").unwrap_err().to_string().contains("number of events"));
    }

    #[test]
    fn words_of_compressions_are_read_back() {
        for text in ["fast", "balanced", "small", "gzip:9", "zstd:1", "zstd:22", "lz4", "none"] {
            assert_eq!(text.parse::<EventCompression>().unwrap().to_string(), text);
        }
        assert_eq!("gzip:0".parse(), Ok(EventCompression(None)));
        assert!("keep".parse::<EventCompression>().unwrap_err().to_string().contains("new layout"));
        for text in ["", "gzip", "gzip:10", "zstd:0", "zstd:23", "lz4:1", "best"] {
            let error = text.parse::<EventCompression>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("zstd:22"), "{error}");
        }
    }

    #[test]
    fn options_are_read_from_json_by_the_words_of_the_command() {
        let text = r#"{"layout": "batch", "batch": 7, "compress": "gzip:3", "chunk": "1KiB", "compat": "cce",
            "codec": "lz4", "choice": "both", "serialize": "unrolled"}"#;
        let options: WriteOptions = serde_json::from_str(text).unwrap();
        assert_eq!((options.layout, options.chunk), (OutputLayout::Batch, Some(Size(1024))));
        assert_eq!(options.cce().unwrap().unwrap().codec, PdsCodec::Lz4);
        let again: WriteOptions = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
        assert_eq!(again, options);
        assert_eq!(serde_json::from_str::<WriteOptions>("{}").unwrap(), WriteOptions::default());
    }

    #[test]
    fn options_without_effect_are_refused() {
        let none = WriteOptions::default();
        let codec = WriteOptions { codec: Some("lz4".parse().unwrap()), ..none };
        let compress = WriteOptions { compress: Some("fast".parse().unwrap()), ..none };
        let chunk = WriteOptions { chunk: Some(Size(1024)), ..none };
        let serialize = WriteOptions { serialize: Some(Serialization::Root), ..none };
        for layout in OutputLayout::ALL {
            let (is_hdf5, has_columns) = (layout.is_hdf5(), layout.holds_columns());
            let is_refused = |options| WriteOptions { layout, ..options }.check_used().is_err();
            assert_eq!([codec, compress].map(is_refused), [is_hdf5, !is_hdf5], "{layout}");
            assert_eq!([chunk, serialize].map(is_refused), [!is_hdf5, has_columns], "{layout}");
            let of_framework = |options| is_refused(WriteOptions { compat: Some(Compat::Cce), ..options });
            assert_eq!([codec, compress].map(of_framework), [has_columns, true], "{layout}");
        }
    }

    #[test]
    fn the_framework_has_no_columns() {
        for layout in OutputLayout::ALL {
            let options = WriteOptions { layout, compat: Some(Compat::Cce), ..WriteOptions::default() };
            assert_eq!(options.check().is_err(), layout.holds_columns(), "{layout}");
        }
    }

    #[test]
    fn the_framework_needs_its_own_serialisation() {
        let of = |layout, compat| WriteOptions { layout, compat, ..WriteOptions::default() };
        let (cce, root) = (Some(Compat::Cce), Some(Serialization::Root));
        assert_eq!(of(OutputLayout::Product, cce).serialization(false), root);
        assert_eq!(of(OutputLayout::Batch, cce).serialization(false), None);
        assert_eq!(of(OutputLayout::Batch, cce).serialization(true), root);
        assert_eq!(of(OutputLayout::Pds, None).serialization(true), root);
        assert_eq!(of(OutputLayout::Batch, None).serialization(true), None);
    }
}
