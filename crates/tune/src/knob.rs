//! The HDF5 settings that are measured and applied: their names, where they are set, and their effect on files.
//!
//! Setting them is left to `raddle_hdf5::dynamic` for a worker, and to `apply` for other programs. Invariant: a knob
//! has the same name in workloads, profiles and reports, in every version.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An HDF5 setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Knob {
    /// `H5Pset_alignment`: objects of [`Knob::AlignmentThreshold`] bytes or more begin at a multiple of this.
    Alignment,
    /// Minimum size of an aligned object; [`ALIGNMENT_THRESHOLD_BYTES`] if only [`Knob::Alignment`] is set.
    AlignmentThreshold,
    /// `H5Pset_meta_block_size`, in bytes.
    MetaBlock,
    /// `H5Pset_small_data_block_size`, in bytes.
    SmallDataBlock,
    /// `H5Pset_sieve_buf_size`, in bytes: for contiguous datasets only.
    Sieve,
    /// `H5Pset_cache` or `H5Pset_chunk_cache`: bytes per open dataset.
    ChunkCache,
    /// Chunk cache of each dataset sized for one sweep through it, up to this many bytes; for programs run by `raddle
    /// apply`.
    AutoChunkCache,
    /// Slots of the chunk cache's hash table.
    ChunkCacheSlots,
    /// Preemption policy of the chunk cache, from 0 to 1.
    ChunkCachePreemption,
    /// `H5Pset_mdc_config`: initial bytes of the metadata cache.
    MetadataCache,
    /// `H5Pset_mdc_config` without evictions: metadata is written when the file is closed. Its memory grows.
    DeferFlush,
    /// `H5Pset_coll_metadata_write` and `H5Pset_all_coll_metadata_ops`; hangs programs whose ranks open different
    /// objects.
    CollectiveMetadata,
    /// `H5Pset_libver_bounds`: both bounds, `v18`, `v110`, `v112`, `v114` or `latest`.
    Libver,
    /// `H5Pset_page_buffer_size`, in bytes: for files with [`Knob::FilePage`] and a single process.
    PageBuffer,
    /// `H5Pset_buffer`, in bytes: for values that are converted.
    ConversionBuffer,
    /// `cb_nodes` of ROMIO.
    CbNodes,
    /// `cb_buffer_size` of ROMIO, in bytes.
    CbBufferSize,
    /// `romio_cb_write` and `romio_cb_read`: `enable`, `disable` or `automatic`.
    CollectiveBuffering,
    /// Stripe count of the output's folder on Lustre.
    StripeCount,
    /// Stripe size on Lustre, in bytes.
    StripeSize,
    /// Page size of `H5Pset_file_space_page_size` with paged aggregation, in bytes.
    FilePage,
    /// `H5Pset_chunk`: elements along each dimension.
    Chunk,
    /// `H5Pset_deflate`, from 0 (no filter) to 9.
    Gzip,
    /// Shared object with the interface of zlib that the measured libhdf5 uses instead of its usual zlib.
    Zlib,
    /// `H5Pset_szip` with the nearest-neighbour mask: pixels per block, 0 for none.
    Szip,
    /// `H5Pset_szip` with the entropy-coding mask: pixels per block, 0 for none.
    SzipEntropy,
    /// `H5Pset_shuffle`.
    Shuffle,
    /// `H5Pset_fletcher32`.
    Fletcher32,
    /// `H5Pset_fill_time(NEVER)`: elements that are never written have arbitrary contents.
    NoFill,
    /// `H5Pset_layout(COMPACT)` for datasets of at most this many bytes.
    Compact,
}

/// Default threshold of alignment: without it, a file of small datasets would consist mostly of holes.
pub const ALIGNMENT_THRESHOLD_BYTES: u64 = 64 << 10;

/// Property list to which a setting belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PropertyListKind {
    /// The file access property list.
    FileAccess,
    /// The file creation property list.
    FileCreation,
    /// The dataset creation property list.
    DatasetCreation,
    /// The dataset transfer property list.
    Transfer,
    /// MPI-IO hints.
    MpiHints,
    /// The folder of the output.
    Folder,
    /// The environment of the process, before it starts.
    Process,
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// On or off.
    Flag(bool),
    /// Bytes or a count.
    Whole(u64),
    /// A fraction.
    Number(f64),
    /// A name.
    Text(String),
    /// Number of elements along each dimension.
    Shape(Vec<u64>),
}

/// Error of a value that a setting cannot have.
#[derive(Debug, thiserror::Error)]
#[error("{knob} cannot be {value}: it is {}", knob.kind())]
pub struct InvalidValue {
    /// Setting concerned.
    pub knob: Knob,
    /// Value given for the setting.
    pub value: SettingValue,
}

/// Kind of value that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A [`SettingValue::Flag`].
    Flag,
    /// A [`SettingValue::Whole`], in bytes.
    Bytes,
    /// A [`SettingValue::Whole`] up to this number.
    Count(u64),
    /// A [`SettingValue::Number`] from 0 to 1, or the whole numbers 0 and 1.
    Fraction,
    /// A [`SettingValue::Text`] that is one of these.
    OneOf(&'static [&'static str]),
    /// A [`SettingValue::Shape`].
    Shape,
    /// A [`SettingValue::Text`]: a path, or a name that the loader finds.
    Object,
}

impl Knob {
    /// All settings.
    pub const ALL: [Self; 30] = [
        Self::Alignment,
        Self::AlignmentThreshold,
        Self::MetaBlock,
        Self::SmallDataBlock,
        Self::Sieve,
        Self::ChunkCache,
        Self::AutoChunkCache,
        Self::ChunkCacheSlots,
        Self::ChunkCachePreemption,
        Self::MetadataCache,
        Self::DeferFlush,
        Self::CollectiveMetadata,
        Self::Libver,
        Self::PageBuffer,
        Self::ConversionBuffer,
        Self::CbNodes,
        Self::CbBufferSize,
        Self::CollectiveBuffering,
        Self::StripeCount,
        Self::StripeSize,
        Self::FilePage,
        Self::Chunk,
        Self::Gzip,
        Self::Zlib,
        Self::Szip,
        Self::SzipEntropy,
        Self::Shuffle,
        Self::Fletcher32,
        Self::NoFill,
        Self::Compact,
    ];

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alignment => "alignment",
            Self::AlignmentThreshold => "alignment_threshold",
            Self::MetaBlock => "meta_block",
            Self::SmallDataBlock => "small_data_block",
            Self::Sieve => "sieve",
            Self::ChunkCache => "chunk_cache",
            Self::AutoChunkCache => "auto_chunk_cache",
            Self::ChunkCacheSlots => "chunk_cache_slots",
            Self::ChunkCachePreemption => "chunk_cache_preemption",
            Self::MetadataCache => "metadata_cache",
            Self::DeferFlush => "defer_flush",
            Self::CollectiveMetadata => "collective_metadata",
            Self::Libver => "libver",
            Self::PageBuffer => "page_buffer",
            Self::ConversionBuffer => "conversion_buffer",
            Self::CbNodes => "cb_nodes",
            Self::CbBufferSize => "cb_buffer_size",
            Self::CollectiveBuffering => "collective_buffering",
            Self::StripeCount => "stripe_count",
            Self::StripeSize => "stripe_size",
            Self::FilePage => "file_page",
            Self::Chunk => "chunk",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Szip => "szip",
            Self::SzipEntropy => "szip_entropy",
            Self::Shuffle => "shuffle",
            Self::Fletcher32 => "fletcher32",
            Self::NoFill => "no_fill",
            Self::Compact => "compact",
        }
    }

    /// Returns the property list in which the setting is set.
    pub fn place(self) -> PropertyListKind {
        match self {
            Self::ConversionBuffer => PropertyListKind::Transfer,
            Self::CbNodes | Self::CbBufferSize | Self::CollectiveBuffering => PropertyListKind::MpiHints,
            Self::StripeCount | Self::StripeSize => PropertyListKind::Folder,
            Self::Zlib => PropertyListKind::Process,
            Self::FilePage => PropertyListKind::FileCreation,
            Self::Chunk
            | Self::Gzip
            | Self::Szip
            | Self::SzipEntropy
            | Self::Shuffle
            | Self::Fletcher32
            | Self::NoFill
            | Self::Compact => PropertyListKind::DatasetCreation,
            _ => PropertyListKind::FileAccess,
        }
    }

    /// Returns whether the setting changes how values are laid out or filtered in the file, not only where and when
    /// they are written. Such settings are applied to other programs only if the user allows it.
    pub fn changes_layout(self) -> bool {
        matches!(self.place(), PropertyListKind::DatasetCreation | PropertyListKind::FileCreation)
            || self == Self::Libver
    }

    /// Returns the kind of values that the setting takes.
    pub fn kind(self) -> SettingKind {
        match self {
            Self::DeferFlush | Self::CollectiveMetadata | Self::Shuffle | Self::Fletcher32 | Self::NoFill => {
                SettingKind::Flag
            }
            Self::ChunkCachePreemption => SettingKind::Fraction,
            Self::Libver => SettingKind::OneOf(&["v18", "v110", "v112", "v114", "latest"]),
            Self::CollectiveBuffering => SettingKind::OneOf(&["enable", "disable", "automatic"]),
            Self::Chunk => SettingKind::Shape,
            Self::Zlib => SettingKind::Object,
            Self::Gzip => SettingKind::Count(9),
            Self::Szip | Self::SzipEntropy => SettingKind::Count(32),
            Self::ChunkCacheSlots | Self::CbNodes | Self::StripeCount => SettingKind::Count(1 << 32),
            _ => SettingKind::Bytes,
        }
    }

    /// Returns the oldest HDF5 that reads a file written with this value; `None` if all versions do, or the file does
    /// not depend on the setting.
    pub fn readable_by(self, value: &SettingValue) -> Option<LibraryVersion> {
        match (self, value) {
            (Self::FilePage, _) => Some(LibraryVersion(1, 10)),
            (Self::Libver, SettingValue::Text(bound)) => match bound.as_str() {
                "v18" => None,
                "v110" => Some(LibraryVersion(1, 10)),
                "v112" => Some(LibraryVersion(1, 12)),
                "v114" => Some(LibraryVersion(1, 14)),
                // Only the newest version reads what the newest writes: chunk indexes of 2.x could not be read by 1.10.
                _ => Some(LibraryVersion(2, 0)),
            },
            _ => None,
        }
    }

    /// Formats the setting with its value: `chunk_cache=64MiB`.
    pub fn assignment(self, value: &SettingValue) -> String {
        match (self.kind(), value) {
            (SettingKind::Bytes, SettingValue::Whole(len_bytes)) => format!("{self}={}", len_words(*len_bytes)),
            _ => format!("{self}={value}"),
        }
    }

    /// Checks that `value` has the right kind.
    ///
    /// # Errors
    /// If the value is of a different kind.
    pub fn check(self, value: &SettingValue) -> Result<(), InvalidValue> {
        let is_fit = match (self.kind(), value) {
            (SettingKind::Flag, SettingValue::Flag(_)) | (SettingKind::Bytes, SettingValue::Whole(_)) => true,
            (SettingKind::Count(most), SettingValue::Whole(count)) => *count <= most,
            (SettingKind::Fraction, SettingValue::Number(number)) => (0.0..=1.0).contains(number),
            (SettingKind::Fraction, SettingValue::Whole(number)) => *number <= 1,
            (SettingKind::OneOf(names), SettingValue::Text(name)) => names.contains(&name.as_str()),
            // The loader separates names by these characters.
            (SettingKind::Object, SettingValue::Text(name)) => !name.is_empty() && !name.contains([' ', ':']),
            (SettingKind::Shape, SettingValue::Shape(shape)) => {
                !shape.is_empty() && shape.iter().all(|count| *count > 0)
            }
            _ => false,
        };
        if is_fit { Ok(()) } else { Err(InvalidValue { knob: self, value: value.clone() }) }
    }
}

/// Formats a number of bytes in the largest unit that divides it: `64MiB`, `4KiB` or `1000`.
pub(crate) fn len_words(len_bytes: u64) -> String {
    match len_bytes {
        0 => "0".to_owned(),
        _ if len_bytes.is_multiple_of(1 << 20) => format!("{}MiB", len_bytes >> 20),
        _ if len_bytes.is_multiple_of(1 << 10) => format!("{}KiB", len_bytes >> 10),
        _ => len_bytes.to_string(),
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true or false"),
            Self::Bytes => f.write_str("a number of bytes"),
            Self::Count(most) => write!(f, "a whole number up to {most}"),
            Self::Fraction => f.write_str("a number from 0 to 1"),
            Self::OneOf(names) => write!(f, "one of {}", names.join(", ")),
            Self::Shape => f.write_str("a list of numbers above 0"),
            Self::Object => f.write_str("a shared object, without spaces or colons in its name"),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(if *flag { "on" } else { "off" }),
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Shape(shape) => f.write_str(&shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")),
        }
    }
}

/// A version of HDF5 that must be able to read the files: `1.10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LibraryVersion(pub u32, pub u32);

/// Error of a string that is not a version of HDF5.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a version of HDF5: give {}", versions())]
pub struct InvalidReader {
    /// Text that was parsed.
    pub text: String,
}

impl LibraryVersion {
    /// Versions of HDF5 that have been released, without patch levels. Odd minor versions before 2.0 were never released.
    const RELEASED: [Self; 9] =
        [Self(1, 0), Self(1, 2), Self(1, 4), Self(1, 6), Self(1, 8), Self(1, 10), Self(1, 12), Self(1, 14), Self(2, 0)];

    /// Returns whether the version exists, or may be released after this program.
    fn may_exist(self) -> bool {
        self > Self(2, 0) || Self::RELEASED.contains(&self)
    }
}

/// Lists the released versions of HDF5.
fn versions() -> String {
    let [others @ .., last] = LibraryVersion::RELEASED.map(|version| version.to_string());
    format!("{} or {last}", others.join(", "))
}

impl fmt::Display for LibraryVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl std::str::FromStr for LibraryVersion {
    type Err = InvalidReader;

    fn from_str(text: &str) -> Result<Self, InvalidReader> {
        let parsed =
            text.split_once('.').and_then(|(major, minor)| Some(Self(major.parse().ok()?, minor.parse().ok()?)));
        parsed.filter(|version| version.may_exist()).ok_or_else(|| InvalidReader { text: text.to_owned() })
    }
}

raddle_core::serde_as_text!(LibraryVersion);

/// Values of settings; HDF5's defaults apply to all others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<Knob, SettingValue>);

impl Settings {
    /// Returns these settings overridden by `others`.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.iter().map(|(knob, value)| (*knob, value.clone())));
        all
    }

    /// Returns the settings with one more.
    #[must_use]
    pub fn and(mut self, knob: Knob, value: SettingValue) -> Self {
        self.0.insert(knob, value);
        self
    }

    /// Formats the settings: `alignment=1MiB gzip=4`; `default` if there are none.
    pub fn words(&self) -> String {
        let all: Vec<String> = self.0.iter().map(|(knob, value)| knob.assignment(value)).collect();
        if all.is_empty() { "default".to_owned() } else { all.join(" ") }
    }

    /// Returns the value of a setting.
    pub fn get(&self, knob: Knob) -> Option<&SettingValue> {
        self.0.get(&knob)
    }

    /// Returns a value in bytes or a count.
    pub fn whole(&self, knob: Knob) -> Option<u64> {
        match self.get(knob)? {
            SettingValue::Whole(whole) => Some(*whole),
            _ => None,
        }
    }

    /// Returns a fraction.
    pub fn number(&self, knob: Knob) -> Option<f64> {
        match self.get(knob)? {
            SettingValue::Whole(whole) => Some(*whole as f64),
            SettingValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns whether the setting is switched on.
    pub fn is_on(&self, knob: Knob) -> bool {
        self.get(knob) == Some(&SettingValue::Flag(true))
    }

    /// Returns the oldest HDF5 that reads files written with these settings; `None` if all do.
    pub fn readable_by(&self) -> Option<LibraryVersion> {
        self.0.iter().filter_map(|(knob, value)| knob.readable_by(value)).max()
    }

    /// Checks that all values have the right kind.
    ///
    /// # Errors
    /// If a value is of a wrong kind. The error describes the first one.
    pub fn check(&self) -> Result<(), InvalidValue> {
        self.0.iter().try_for_each(|(knob, value)| knob.check(value))
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("default");
        }
        for (place, (knob, value)) in self.0.iter().enumerate() {
            write!(f, "{}{knob}={value}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_are_those_of_the_code() {
        for knob in Knob::ALL {
            let json = serde_json::to_string(&knob).unwrap();
            assert_eq!(json, format!("\"{}\"", knob.name()));
            assert_eq!(serde_json::from_str::<Knob>(&json).unwrap(), knob);
        }
        let distinct: std::collections::BTreeSet<Knob> = Knob::ALL.into();
        assert_eq!(distinct.len(), Knob::ALL.len());
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        assert!(Knob::Gzip.check(&SettingValue::Whole(9)).is_ok());
        assert!(Knob::Gzip.check(&SettingValue::Whole(10)).is_err());
        assert!(Knob::Chunk.check(&SettingValue::Shape(vec![1, 0])).is_err());
        assert!(Knob::ChunkCachePreemption.check(&SettingValue::Number(f64::NAN)).is_err());
        assert!(Knob::Libver.check(&SettingValue::Text("v18".to_owned())).is_ok());
        let error = Knob::Libver.check(&SettingValue::Text("earliest".to_owned())).unwrap_err().to_string();
        assert!(error.contains("libver") && error.contains("v110"), "{error}");
    }

    #[test]
    fn bytes_are_written_as_people_do() {
        let settings = Settings::default()
            .and(Knob::Alignment, SettingValue::Whole(3 << 20))
            .and(Knob::Sieve, SettingValue::Whole(65_536))
            .and(Knob::MetaBlock, SettingValue::Whole(1000))
            .and(Knob::ChunkCache, SettingValue::Whole(0))
            .and(Knob::ChunkCacheSlots, SettingValue::Whole(1024))
            .and(Knob::Chunk, SettingValue::Shape(vec![2, 3]));
        let words = "alignment=3MiB meta_block=1000 sieve=64KiB chunk_cache=0 chunk_cache_slots=1024 chunk=2x3";
        assert_eq!(settings.words(), words);
        assert_eq!(Settings::default().words(), "default");
    }

    #[test]
    fn the_oldest_reader_is_that_of_the_newest_feature() {
        let old = Settings::default().and(Knob::Gzip, SettingValue::Whole(1));
        assert_eq!(old.readable_by(), None);
        let paged = old.and(Knob::FilePage, SettingValue::Whole(65_536));
        assert_eq!(paged.readable_by(), Some(LibraryVersion(1, 10)));
        let latest = paged.and(Knob::Libver, SettingValue::Text("latest".to_owned()));
        assert_eq!(latest.readable_by(), Some(LibraryVersion(2, 0)));
        assert!("1.10".parse::<LibraryVersion>().unwrap() > LibraryVersion(1, 8));
        assert!(["one", "0.9", "1.9", "1.16"].iter().all(|text| text.parse::<LibraryVersion>().is_err()));
        assert!(["1.6", "1.14", "2.0", "2.1"].iter().all(|text| text.parse::<LibraryVersion>().is_ok()));
        let error = "0.9".parse::<LibraryVersion>().unwrap_err().to_string();
        assert!(error.ends_with("1.0, 1.2, 1.4, 1.6, 1.8, 1.10, 1.12, 1.14 or 2.0"), "{error}");
    }
}
