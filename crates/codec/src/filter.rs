//! Filters: the record in the pipeline message, and the registered filters that raddle knows.

use serde::{Deserialize, Serialize};

/// One filter of a pipeline, as stored in the filter pipeline message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Filter {
    /// Registered filter number.
    pub id: u16,
    /// Whether chunks may be stored without it (`H5Z_FLAG_OPTIONAL`).
    pub optional: bool,
    /// Name as stored, without padding.
    pub name: Vec<u8>,
    /// Client data values.
    pub parameters: Vec<u32>,
}

/// A filter that raddle can decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KnownFilter {
    /// zlib streams (RFC 1950).
    Deflate,
    /// Bytes of the elements grouped by their position in the element.
    Shuffle,
    /// Checksum at the end of the chunk.
    Fletcher32,
    /// Adaptive entropy coding (CCSDS 121.0-B), as the szip library frames it.
    Szip,
    /// Significant bits of each number, packed.
    Nbit,
    /// Numbers minus their minimum, in as few bits as the range needs.
    ScaleOffset,
    /// bzip2 streams.
    Bzip2,
    /// LZF, as h5py frames it.
    Lzf,
    /// Blosc, first format.
    Blosc,
    /// LZ4 blocks.
    Lz4,
    /// Bits of the elements grouped by their position in the element, then LZ4 or Zstandard.
    Bitshuffle,
    /// Zstandard frames.
    Zstd,
}

impl KnownFilter {
    /// All filters that raddle can decode.
    pub const ALL: [Self; 12] = [
        Self::Deflate,
        Self::Shuffle,
        Self::Fletcher32,
        Self::Szip,
        Self::Nbit,
        Self::ScaleOffset,
        Self::Bzip2,
        Self::Lzf,
        Self::Blosc,
        Self::Lz4,
        Self::Bitshuffle,
        Self::Zstd,
    ];

    /// Returns the number under which The HDF Group registers the filter.
    pub const fn id(self) -> u16 {
        match self {
            Self::Deflate => 1,
            Self::Shuffle => 2,
            Self::Fletcher32 => 3,
            Self::Szip => 4,
            Self::Nbit => 5,
            Self::ScaleOffset => 6,
            Self::Bzip2 => 307,
            Self::Lzf => 32000,
            Self::Blosc => 32001,
            Self::Lz4 => 32004,
            Self::Bitshuffle => 32008,
            Self::Zstd => 32015,
        }
    }

    /// Returns the filter with this number; `None` if raddle cannot decode it.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.id() == id)
    }

    /// Returns whether the filter makes values smaller; the others rearrange them or add a checksum.
    pub const fn compresses(self) -> bool {
        !matches!(self, Self::Shuffle | Self::Fletcher32)
    }

    /// Returns the usual short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Shuffle => "shuffle",
            Self::Fletcher32 => "fletcher32",
            Self::Szip => "szip",
            Self::Nbit => "nbit",
            Self::ScaleOffset => "scaleoffset",
            Self::Bzip2 => "bzip2",
            Self::Lzf => "lzf",
            Self::Blosc => "blosc",
            Self::Lz4 => "lz4",
            Self::Bitshuffle => "bitshuffle",
            Self::Zstd => "zstd",
        }
    }

    /// Describes what readers of HDF5 files with this filter need; `None` if every HDF5 has it.
    pub fn requirement(self) -> Option<String> {
        let (name, id) = (self.name(), self.id());
        (self != Self::Deflate).then(|| {
            format!(
                "readers of {name} need HDF5 filter {id}: in Python, import hdf5plugin before h5py; for other programs, set \
                 HDF5_PLUGIN_PATH to the folder in hdf5plugin.PLUGIN_PATH; raddle itself needs neither"
            )
        })
    }
}

impl std::fmt::Display for KnownFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Registered filters that raddle cannot decode, so that an error can name them even if the file does not.
///
/// From The HDF Group's list of registered filters.
const UNSUPPORTED: [(u16, &str); 18] = [
    (305, "lzo"),
    (32002, "mafisc"),
    (32003, "snappy"),
    (32005, "apax"),
    (32006, "cbf"),
    (32007, "jpeg-xr"),
    (32009, "spdp"),
    (32010, "lpc-rice"),
    (32013, "zfp"),
    (32014, "fpzip"),
    (32016, "b3d"),
    (32017, "sz"),
    (32018, "jpeg-ls"),
    (32022, "bitgroom"),
    (32023, "granular bitround"),
    (32024, "sz3"),
    (32026, "blosc2"),
    (32028, "sperr"),
];

/// Returns a name for messages: the one stored in the file (escaped), otherwise the registered one, otherwise
/// `unnamed`.
pub(crate) fn display_name(filter: &Filter) -> String {
    if !filter.name.is_empty() {
        return String::from_utf8_lossy(&filter.name).escape_debug().to_string();
    }
    let registered = UNSUPPORTED.iter().find(|(id, _)| *id == filter.id).map(|(_, name)| *name);
    registered.unwrap_or("unnamed").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (index, filter) in KnownFilter::ALL.into_iter().enumerate() {
            assert_eq!(KnownFilter::from_id(filter.id()), Some(filter));
            for other in &KnownFilter::ALL[..index] {
                assert_ne!(other.name(), filter.name());
            }
            assert!(UNSUPPORTED.iter().all(|(id, _)| *id != filter.id()));
        }
    }

    #[test]
    fn a_hostile_name_is_escaped() {
        let filter = Filter { id: 999, optional: false, name: b"\x1b[31mred\n".to_vec(), parameters: vec![] };
        assert_eq!(display_name(&filter), "\\u{1b}[31mred\\n");
        assert_eq!(display_name(&Filter { id: 32013, name: vec![], ..filter.clone() }), "zfp");
        assert_eq!(display_name(&Filter { name: vec![], ..filter }), "unnamed");
    }
}
