//! Compression of tiles: deflate with some effort, or one of the other registered filters that raddle can write.

use crate::filter::{Filter, KnownFilter};

/// Effort to put into deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effort {
    /// Fastest encoder, which keeps up with disks.
    Fast,
    /// The ratio of gzip 6 in a fraction of its time.
    Balanced,
    /// The smallest output that deflate gives in reasonable time.
    Small,
    /// Exactly this gzip level (libdeflate's level of that number, at most 12), without a choice by content.
    Gzip(u8),
    /// At most the size of zlib's level of this number, within 2 %, in minimum time; the dataset's filter names the
    /// level. For datasets that keep the filter of an input.
    Like(u8),
}

/// Compression method of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// zlib streams, which every HDF5 can read.
    Deflate(Effort),
    /// Zstandard frames of this level, 1 to 22. Readers need the registered filter 32015.
    Zstd(u8),
    /// LZ4 blocks. Readers need the registered filter 32004.
    Lz4,
}

/// Highest level of libdeflate.
pub(crate) const MAX_LEVEL: u8 = 12;

/// Highest level that a dataset's deflate filter may name (H5Pset_deflate refuses higher ones).
const MAX_NAMED_LEVEL: u8 = 9;

/// Highest level of Zstandard.
const MAX_ZSTD_LEVEL: u8 = 22;

impl Compression {
    /// Returns the compression that corresponds to a dataset's filter, if raddle can write it. The level of deflate is
    /// taken from the filter, as [`Effort::Like`].
    pub fn of_filter(filter: &Filter) -> Option<Self> {
        let level = filter.parameters.first().copied();
        Some(match KnownFilter::from_id(filter.id)? {
            KnownFilter::Deflate => {
                let level = u8::try_from(level.unwrap_or(6)).unwrap_or(MAX_NAMED_LEVEL);
                Self::Deflate(Effort::Like(level.min(MAX_NAMED_LEVEL)))
            }
            KnownFilter::Zstd => {
                // The level is signed: the filter treats negative ones as the lowest level.
                let level = level.unwrap_or(3).cast_signed().clamp(1, MAX_ZSTD_LEVEL.into());
                Self::Zstd(level as u8)
            }
            KnownFilter::Lz4 => Self::Lz4,
            _ => return None,
        })
    }

    /// Returns the filter of datasets with this compression.
    pub fn known_filter(self) -> KnownFilter {
        match self {
            Self::Deflate(_) => KnownFilter::Deflate,
            Self::Zstd(_) => KnownFilter::Zstd,
            Self::Lz4 => KnownFilter::Lz4,
        }
    }

    /// Clamps the level to the existing ones.
    pub(crate) fn within_levels(self) -> Self {
        match self {
            Self::Deflate(Effort::Gzip(level)) => Self::Deflate(Effort::Gzip(level.min(MAX_LEVEL))),
            Self::Deflate(Effort::Like(level)) => Self::Deflate(Effort::Like(level.min(MAX_NAMED_LEVEL))),
            Self::Zstd(level) => Self::Zstd(level.clamp(1, MAX_ZSTD_LEVEL)),
            other => other,
        }
    }

    /// Returns the filter parameters that describe the compression; readers do not use them.
    pub(crate) fn parameters(self) -> Vec<u32> {
        match self {
            Self::Deflate(effort) => vec![u32::from(match effort {
                Effort::Fast => 1,
                Effort::Balanced => 6,
                Effort::Small => 9,
                Effort::Gzip(level) | Effort::Like(level) => level.min(MAX_NAMED_LEVEL),
            })],
            Self::Zstd(level) => vec![level.into()],
            Self::Lz4 => vec![],
        }
    }
}

impl From<Effort> for Compression {
    fn from(effort: Effort) -> Self {
        Self::Deflate(effort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_stand_for_what_they_are_made_of() {
        let of = |known: KnownFilter, parameters: &[u32]| {
            let (id, name, parameters) = (known.id(), Vec::new(), parameters.to_vec());
            Compression::of_filter(&Filter { id, optional: true, name, parameters })
        };
        assert_eq!(of(KnownFilter::Deflate, &[4]), Some(Compression::Deflate(Effort::Like(4))));
        assert_eq!(of(KnownFilter::Deflate, &[300]), Some(Compression::Deflate(Effort::Like(9))));
        assert_eq!(of(KnownFilter::Deflate, &[]), Some(Compression::Deflate(Effort::Like(6))));
        assert_eq!(of(KnownFilter::Zstd, &[19, 7]), Some(Compression::Zstd(19)));
        assert_eq!(of(KnownFilter::Zstd, &[]), Some(Compression::Zstd(3)));
        assert_eq!(of(KnownFilter::Zstd, &[(-5_i32).cast_unsigned()]), Some(Compression::Zstd(1)));
        assert_eq!(of(KnownFilter::Zstd, &[40]), Some(Compression::Zstd(22)));
        assert_eq!(of(KnownFilter::Lz4, &[1 << 30]), Some(Compression::Lz4));
        assert_eq!(of(KnownFilter::Szip, &[4, 8]), None);
        for compression in [Compression::Zstd(7), Compression::Lz4, Compression::Deflate(Effort::Like(3))] {
            assert_eq!(of(compression.known_filter(), &compression.parameters()), Some(compression));
        }
    }
}
