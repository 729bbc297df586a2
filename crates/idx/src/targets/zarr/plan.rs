//! Plan of the shards of a time step: the samples of each shard, and the ranks that hold most of them.
//!
//! Samples are moved elsewhere. Invariant: the engine's plan has one array with one tile per shard, so the rank that
//! owns the tile writes the whole shard; two ranks cannot write the same shard.

use super::fault::ZarrFault;
use super::layout::ImageLayout;
use super::shard::ShardForm;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::write::holders::SampleHolders;
use raddle_core::plan::extent::product;
use raddle_core::plan::{ArrayPlan, Plan};
use raddle_core::ranks::communicator::Rank;
use std::collections::HashMap;
use std::path::PathBuf;

/// Maximum number of shards of a time step, and of an array that is read: planning takes a few hundred bytes of memory
/// per shard.
pub(crate) const MAX_SHARDS: u64 = 1 << 22;

/// The shards of a level of a field, x fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LevelShards {
    field: usize,
    level: usize,
    /// Number of the first shard.
    first: u64,
    /// Number of shards per axis.
    grid: Point,
}

/// A shard of a level of a field, and its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardPlace {
    pub(crate) field: usize,
    pub(crate) level: usize,
    /// Number of the shard along each axis of the samples.
    pub(crate) number: Point,
    /// Samples of the shard that the level has.
    pub(crate) region: SampleBox,
}

/// The shards of a time step.
#[derive(Debug, Clone)]
pub(crate) struct ShardPlan<'a> {
    pub(crate) form: &'a ImageLayout,
    /// Plan for the engine.
    pub(crate) tiles: Plan,
    /// Form of the shards of each field.
    pub(crate) shard_forms: Vec<ShardForm>,
    groups: Vec<LevelShards>,
}

impl<'a> ShardPlan<'a> {
    pub(crate) fn new(form: &'a ImageLayout) -> Result<Self, ZarrFault> {
        let shard_forms: Vec<_> = (0..form.fields.len()).map(|field| ShardForm::of(form, field)).collect();
        let (mut groups, mut next) = (Vec::new(), 0u64);
        for field in 0..form.fields.len() {
            for (level, of) in form.levels.iter().enumerate() {
                let grid: Point = std::array::from_fn(|axis| of.counts[axis].div_ceil(form.shard[axis]));
                groups.push(LevelShards { field, level, first: next, grid });
                next = next.saturating_add(product(&grid).unwrap_or(u64::MAX));
            }
        }
        if next > MAX_SHARDS {
            return Err(ZarrFault::TooManyShards { shards: next, limit: MAX_SHARDS });
        }
        let mut plan = Self { form, tiles: Plan::default(), shard_forms, groups };
        let array = |shard: u32| {
            let place = plan.place(shard);
            let sample_len_bytes = form.fields[place.field].1.len_bytes() as u64;
            let samples = place.region.sample_count().unwrap_or(u64::MAX);
            let element_len_bytes = samples.saturating_mul(sample_len_bytes);
            ArrayPlan { shape: vec![1], tile_shape: vec![1], element_len_bytes, ..ArrayPlan::default() }
        };
        // The number of shards was checked to fit 32 bits.
        plan.tiles = Plan { arrays: (0..next as u32).map(array).collect() };
        Ok(plan)
    }

    /// Returns the number of chunks, whether stored or not.
    pub(crate) fn chunk_count(&self) -> u64 {
        let chunks = |group: &LevelShards| {
            let counts = &self.form.levels[group.level].counts;
            (0..MAX_RANK).map(|axis| counts[axis].div_ceil(self.form.chunk[axis])).product::<u64>()
        };
        self.groups.iter().map(chunks).sum()
    }

    /// Returns the shard with this number.
    pub(crate) fn place(&self, shard: u32) -> ShardPlace {
        let group = self.groups.partition_point(|group| group.first <= u64::from(shard)).saturating_sub(1);
        let LevelShards { field, level, first, grid } = self.groups[group];
        let mut rest = u64::from(shard) - first;
        let mut number = [0; MAX_RANK];
        for axis in 0..MAX_RANK {
            number[axis] = rest % grid[axis];
            rest /= grid[axis];
        }
        let domain = self.form.levels[level].domain();
        let whole = self.shard_forms[field].shard_box(&number);
        ShardPlace { field, level, number, region: whole.intersection(&domain).unwrap_or(domain) }
    }

    /// Returns the index of the array of a field's level among the arrays of all fields and levels.
    pub(crate) fn array_of(&self, field: usize, level: usize) -> usize {
        field * self.form.levels.len() + level
    }

    /// Returns the path of a shard, relative to the folder of the image.
    pub(crate) fn path(&self, place: &ShardPlace, step: u64) -> PathBuf {
        let numbers = self.form.of_array(place.field, step, 0, &|axis| place.number[axis]);
        let mut path = PathBuf::from(format!("{}/c", place.level));
        path.extend(numbers.iter().map(u64::to_string));
        path
    }
}

/// The ranks that hold most samples of each shard.
#[derive(Debug, Default)]
pub(crate) struct ShardHolders {
    /// Holders of the samples of each shard, by level and shard number.
    of_shards: HashMap<(usize, Point), SampleHolders>,
}

impl ShardHolders {
    /// Finds the ranks of shards for the boxes of `partitions`, one partition per level.
    pub(crate) fn new(form: &ImageLayout, partitions: &[Vec<Vec<SampleBox>>]) -> Self {
        let mut of_shards: HashMap<(usize, Point), SampleHolders> = HashMap::new();
        for (level, partition) in partitions.iter().enumerate() {
            for (rank, boxes) in (0u32..).zip(partition) {
                let mut sample_counts: HashMap<Point, u64> = HashMap::new();
                boxes.iter().for_each(|of| {
                    each_shard(of, &form.shard, |number, samples| {
                        *sample_counts.entry(number).or_default() += samples;
                    })
                });
                for (number, samples) in sample_counts {
                    of_shards.entry((level, number)).or_default().add(rank, samples);
                }
            }
        }
        Self { of_shards }
    }

    /// Returns the ranks that hold the most samples of a shard, with their numbers of samples, largest first.
    pub(crate) fn largest(&self, place: &ShardPlace) -> impl Iterator<Item = (Rank, u64)> + '_ {
        self.of_shards.get(&(place.level, place.number)).into_iter().flat_map(SampleHolders::largest)
    }

    /// Returns the number of ranks that hold samples of a shard.
    pub(crate) fn count(&self, place: &ShardPlace) -> u64 {
        self.of_shards.get(&(place.level, place.number)).map_or(0, SampleHolders::count)
    }
}

/// Calls `each` with every shard in which a box has samples, and with the number of these samples.
pub(crate) fn each_shard(of: &SampleBox, shard: &Point, mut each: impl FnMut(Point, u64)) {
    let first: Point = std::array::from_fn(|axis| of.start[axis] / shard[axis]);
    let grid: Point = std::array::from_fn(|axis| of.end[axis].div_ceil(shard[axis]) - first[axis]);
    for place in 0..product(&grid).unwrap_or(0) {
        let mut rest = place;
        let number: Point = std::array::from_fn(|axis| {
            let at = rest % grid[axis];
            rest /= grid[axis];
            first[axis] + at
        });
        let whole = SampleBox {
            start: std::array::from_fn(|axis| number[axis] * shard[axis]),
            end: std::array::from_fn(|axis| (number[axis] + 1).saturating_mul(shard[axis])),
        };
        each(number, whole.intersection(of).and_then(|part| part.sample_count()).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::zarr::FormOptions;

    fn form() -> ImageLayout {
        let fields = ["a", "b"].map(|name| (name.to_owned(), "uint16".parse().unwrap())).to_vec();
        let options = FormOptions {
            chunk: Some(vec![2, 2]),
            shard: Some(vec![4, 2]),
            levels: Some(2),
            steps: Some(9),
            ..FormOptions::default()
        };
        ImageLayout::new(&[7, 5], fields, &options).unwrap()
    }

    #[test]
    fn every_sample_is_in_one_shard() {
        let form = form();
        let plan = ShardPlan::new(&form).unwrap();
        // Two fields of 2 x 3 shards and, of 4 x 3 samples, 1 x 2.
        assert_eq!((plan.tiles.arrays.len(), plan.chunk_count()), (16, 2 * (4 * 3 + 2 * 2)));
        let places: Vec<_> = (0..16).map(|shard| plan.place(shard)).collect();
        for field in 0..2 {
            for (number, level) in form.levels.iter().enumerate() {
                let of = places.iter().filter(|place| (place.field, place.level) == (field, number));
                let boxes = of.map(|place| place.region).collect();
                crate::write::restructure::check_partition(&level.domain(), &[boxes]).unwrap();
            }
        }
        assert_eq!(places[5].region, SampleBox::new(&[4, 4], &[3, 1]));
        assert_eq!(plan.tiles.arrays[5].element_len_bytes, 6);
        assert_eq!(plan.path(&places[5], 8), PathBuf::from("0/c/8/2/1"));
        assert_eq!(plan.array_of(places[15].field, places[15].level), 3);
    }

    #[test]
    fn homes_are_where_most_samples_are() {
        let form = form();
        let plan = ShardPlan::new(&form).unwrap();
        let halves = vec![vec![SampleBox::new(&[0, 0], &[5, 5])], vec![SampleBox::new(&[5, 0], &[2, 5])]];
        let coarse = vec![vec![], vec![form.levels[1].domain()]];
        let homes = ShardHolders::new(&form, &[halves, coarse]);
        let of: Vec<_> = (0..8).map(|shard| homes.largest(&plan.place(shard)).next().unwrap().0).collect();
        assert_eq!(of, [0, 1, 0, 1, 0, 1, 1, 1]);
        assert_eq!((homes.count(&plan.place(1)), homes.count(&plan.place(0))), (2, 1));
    }
}
