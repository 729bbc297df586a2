//! Choice of chunk shapes for the output's datasets from the way they will be read.
//!
//! Pure functions of row counts and sizes; the constants explain the choices. Invariant: a chunk shape has no zero,
//! fits HDF5's limit of 4 GiB, and never exceeds fixed maximum dimensions.

use raddle_core::plan::extent::values_len_bytes;
use serde::{Deserialize, Serialize};

/// Read pattern for which an output is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayoutPolicy {
    /// Tables read by ranges of events: the columns of a group have the same number of rows per chunk.
    #[default]
    Events,
    /// Whole datasets read from end to end: large chunks.
    Scan,
    /// Single rows read at random positions: small chunks.
    Random,
    /// Reads over a network: chunks of several MiB, metadata at the start.
    Cloud,
    /// Series of single places of a CF grid: chunks that are long in time and small in space.
    #[cfg_attr(feature = "clap", value(name = "timeseries"))]
    #[serde(rename = "timeseries")]
    TimeSeries,
    /// Maps of a CF grid: chunks of one or few times and whole maps.
    Maps,
    /// As in the first input.
    Keep,
    /// CMIP7 datasets: one chunk for time and its bounds, chunks of at least 4 MiB for the variable, others as in the
    /// first input
    Cmip7,
}

impl LayoutPolicy {
    /// Returns the word of the policy.
    pub fn word(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Scan => "scan",
            Self::Random => "random",
            Self::Cloud => "cloud",
            Self::TimeSeries => "timeseries",
            Self::Maps => "maps",
            Self::Keep => "keep",
            Self::Cmip7 => "cmip7",
        }
    }

    /// Returns the policy of datasets without a time axis.
    pub(crate) fn without_time(self) -> Self {
        match self {
            Self::TimeSeries | Self::Maps => Self::Events,
            other => other,
        }
    }
}

/// Largest chunk of a typical column under [`LayoutPolicy::Events`]. One MiB of 4-byte values is 262,144 rows, the
/// chunk that NOvA settled on; larger chunks made its parallel readers inflate the same chunk twice.
const EVENTS_CHUNK_LEN_BYTES: u64 = 1 << 20;
/// Number of rows per chunk of wide datasets under [`LayoutPolicy::Events`], as in NOvA's pixel maps.
const EVENTS_WIDE_ROWS: u64 = 128;
/// Minimum size of a row, in bytes, for a dataset to count as wide.
pub(crate) const WIDE_ROW_LEN_BYTES: u64 = 1024;
/// Chunk size under [`LayoutPolicy::Scan`]: large enough that seeks and per-chunk costs vanish, small enough for
/// caches.
const SCAN_CHUNK_LEN_BYTES: u64 = 4 << 20;
/// Chunk size under [`LayoutPolicy::Random`]: reading one row costs inflating its chunk.
const RANDOM_CHUNK_LEN_BYTES: u64 = 64 << 10;
/// Chunk size under [`LayoutPolicy::Cloud`], uncompressed: object stores serve ranges of 8 to 16 MB best; chunks
/// compress two to eight times.
const CLOUD_CHUNK_LEN_BYTES: u64 = 8 << 20;
/// Row size above which a row is split along the next dimensions.
const MAX_ROW_CHUNK_LEN_BYTES: u64 = 16 << 20;

/// Sizes of a dataset, on which its layout depends.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// Dimensions in the output.
    pub dims: &'a [u64],
    /// Size of one element in bytes.
    pub element_len_bytes: u64,
    /// Chunk shape in the first input that has one.
    pub input_chunk: Option<&'a [u64]>,
}

impl Shape<'_> {
    fn row_len_bytes(&self) -> u64 {
        values_len_bytes(&self.dims[1..], self.element_len_bytes).max(1)
    }

    fn is_wide(&self) -> bool {
        self.row_len_bytes() >= WIDE_ROW_LEN_BYTES
    }
}

/// Returns the number of rows per chunk for all narrow columns of a table: the largest power of two for which the
/// median column's chunk does not exceed `EVENTS_CHUNK_LEN_BYTES`.
pub fn table_rows_per_chunk<'a>(columns: impl Iterator<Item = Shape<'a>>) -> u64 {
    let mut row_lens: Vec<u64> = columns.filter(|shape| !shape.is_wide()).map(|shape| shape.row_len_bytes()).collect();
    row_lens.sort_unstable();
    let median = row_lens.get(row_lens.len() / 2).copied().unwrap_or(4);
    let rows = (EVENTS_CHUNK_LEN_BYTES / median).max(1);
    1 << rows.ilog2()
}

/// Returns the chunk shape of a dataset. `table_rows` is the result of [`table_rows_per_chunk`] for its group.
pub fn chunk_shape(policy: LayoutPolicy, shape: Shape<'_>, table_rows: u64) -> Vec<u64> {
    let row_len_bytes = shape.row_len_bytes();
    let rows_of = |chunk_len_bytes: u64| (chunk_len_bytes / row_len_bytes).max(1);
    let rows = match policy {
        LayoutPolicy::Keep | LayoutPolicy::Cmip7 => match shape.input_chunk {
            Some(chunk) => return chunk.to_vec(),
            None => rows_of(EVENTS_CHUNK_LEN_BYTES),
        },
        LayoutPolicy::Events | LayoutPolicy::TimeSeries | LayoutPolicy::Maps if shape.is_wide() => {
            EVENTS_WIDE_ROWS.min(rows_of(MAX_ROW_CHUNK_LEN_BYTES))
        }
        LayoutPolicy::Events | LayoutPolicy::TimeSeries | LayoutPolicy::Maps => table_rows,
        LayoutPolicy::Scan => rows_of(SCAN_CHUNK_LEN_BYTES),
        LayoutPolicy::Random => rows_of(RANDOM_CHUNK_LEN_BYTES),
        LayoutPolicy::Cloud => rows_of(CLOUD_CHUNK_LEN_BYTES),
    };
    let mut chunk: Vec<u64> = shape.dims.iter().map(|&dim| dim.max(1)).collect();
    // A chunk longer than the data would be stored padded.
    chunk[0] = rows.min(shape.dims[0].max(1));
    if shape.dims[0] == 0 {
        chunk[0] = rows; // nothing is stored yet; a later append should find a useful chunk size
    }
    cut_rows(&mut chunk, shape.element_len_bytes, largest_row(policy));
    chunk
}

/// Returns the size up to which rows are not split.
fn largest_row(policy: LayoutPolicy) -> u64 {
    match policy {
        LayoutPolicy::Random => RANDOM_CHUNK_LEN_BYTES,
        LayoutPolicy::Scan => SCAN_CHUNK_LEN_BYTES,
        _ => MAX_ROW_CHUNK_LEN_BYTES,
    }
}

/// Returns the chunk shape with the requested sizes of some axes. The other axes are whole, or as in the input under
/// [`LayoutPolicy::Keep`]; if such a chunk is larger than a row may be, they are halved, the slowest first.
pub(crate) fn shape_with(policy: LayoutPolicy, shape: Shape<'_>, sizes: &[Option<u64>]) -> Vec<u64> {
    let whole = || shape.dims.iter().map(|&dim| dim.max(1)).collect();
    let known = shape.input_chunk.filter(|chunk| policy == LayoutPolicy::Keep && chunk.len() == shape.dims.len());
    let is_kept = known.is_some();
    let mut chunk: Vec<u64> = known.map_or_else(whole, <[u64]>::to_vec);
    for (size, asked) in chunk.iter_mut().zip(sizes) {
        *size = asked.unwrap_or(*size);
    }
    for axis in (0..chunk.len()).filter(|&axis| sizes[axis].is_none() && !is_kept) {
        while values_len_bytes(&chunk, shape.element_len_bytes) > largest_row(policy) && chunk[axis] > 1 {
            chunk[axis] = chunk[axis].div_ceil(2);
        }
    }
    chunk
}

/// Size of a tile of a contiguous dataset: large enough that the costs per tile vanish, small enough to load-balance
/// threads.
const RUN_LEN_BYTES: u64 = 1 << 20;

/// Returns the shape of the tiles in which a contiguous dataset is written: each about `RUN_LEN_BYTES` and contiguous
/// in the file. A tile is whole along the last axes and one element long along the first ones.
pub(crate) fn run_shape(shape: Shape<'_>) -> Vec<u64> {
    let mut run = vec![1; shape.dims.len()];
    let mut len_bytes = shape.element_len_bytes.max(1);
    for (count, &dim) in run.iter_mut().zip(shape.dims).rev() {
        *count = dim.clamp(1, (RUN_LEN_BYTES / len_bytes).max(1));
        if *count < dim {
            break;
        }
        len_bytes = len_bytes.saturating_mul(dim.max(1));
    }
    run
}

/// Limits the chunk to `largest` bytes: reduces the rows first, then halves the other dimensions, slowest first.
fn cut_rows(chunk: &mut [u64], element_len_bytes: u64, largest: u64) {
    let len_bytes = |chunk: &[u64]| values_len_bytes(chunk, element_len_bytes);
    if chunk[0] > 1 && len_bytes(chunk) > largest {
        chunk[0] = (largest / (len_bytes(chunk) / chunk[0]).max(1)).max(1);
    }
    for axis in 1..chunk.len() {
        while len_bytes(chunk) > largest && chunk[axis] > 1 {
            chunk[axis] = chunk[axis].div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64], element_len_bytes: u64) -> Shape<'_> {
        Shape { dims, element_len_bytes, input_chunk: None }
    }

    #[test]
    fn columns_of_a_table_share_rows_per_chunk() {
        let dims = [[1_000_000, 1], [1_000_000, 1], [1_000_000, 1]];
        let sizes = [4, 4, 8];
        let rows = table_rows_per_chunk(dims.iter().zip(sizes).map(|(dims, size)| shape(dims, size)));
        assert_eq!(rows, 262_144);
        for (dims, size) in dims.iter().zip(sizes) {
            assert_eq!(chunk_shape(LayoutPolicy::Events, shape(dims, size), rows), [262_144, 1]);
        }
    }

    #[test]
    fn wide_maps_have_128_rows() {
        assert_eq!(chunk_shape(LayoutPolicy::Events, shape(&[10_000, 3200], 1), 262_144), [128, 3200]);
        let rows = chunk_shape(LayoutPolicy::Events, shape(&[10_000, 300_000], 8), 262_144)[0];
        assert_eq!(rows, 6, "128 rows of 2.4 MB would make a chunk of 307 MB");
    }

    #[test]
    fn a_chunk_is_not_longer_than_the_data() {
        assert_eq!(chunk_shape(LayoutPolicy::Events, shape(&[600, 1], 4), 262_144), [600, 1]);
        assert_eq!(chunk_shape(LayoutPolicy::Events, shape(&[0, 1], 4), 262_144), [262_144, 1]);
    }

    #[test]
    fn a_row_longer_than_the_limit_is_cut() {
        for policy in [LayoutPolicy::Events, LayoutPolicy::Scan, LayoutPolicy::Random, LayoutPolicy::Cloud] {
            let dims = [1000, 8192, 8192];
            let chunk = chunk_shape(policy, shape(&dims, 4), 1);
            let len_bytes: u64 = chunk.iter().product::<u64>() * 4;
            assert!((32 << 10..=16 << 20).contains(&len_bytes), "{policy:?}: {chunk:?}");
        }
    }

    #[test]
    fn tiles_of_contiguous_datasets_are_runs() {
        for (dims, element_len_bytes, expected) in [
            (vec![1_000_000], 4, vec![262_144]),
            (vec![100, 3], 8, vec![100, 3]),
            (vec![100_000, 3], 8, vec![43_690, 3]),
            (vec![10, 500_000, 2], 8, vec![1, 65_536, 2]),
            (vec![10, 500_000, 1], 4 << 20, vec![1, 1, 1]),
            (vec![10, 65_536, 2], 8, vec![1, 65_536, 2]),
            (vec![u64::MAX, u64::MAX], 8, vec![1, 131_072]),
        ] {
            assert_eq!(run_shape(shape(&dims, element_len_bytes)), expected, "{dims:?} of {element_len_bytes}");
        }
    }

    #[test]
    fn no_chunk_reaches_four_gib() {
        let dims = [u64::MAX >> 2, 1 << 20, 1 << 20];
        for policy in [LayoutPolicy::Events, LayoutPolicy::Scan, LayoutPolicy::Random, LayoutPolicy::Cloud] {
            let chunk = chunk_shape(policy, shape(&dims, 1 << 20), 1 << 18);
            assert!(chunk.iter().product::<u64>() * (1 << 20) < 1 << 32, "{policy:?}: {chunk:?}");
        }
    }
}
