//! Choice between assembling tiles one by one, in groups, or through a scratch file.
//!
//! Invariant: a pure function of the array, the chunks of its inputs and the memory.

use super::groups::TileGroups;
use super::slabs::Slabs;
use crate::plan::ArrayPlan;
use crate::plan::extent::values_len_bytes;
use serde::{Deserialize, Serialize};

/// Mean number of decodes per chunk from which tiles are regrouped. Below it, the chunks that a reader keeps between
/// neighbouring tiles suffice.
const MIN_DECODES: f64 = 1.5;

/// Mean number of decodes per chunk from which several ranks move values through a scratch file, which costs about as
/// much as decoding them a few times.
const MIN_DECODES_OF_RANKS: f64 = 8.0;

/// Share of additional decodes that is accepted for smaller groups.
const TOLERANCE: f64 = 0.13;

/// Maximum number of decodes of a chunk, if the memory suffices.
pub const MAX_DECODES: u64 = 2;

/// Chunks of the inputs of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks<'a> {
    /// Number of elements per axis.
    pub shape: &'a [u64],
    /// Whether a chunk must be read as a whole, because it is encoded.
    pub are_whole: bool,
}

/// Memory for assembling the tiles of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileMemory {
    /// Memory for the values of a group or a slab.
    pub group_len_bytes: u64,
    /// Maximum length of the values of neighbouring tiles for which the chunks that a reader keeps suffice. One thread
    /// assembles these tiles, one after the other.
    pub kept_len_bytes: u64,
    /// Maximum length of the parts in which a thread moves values, unless a single element is longer.
    pub part_len_bytes: u64,
}

/// Way in which the tiles of an array are assembled from chunks that extend over many tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Regrouping {
    /// Groups of tiles that are assembled together.
    pub groups: TileGroups,
    /// Boxes of chunks that go through a scratch file first; `None` if the groups are assembled from the inputs.
    pub slabs: Option<Slabs>,
    /// Number of elements per axis of the chunks.
    pub chunk_shape: Vec<u64>,
    /// Maximum length of the parts in which a thread moves values, unless a single element is longer.
    pub part_len_bytes: u64,
    /// Mean number of times that a chunk is decoded.
    pub decodes: f64,
    /// Mean number of times that a chunk would be decoded if tiles were assembled one by one.
    pub decodes_by_tile: f64,
}

impl Regrouping {
    /// Returns the memory for the values of the largest group or slab of `array`.
    pub fn len_bytes(&self, array: &ArrayPlan) -> u64 {
        let len_bytes = |shape: &[u64]| values_len_bytes(shape, array.element_len_bytes);
        let of_slab = self.slabs.as_ref().map_or(0, |slabs| len_bytes(&slabs.shape));
        len_bytes(&self.groups.shape(array)).max(of_slab)
    }

    /// Returns the regrouping for several ranks, which do not share memory: through a scratch file, with slabs as large
    /// as the groups of one process and groups of up to `group_len_bytes`. Returns `None` if that costs more than
    /// decoding chunks for every tile.
    pub fn for_ranks(self, array: &ArrayPlan, group_len_bytes: u64) -> Option<Self> {
        let limit = self.len_bytes(array);
        (self.decodes_by_tile >= MIN_DECODES_OF_RANKS)
            .then(|| self.through_scratch(array, limit, group_len_bytes.min(limit)))
    }

    /// Returns the same regrouping through a scratch file, with slabs of up to `slab_len_bytes` and groups of up to
    /// `group_len_bytes`, or of one tile.
    #[must_use]
    pub fn through_scratch(self, array: &ArrayPlan, slab_len_bytes: u64, group_len_bytes: u64) -> Self {
        let slabs = Slabs::choose(array, &self.chunk_shape, slab_len_bytes);
        let groups = largest_groups(array, &self.chunk_shape, group_len_bytes);
        Self { groups, slabs: Some(slabs), decodes: 1.0, ..self }
    }

    /// Returns the number of bytes that go through a scratch file.
    pub fn scratch_len_bytes(&self, array: &ArrayPlan) -> u64 {
        if self.slabs.is_some() { array.len_bytes() } else { 0 }
    }
}

/// Chooses how the tiles of `array` are assembled from `chunks` within `memory`. Returns `None` if tiles are assembled
/// one by one.
pub fn choose(array: &ArrayPlan, chunks: Chunks<'_>, memory: TileMemory) -> Option<Regrouping> {
    let TileMemory { group_len_bytes: limit_len_bytes, kept_len_bytes, part_len_bytes } = memory;
    let rank = array.shape.len();
    if chunks.shape.len() != rank || array.tile_count() <= 1 || chunks.shape.contains(&0) {
        return None;
    }
    let by_tile = Overlaps::of(&array.shape, chunks.shape, &array.tile_shape);
    if by_tile.mean < MIN_DECODES {
        return None;
    }
    let regrouping = |groups, slabs, decodes| Regrouping {
        groups,
        slabs,
        chunk_shape: chunks.shape.to_vec(),
        part_len_bytes,
        decodes,
        decodes_by_tile: by_tile.mean,
    };
    let candidates = candidates(array, chunks.shape, limit_len_bytes);
    let len_bytes = |groups: &TileGroups| values_len_bytes(&groups.shape(array), array.element_len_bytes);
    let of = |groups: &TileGroups| Overlaps::of(&array.shape, chunks.shape, &groups.shape(array));
    let all_decoded_once = |groups: &TileGroups| of(groups).mean < MIN_DECODES && len_bytes(groups) <= kept_len_bytes;
    if values_len_bytes(&array.shape, array.element_len_bytes) <= kept_len_bytes
        || candidates.iter().any(all_decoded_once)
    {
        return None;
    }
    let fewest = candidates.iter().map(|groups| of(groups).mean).fold(f64::INFINITY, f64::min);
    let is_good = |groups: &&TileGroups| {
        let Overlaps { mean, max } = of(groups);
        mean <= fewest * (1.0 + TOLERANCE) && (max <= MAX_DECODES || !chunks.are_whole)
    };
    if let Some(groups) = candidates.iter().filter(is_good).min_by_key(|groups| len_bytes(groups)) {
        return Some(regrouping(*groups, None, of(groups).mean));
    }
    if !chunks.are_whole {
        return None;
    }
    // Half of the memory for a group, so that one is read while the one before it is encoded.
    Some(regrouping(TileGroups { axis: 0, tiles: 1 }, None, 1.0).through_scratch(
        array,
        limit_len_bytes,
        limit_len_bytes / 2,
    ))
}

/// Returns the largest groups of up to `limit_len_bytes`, or groups of one tile.
fn largest_groups(array: &ArrayPlan, chunk_shape: &[u64], limit_len_bytes: u64) -> TileGroups {
    let candidates = candidates(array, chunk_shape, limit_len_bytes);
    let largest =
        candidates.into_iter().max_by_key(|groups| values_len_bytes(&groups.shape(array), array.element_len_bytes));
    largest.unwrap_or(TileGroups { axis: array.shape.len() - 1, tiles: 1 })
}

/// Returns groups that fit the memory: for each axis the smallest, the largest, those that end where chunks end, and
/// those that are a few times as long as a chunk.
pub(super) fn candidates(array: &ArrayPlan, chunk_shape: &[u64], limit_len_bytes: u64) -> Vec<TileGroups> {
    let mut candidates = Vec::new();
    for (axis, &chunk) in chunk_shape.iter().enumerate() {
        let one = values_len_bytes(&TileGroups { axis, tiles: 1 }.shape(array), array.element_len_bytes);
        let most = (limit_len_bytes / one.max(1)).min(array.tiles_along(axis));
        if most == 0 {
            continue;
        }
        let tile = array.tile_shape[axis];
        let aligned = chunk / gcd(chunk, tile);
        let covering = chunk.div_ceil(tile);
        let multiples = [1, 2, 4, 8].map(|times| covering * times);
        let all = [1, most, aligned, most / aligned * aligned].into_iter().chain(multiples);
        candidates.extend(all.filter(|tiles| (1..=most).contains(tiles)).map(|tiles| TileGroups { axis, tiles }));
    }
    candidates
}

/// Number of cells of one grid that a cell of another grid overlaps.
pub(super) struct Overlaps {
    pub mean: f64,
    pub max: u64,
}

impl Overlaps {
    /// Returns the overlaps of `cell`s with `others` in an array of `shape`.
    pub fn of(shape: &[u64], cell: &[u64], others: &[u64]) -> Self {
        let mut overlaps = Self { mean: 1.0, max: 1 };
        for axis in 0..shape.len() {
            let (len, cell, other) = (shape[axis].max(1), cell[axis].min(shape[axis]).max(1), others[axis].max(1));
            let (cells, groups) = (len.div_ceil(cell), len.div_ceil(other));
            let common = gcd(cell, other);
            // Every border of one grid inside the other adds an overlap, unless both have a border there.
            let shared = (len - 1) / (cell / common).saturating_mul(other);
            overlaps.mean *= (cells + groups - 1 - shared) as f64 / cells as f64;
            let reach = (cell - 1).saturating_add(other - common) / other + 1;
            overlaps.max = overlaps.max.saturating_mul(reach.min(groups));
        }
        overlaps
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one.max(1) } else { gcd(other, one % other) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn array(shape: &[u64], tile_shape: &[u64]) -> ArrayPlan {
        ArrayPlan {
            shape: shape.to_vec(),
            tile_shape: tile_shape.to_vec(),
            element_len_bytes: 4,
            ..ArrayPlan::default()
        }
    }

    fn whole(shape: &[u64]) -> Chunks<'_> {
        Chunks { shape, are_whole: true }
    }

    /// Chooses with the usual memory for kept chunks.
    fn choose(array: &ArrayPlan, chunks: Chunks<'_>, group_len_bytes: u64) -> Option<Regrouping> {
        super::choose(array, chunks, TileMemory { group_len_bytes, kept_len_bytes: 1 << 20, part_len_bytes: 1 << 20 })
    }

    #[test]
    fn a_transpose_takes_one_group_or_a_scratch_file() {
        let array = array(&[4000, 20_000], &[4000, 100]);
        let all = choose(&array, whole(&[10, 20_000]), 1 << 30).unwrap();
        assert_eq!((all.groups, &all.slabs, all.decodes), (TileGroups { axis: 0, tiles: 1 }, &None, 1.0));
        assert_eq!(all.decodes_by_tile, 200.0);
        let some = choose(&array, whole(&[10, 20_000]), 64 << 20).unwrap();
        let slabs = some.slabs.as_ref().unwrap();
        assert_eq!((slabs.shape.as_slice(), some.decodes), ([830, 20_000].as_slice(), 1.0));
        assert_eq!(some.scratch_len_bytes(&array), 320_000_000);
        assert!(some.len_bytes(&array) <= 64 << 20);
    }

    #[test]
    fn two_groups_decode_twice_and_need_no_scratch_file() {
        let array = array(&[4000, 20_000], &[4000, 100]);
        let two = choose(&array, whole(&[10, 20_000]), 170 << 20).unwrap();
        assert_eq!((two.slabs, two.decodes), (None, 2.0));
    }

    #[test]
    fn rows_that_are_joined_need_no_groups() {
        assert_eq!(choose(&array(&[1 << 20], &[1 << 16]), whole(&[1000]), 1 << 20), None);
        assert_eq!(choose(&array(&[1 << 20, 8], &[1 << 16, 8]), whole(&[128, 8]), 1 << 20), None);
        assert_eq!(choose(&array(&[100, 100], &[100, 100]), whole(&[1, 100]), 1 << 20), None);
    }

    #[test]
    fn tiles_within_the_reach_of_a_reader_need_no_groups() {
        // Every chunk has 16 tiles, which one thread assembles one after the other.
        assert_eq!(choose(&array(&[1 << 24], &[1 << 10]), whole(&[1 << 14]), 1 << 30), None);
        let small = array(&[500, 500], &[500, 10]);
        assert_eq!(choose(&small, whole(&[10, 500]), 1 << 30), None);
        // A reader that keeps fewer chunks reaches less far.
        let memory = TileMemory { group_len_bytes: 1 << 30, kept_len_bytes: 16 << 10, part_len_bytes: 1 << 20 };
        assert_eq!(super::choose(&small, whole(&[10, 500]), memory).unwrap().decodes, 1.0);
    }

    #[test]
    fn values_that_can_be_read_in_parts_need_no_scratch_file() {
        let array = array(&[4000, 20_000], &[4000, 100]);
        let parts = Chunks { shape: &[1, 20_000], are_whole: false };
        assert_eq!(choose(&array, parts, 64 << 20).unwrap().slabs, None);
        assert_eq!(choose(&array, parts, 1), None);
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_the_intervals(len in 1_u64..60, cell in 1_u64..20, other in 1_u64..20) {
            let cell = cell.min(len);
            let counts: Vec<u64> = (0..len.div_ceil(cell))
                .map(|at| ((at * cell + cell).min(len) - 1) / other - at * cell / other + 1)
                .collect();
            let overlaps = Overlaps::of(&[len], &[cell], &[other]);
            let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            prop_assert!((overlaps.mean - mean).abs() < 1e-9, "{} {mean}", overlaps.mean);
            prop_assert!(overlaps.max >= counts.into_iter().max().unwrap());
        }

        #[test]
        fn a_choice_keeps_its_promises(
            axes in prop::collection::vec((1_u64..40, 1_u64..12, 1_u64..12), 1..4),
            limit in (1_u64..4000).prop_map(|limit| limit << 18),
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1.min(axis.0)).collect();
            let tile: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
            let array = ArrayPlan { element_len_bytes: 1 << 20, ..array(&shape, &tile) };
            if let Some(found) = choose(&array, whole(&chunk), limit) {
                prop_assert!(found.decodes <= 2.0 && found.decodes_by_tile >= MIN_DECODES);
                let fits = found.len_bytes(&array) <= limit;
                let chunk_or_tile = values_len_bytes(&chunk, 1 << 20).max(array.tile_len_bytes());
                prop_assert!(fits || found.slabs.is_some() && found.len_bytes(&array) <= chunk_or_tile);
            }
        }
    }
}
