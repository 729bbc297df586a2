//! Suggestions for improving a file, as text with the command to run.
//!
//! Each rule looks at an [`Inspection`] and yields at most one suggestion. Invariant: suggestions state counted
//! figures, and a rule makes none if less than `MIN_GAIN_BYTES` or fewer than `MIN_CHUNKS` are affected.

use super::{DatasetStatistics, Inspection, StorageKind};
use serde::{Serialize, Serializer};
use std::fmt;

/// A suggested improvement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Advice {
    /// Chunks so small that locating and setting up each one costs more than reading its bytes.
    SmallChunks {
        /// Number of small chunks.
        chunks: u64,
        /// Number of datasets that have them.
        datasets: u64,
        /// Most frequent chunk size before compression.
        typical_len_bytes: u64,
    },
    /// Chunks so large that readers of a few rows decode far more than they need.
    LargeChunks {
        /// Number of datasets.
        datasets: u64,
        /// Largest chunk, before compression.
        largest_len_bytes: u64,
    },
    /// Chunks longer than their dataset, so that the rest is stored as padding.
    PaddedChunks {
        /// Number of datasets.
        datasets: u64,
        /// Number of bytes stored beyond the extent, before compression.
        padding_len_bytes: u64,
    },
    /// A large part of the file is metadata.
    MuchMetadata {
        /// Length of the metadata.
        metadata_len_bytes: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// Bytes not used by any object.
    UnusedSpace {
        /// Number of unused bytes.
        unused_len_bytes: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// Empty datasets that nevertheless have a chunk index.
    IndexedEmptyDatasets {
        /// Number of datasets.
        datasets: u64,
    },
    /// Datasets without compression.
    Uncompressed {
        /// Number of datasets.
        datasets: u64,
        /// Stored length of these datasets.
        stored_len_bytes: u64,
    },
    /// A filter that stock HDF5 does not include.
    PluginFilter {
        /// Name of the filter, as stored in the file.
        name: String,
        /// HDF5 identifier of the filter.
        id: u16,
        /// Number of datasets.
        datasets: u64,
    },
}

/// Size below which chunks count as small. A chunk costs a reader about 2 µs in addition to its bytes (index, filter
/// set-up: measured), and inflating runs at about 0.5 GB/s: at 16 KiB the ratio of the two is 6 to 100, and below that
/// the fixed cost is noticeable.
const SMALL_CHUNK_LEN_BYTES: u64 = 16 << 10;
/// Size above which chunks count as large: to read one row, all of the chunk must be inflated, which takes about 30 ms
/// for 16 MiB.
const LARGE_CHUNK_LEN_BYTES: u64 = 16 << 20;
/// Number of chunks below which their cost is not noticeable.
const MIN_CHUNKS: u64 = 1000;
/// Gain below which rewriting a file is not worthwhile.
const MIN_GAIN_BYTES: u64 = 1 << 20;
/// Share of a file, in percent, from which metadata or unused space is reported.
const MIN_SHARE_PERCENT: u64 = 10;
/// First identifier of plug-in filters; filters with smaller numbers belong to HDF5.
const FIRST_PLUGIN_FILTER: u16 = 256;

/// Returns the suggestions for a file, the most important first.
pub(super) fn advise(inspection: &Inspection) -> Vec<Advice> {
    let rules = [small_chunks, much_metadata, uncompressed, unused_space, padded_chunks, large_chunks, indexed_empty];
    let mut advice: Vec<Advice> = rules.iter().filter_map(|rule| rule(inspection)).collect();
    let plugins = inspection.filters.iter().filter(|filter| filter.id >= FIRST_PLUGIN_FILTER);
    advice.extend(plugins.map(|filter| Advice::PluginFilter {
        name: filter.name.clone(),
        id: filter.id,
        datasets: filter.datasets,
    }));
    advice
}

fn is_large_share(part: u64, whole: u64) -> bool {
    part >= MIN_GAIN_BYTES && part >= whole / 100 * MIN_SHARE_PERCENT
}

fn small_chunks(inspection: &Inspection) -> Option<Advice> {
    // A dataset with a single chunk gains nothing from a larger one.
    let small = |dataset: &&DatasetStatistics| dataset.chunks > 1 && dataset.chunk_len_bytes() < SMALL_CHUNK_LEN_BYTES;
    let (mut chunks, mut datasets) = (0_u64, 0);
    let mut by_len = std::collections::BTreeMap::<u64, u64>::new();
    for dataset in inspection.datasets.iter().filter(small) {
        chunks = chunks.saturating_add(dataset.chunks);
        datasets += 1;
        *by_len.entry(dataset.chunk_len_bytes()).or_default() += dataset.chunks;
    }
    let typical_len_bytes = by_len.into_iter().max_by_key(|&(_, count)| count)?.0;
    (chunks >= MIN_CHUNKS).then_some(Advice::SmallChunks { chunks, datasets, typical_len_bytes })
}

fn large_chunks(inspection: &Inspection) -> Option<Advice> {
    let large = |dataset: &&DatasetStatistics| dataset.chunks > 0 && dataset.chunk_len_bytes() > LARGE_CHUNK_LEN_BYTES;
    let datasets = inspection.datasets.iter().filter(large);
    let largest_len_bytes = datasets.clone().map(DatasetStatistics::chunk_len_bytes).max()?;
    Some(Advice::LargeChunks { datasets: datasets.count() as u64, largest_len_bytes })
}

fn padded_chunks(inspection: &Inspection) -> Option<Advice> {
    let (mut datasets, mut padding_len_bytes) = (0, 0_u64);
    for dataset in &inspection.datasets {
        let in_chunks = dataset.chunk_len_bytes().saturating_mul(dataset.chunks);
        // More than half is padding; ragged edges of large datasets do not count.
        if in_chunks / 2 > dataset.logical_len_bytes {
            datasets += 1;
            padding_len_bytes = padding_len_bytes.saturating_add(in_chunks - dataset.logical_len_bytes);
        }
    }
    (padding_len_bytes >= MIN_GAIN_BYTES).then_some(Advice::PaddedChunks { datasets, padding_len_bytes })
}

fn much_metadata(inspection: &Inspection) -> Option<Advice> {
    let (metadata_len_bytes, file_len_bytes) = (inspection.space.metadata_len_bytes, inspection.file_len_bytes);
    is_large_share(metadata_len_bytes, file_len_bytes)
        .then_some(Advice::MuchMetadata { metadata_len_bytes, file_len_bytes })
}

fn unused_space(inspection: &Inspection) -> Option<Advice> {
    let (unused_len_bytes, file_len_bytes) = (inspection.space.unused_len_bytes, inspection.file_len_bytes);
    is_large_share(unused_len_bytes, file_len_bytes).then_some(Advice::UnusedSpace { unused_len_bytes, file_len_bytes })
}

fn indexed_empty(inspection: &Inspection) -> Option<Advice> {
    let empty = |dataset: &&DatasetStatistics| dataset.logical_len_bytes == 0 && dataset.has_index;
    let datasets = inspection.datasets.iter().filter(empty).count() as u64;
    (datasets > 0).then_some(Advice::IndexedEmptyDatasets { datasets })
}

fn uncompressed(inspection: &Inspection) -> Option<Advice> {
    let plain = |dataset: &&DatasetStatistics| {
        dataset.filters.is_empty()
            && matches!(dataset.storage, StorageKind::Contiguous | StorageKind::Chunked)
            && dataset.stored_len_bytes >= SMALL_CHUNK_LEN_BYTES
    };
    let datasets = inspection.datasets.iter().filter(plain);
    let stored_len_bytes = datasets.clone().fold(0_u64, |sum, dataset| sum.saturating_add(dataset.stored_len_bytes));
    is_large_share(stored_len_bytes, inspection.file_len_bytes)
        .then(|| Advice::Uncompressed { datasets: datasets.count() as u64, stored_len_bytes })
}

impl Advice {
    /// Returns the rule's name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SmallChunks { .. } => "small_chunks",
            Self::LargeChunks { .. } => "large_chunks",
            Self::PaddedChunks { .. } => "padded_chunks",
            Self::MuchMetadata { .. } => "much_metadata",
            Self::UnusedSpace { .. } => "unused_space",
            Self::IndexedEmptyDatasets { .. } => "indexed_empty_datasets",
            Self::Uncompressed { .. } => "uncompressed",
            Self::PluginFilter { .. } => "plugin_filter",
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SmallChunks { chunks, datasets, typical_len_bytes } => write!(
                f,
                "small chunks: {chunks} in {}, most of {typical_len_bytes} bytes: readers spend their time locating \
                 them; rewrite with `raddle rechunk`",
                counted(*datasets, "dataset")
            ),
            Self::LargeChunks { datasets, largest_len_bytes } => write!(
                f,
                "chunks above {} MiB in {} (up to {} MiB): reading a few rows decodes a whole chunk; \
                 rewrite with `raddle rechunk --for events` or `--for random`",
                LARGE_CHUNK_LEN_BYTES >> 20,
                counted(*datasets, "dataset"),
                largest_len_bytes >> 20
            ),
            Self::PaddedChunks { datasets, padding_len_bytes } => write!(
                f,
                "chunks more than twice as long as their dataset in {} ({} MiB of padding before compression): \
                 rewrite with `raddle rechunk`",
                counted(*datasets, "dataset"),
                padding_len_bytes >> 20
            ),
            Self::MuchMetadata { metadata_len_bytes, file_len_bytes } => write!(
                f,
                "{} % of the file is metadata ({} MiB): merge files of this kind with `raddle merge`, \
                 or rewrite it with `raddle rechunk --compat 1.10`, whose indexes are smaller",
                percent(*metadata_len_bytes, *file_len_bytes),
                metadata_len_bytes >> 20
            ),
            Self::UnusedSpace { unused_len_bytes, file_len_bytes } => write!(
                f,
                "{} % of the file is unused ({} MiB of free space or leftovers): rewrite with `raddle rechunk`",
                percent(*unused_len_bytes, *file_len_bytes),
                unused_len_bytes >> 20
            ),
            Self::IndexedEmptyDatasets { datasets } => write!(
                f,
                "a chunk index without any chunks in {}: rewrite with `raddle rechunk`",
                counted(*datasets, "empty dataset")
            ),
            Self::Uncompressed { datasets, stored_len_bytes } => write!(
                f,
                "no compression in {} ({} MiB): try `raddle rechunk --compress fast`",
                counted(*datasets, "dataset"),
                stored_len_bytes >> 20
            ),
            Self::PluginFilter { name, id, datasets } => write!(
                f,
                "filter {id} ({name}) in {}: stock HDF5 cannot read it without a plug-in",
                counted(*datasets, "dataset")
            ),
        }
    }
}

/// Formats a number of things: `1 dataset`, `20 datasets`.
fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(whole.max(1))) as u64
}

/// Serialises as an object with the rule's name and its text.
impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct AdviceRecord {
            rule: &'static str,
            text: String,
        }
        AdviceRecord { rule: self.name(), text: self.to_string() }.serialize(serializer)
    }
}
