//! Plan of phase 1: the power-of-two boxes that each rank holds afterwards, and the samples that each rank sends to
//! each other rank.
//!
//! Pure functions of the gathered boxes of all ranks; `exchange` moves the samples. Invariant: the boxes of a
//! [`Restructuring`] are disjoint and cover the domain, and so do the parts of its transfers.
//!
//! Source: Kumar et al., SC12, section IV, Algorithm 1, and section V-C (imposed box size).

use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;

/// Maximum number of imposed boxes: about a hundred for each of 65,536 ranks.
const MAX_BOXES: u64 = 1 << 23;

/// Size of the power-of-two boxes that samples are moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImposedBox {
    /// The longest extent that any rank holds along each axis, rounded up to a power of two.
    #[default]
    Default,
    /// Twice the default along each axis: fewer ranks hold more samples each.
    Expanded,
    /// The longest of these extents along every axis, as in Table II of the paper.
    Cube,
    /// Number of samples per axis, x first, each rounded up to a power of two.
    Counts(Point),
}

/// Reason why the boxes of the ranks do not form a partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionFault {
    /// A box is empty or reaches beyond the dataset.
    #[error("rank {rank} passes the box {region}, which is empty or reaches beyond the dataset")]
    Outside {
        /// Number of the rank.
        rank: usize,
        /// Box of the rank.
        region: SampleBox,
    },
    /// Two boxes overlap.
    #[error("ranks {first} and {second} both pass the samples {part}")]
    Overlap {
        /// One of the two ranks.
        first: usize,
        /// The other rank, which may be the same.
        second: usize,
        /// Samples in both boxes.
        part: SampleBox,
    },
    /// Some samples are in no box.
    #[error("the ranks pass {passed} of the dataset's {needed} samples")]
    Missing {
        /// Number of samples passed.
        passed: u64,
        /// Number of samples of the dataset.
        needed: u64,
    },
    /// The imposed boxes are too small.
    #[error("imposed boxes of {counts:?} samples would give {boxes} boxes, more than {MAX_BOXES}; choose larger boxes")]
    TooManyBoxes {
        /// Number of samples per axis.
        counts: Point,
        /// Number of boxes this would give.
        boxes: u64,
    },
}

/// Checks that the boxes of all ranks are disjoint and together cover the whole `domain`.
///
/// # Errors
/// If a box is empty or extends beyond `domain`, boxes overlap, or samples are not covered. The error describes the
/// first fault found.
pub fn check_partition(domain: &SampleBox, partition: &[Vec<SampleBox>]) -> Result<(), PartitionFault> {
    let (passed, needed) = (check_disjoint(domain, partition)?, domain.sample_count().unwrap_or(u64::MAX));
    if passed != needed {
        return Err(PartitionFault::Missing { passed, needed });
    }
    Ok(())
}

/// Returns the number of ranks that hold samples.
pub(crate) fn holder_count(partition: &[Vec<SampleBox>]) -> u64 {
    partition.iter().filter(|boxes| !boxes.is_empty()).count() as u64
}

/// Checks that the boxes of all ranks are disjoint parts of `domain`; returns their number of samples.
///
/// # Errors
/// If a box is empty or extends beyond `domain`, or boxes overlap. The error describes the first fault found.
pub fn check_disjoint(domain: &SampleBox, partition: &[Vec<SampleBox>]) -> Result<u64, PartitionFault> {
    let mut all: Vec<(SampleBox, usize)> = Vec::new();
    let mut passed = 0u64;
    for (rank, boxes) in partition.iter().enumerate() {
        for of_rank in boxes {
            if of_rank.is_empty() || !domain.contains(of_rank) {
                return Err(PartitionFault::Outside { rank, region: *of_rank });
            }
            passed = passed.saturating_add(of_rank.sample_count().unwrap_or(u64::MAX));
            all.push((*of_rank, rank));
        }
    }
    // Sweeps along the axis with the most distinct starts, so that few boxes are open at once.
    let distinct = |axis: usize| {
        let mut starts: Vec<u64> = all.iter().map(|(of_rank, _)| of_rank.start[axis]).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.len()
    };
    let along = (0..MAX_RANK).max_by_key(|axis| distinct(*axis)).unwrap_or(0);
    all.sort_unstable_by_key(|(of_rank, rank)| (of_rank.start[along], *rank, *of_rank));
    let mut open: Vec<(SampleBox, usize)> = Vec::new();
    for (next, second) in all {
        open.retain(|(before, _)| before.end[along] > next.start[along]);
        if let Some((part, first)) = open.iter().find_map(|(of, rank)| Some((of.intersection(&next)?, *rank))) {
            return Err(PartitionFault::Overlap { first, second, part });
        }
        open.push((next, second));
    }
    Ok(passed)
}

/// A box after phase 1 and the rank that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedBox {
    /// Samples: a power-of-two box, clipped to the domain.
    pub region: SampleBox,
    /// Rank that holds the box.
    pub owner: u32,
}

/// Samples that move from an old box to a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transfer {
    /// Index of the new box.
    pub to_box: u32,
    /// Rank that holds the samples before the restructuring.
    pub from: u32,
    /// Index of the old box on that rank.
    pub from_box: u32,
    /// Samples to move.
    pub part: SampleBox,
}

/// Plan of phase 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restructuring {
    /// Number of samples per axis of an unclipped box, each a power of two.
    pub counts: Point,
    /// New boxes, x fastest.
    pub boxes: Vec<OwnedBox>,
    /// All transfers, including those within a rank, sorted by new box, rank and old box.
    pub transfers: Vec<Transfer>,
}

impl Restructuring {
    /// Plans the restructuring of a `partition` that has passed [`check_partition`].
    ///
    /// # Errors
    /// If there would be too many imposed boxes.
    pub fn new(domain: &SampleBox, partition: &[Vec<SampleBox>], imposed: ImposedBox) -> Result<Self, PartitionFault> {
        let counts = imposed_counts(domain, partition, imposed);
        let first: Point = std::array::from_fn(|axis| domain.start[axis] / counts[axis]);
        let cells: Point = std::array::from_fn(|axis| domain.end[axis].div_ceil(counts[axis]) - first[axis]);
        let boxes = raddle_core::plan::extent::product(&cells).unwrap_or(u64::MAX);
        if boxes > MAX_BOXES {
            return Err(PartitionFault::TooManyBoxes { counts, boxes });
        }
        let cell_box = |cell: &Point| {
            let whole = SampleBox {
                start: std::array::from_fn(|axis| (first[axis] + cell[axis]) * counts[axis]),
                end: std::array::from_fn(|axis| (first[axis] + cell[axis] + 1).saturating_mul(counts[axis])),
            };
            whole.intersection(domain).unwrap_or(*domain)
        };
        let number = |cell: &Point| (0..MAX_RANK).rev().fold(0, |number, axis| number * cells[axis] + cell[axis]);
        let mut transfers = Vec::new();
        for (from, of_rank) in (0u32..).zip(partition) {
            for (from_box, old_box) in (0u32..).zip(of_rank) {
                let low: Point = std::array::from_fn(|axis| old_box.start[axis] / counts[axis] - first[axis]);
                let high: Point = std::array::from_fn(|axis| (old_box.end[axis] - 1) / counts[axis] - first[axis] + 1);
                each_point(&low, &high, |cell| {
                    if let Some(part) = cell_box(cell).intersection(old_box) {
                        transfers.push(Transfer { to_box: number(cell) as u32, from, from_box, part });
                    }
                });
            }
        }
        transfers.sort_unstable();
        let mut owned = Vec::with_capacity(boxes as usize);
        let mut loads = vec![0u64; partition.len().max(1)];
        let mut rest = transfers.as_slice();
        each_point(&[0; MAX_RANK], &cells, |cell| {
            let here = rest.iter().take_while(|transfer| transfer.to_box as usize == owned.len()).count();
            let (parts, others) = rest.split_at(here);
            rest = others;
            let region = cell_box(cell);
            let owner = largest_intersection(parts, &loads);
            loads[owner as usize] += region.sample_count().unwrap_or(0);
            owned.push(OwnedBox { region, owner });
        });
        Ok(Self { counts, boxes: owned, transfers })
    }

    /// Returns the new boxes of each of `ranks` ranks, in the form of [`check_partition`].
    pub fn partition(&self, ranks: usize) -> Vec<Vec<SampleBox>> {
        let mut partition = vec![Vec::new(); ranks];
        for owned in &self.boxes {
            partition[owned.owner as usize].push(owned.region);
        }
        partition
    }
}

fn imposed_counts(domain: &SampleBox, partition: &[Vec<SampleBox>], imposed: ImposedBox) -> Point {
    let longest = |axis: usize| partition.iter().flatten().map(|of| of.counts()[axis]).max().unwrap_or(1);
    // A box larger than the whole domain is of no use.
    let limit = |axis: usize| domain.end[axis].next_power_of_two();
    std::array::from_fn(|axis| {
        let wanted = match imposed {
            ImposedBox::Default => longest(axis),
            ImposedBox::Expanded => longest(axis).next_power_of_two().saturating_mul(2),
            ImposedBox::Cube => (0..MAX_RANK).map(longest).max().unwrap_or(1),
            ImposedBox::Counts(counts) => counts[axis].max(1),
        };
        wanted.min(limit(axis)).next_power_of_two()
    })
}

/// Returns the rank that holds most samples of a box; ties go to the lowest load, then to the lowest rank.
fn largest_intersection(parts: &[Transfer], loads: &[u64]) -> u32 {
    let shares = parts.chunk_by(|a, b| a.from == b.from).map(|of_rank| {
        let samples = of_rank.iter().map(|transfer| transfer.part.sample_count().unwrap_or(0)).sum::<u64>();
        (samples, of_rank[0].from)
    });
    let better = |a: &(u64, u32), b: &(u64, u32)| {
        (a.0, std::cmp::Reverse((loads[a.1 as usize], a.1))).cmp(&(b.0, std::cmp::Reverse((loads[b.1 as usize], b.1))))
    };
    shares.max_by(better).map_or(0, |(_, rank)| rank)
}

/// Calls `each` with every point from `low` to `high` (exclusive), x fastest.
fn each_point(low: &Point, high: &Point, mut each: impl FnMut(&Point)) {
    let mut point = *low;
    if (0..MAX_RANK).any(|axis| low[axis] >= high[axis]) {
        return;
    }
    loop {
        each(&point);
        let mut axis = 0;
        loop {
            if axis == MAX_RANK {
                return;
            }
            point[axis] += 1;
            if point[axis] < high[axis] {
                break;
            }
            point[axis] = low[axis];
            axis += 1;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns boxes of `side`^3 samples on each of `ranks`^3 ranks, as in the paper's weak scaling.
    fn cubes(ranks: u64, side: u64) -> (SampleBox, Vec<Vec<SampleBox>>) {
        bricks([ranks; 3], [side; 3])
    }

    /// Returns a domain of `ranks` ranks per axis, with `sides` samples on each.
    fn bricks(ranks: [u64; 3], sides: [u64; 3]) -> (SampleBox, Vec<Vec<SampleBox>>) {
        let mut partition = Vec::new();
        each_point(&[0; MAX_RANK], &[ranks[0], ranks[1], ranks[2], 1, 1], |at| {
            let start: [u64; 3] = std::array::from_fn(|axis| at[axis] * sides[axis]);
            partition.push(vec![SampleBox::new(&start, &sides)]);
        });
        let counts: [u64; 3] = std::array::from_fn(|axis| ranks[axis] * sides[axis]);
        (SampleBox::new(&[0; 3], &counts), partition)
    }

    fn holders(plan: &Restructuring) -> usize {
        plan.boxes.iter().map(|owned| owned.owner).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// In section V-B of the paper, 4,096 ranks of 15^3 samples become 3,375 of 16^3, or 422 of 32^3 by volume, which
    /// are 8^3 boxes.
    #[test]
    fn default_and_expanded_boxes_of_the_paper() {
        let (domain, partition) = cubes(16, 15);
        check_partition(&domain, &partition).unwrap();
        let default = Restructuring::new(&domain, &partition, ImposedBox::Default).unwrap();
        assert_eq!((default.counts, default.boxes.len()), ([16, 16, 16, 1, 1], 3375));
        assert_eq!(holders(&default), 3375, "no rank holds two while others hold none");
        let expanded = Restructuring::new(&domain, &partition, ImposedBox::Expanded).unwrap();
        assert_eq!((expanded.counts, expanded.boxes.len(), holders(&expanded)), ([32, 32, 32, 1, 1], 512, 512));
        let explicit = Restructuring::new(&domain, &partition, ImposedBox::Counts([60, 1, 250, 1, 1])).unwrap();
        assert_eq!(explicit.counts, [64, 1, 256, 1, 1]);
        let tiny = Restructuring::new(&SampleBox::new(&[0], &[1 << 40]), &[], ImposedBox::Counts([1; MAX_RANK]));
        assert!(matches!(tiny, Err(PartitionFault::TooManyBoxes { .. })));
    }

    /// Table II of the paper has 960^3 samples on 4,096 to 32,768 ranks. Its 422 is 3,375 / 8, by volume; in whole
    /// boxes it is 8^3.
    #[test]
    fn table_two() {
        let rows = [
            ([16, 16, 16], [60, 60, 60], 64, 3375),
            ([16, 16, 32], [60, 60, 30], 64, 3375),
            ([16, 32, 32], [60, 30, 30], 64, 3375),
            ([32, 32, 32], [30, 30, 30], 32, 27000),
        ];
        for (ranks, sides, side, count) in rows {
            let (domain, partition) = bricks(ranks, sides);
            let plan = |imposed| Restructuring::new(&domain, &partition, imposed).unwrap();
            let cube = plan(ImposedBox::Cube);
            assert_eq!((cube.counts, holders(&cube)), ([side, side, side, 1, 1], count), "{ranks:?}");
            let twice = plan(ImposedBox::Counts([2 * side, 2 * side, 2 * side, 1, 1]));
            assert_eq!(holders(&twice), if side == 64 { 512 } else { 3375 }, "{ranks:?}");
            // The default follows the shape of the boxes of the ranks.
            let along = |side: u64| 960usize.div_ceil(if side == 60 { 64 } else { 32 });
            assert_eq!(holders(&plan(ImposedBox::Default)), sides.into_iter().map(along).product::<usize>());
        }
    }

    #[test]
    fn a_cube_has_no_more_than_the_domain() {
        let domain = SampleBox::new(&[0, 0], &[100, 5]);
        let partition = vec![vec![SampleBox::new(&[0, 0], &[100, 3])], vec![SampleBox::new(&[0, 3], &[100, 2])]];
        let plan = Restructuring::new(&domain, &partition, ImposedBox::Cube).unwrap();
        assert_eq!((plan.counts, plan.boxes.len()), ([128, 8, 1, 1, 1], 1));
    }

    #[test]
    fn a_regular_partition_stays_where_it_is() {
        let (domain, partition) = cubes(2, 64);
        let plan = Restructuring::new(&domain, &partition, ImposedBox::Default).unwrap();
        assert_eq!(plan.partition(8), partition);
        assert!(plan.transfers.iter().all(|transfer| plan.boxes[transfer.to_box as usize].owner == transfer.from));
    }

    #[test]
    fn equal_shares_are_spread() {
        // Each of four boxes of 8 samples is halved between the same two ranks.
        let halves = |low: bool| (0..4).map(|at| SampleBox::new(&[at * 8 + if low { 0 } else { 4 }], &[4])).collect();
        let partition = vec![halves(true), halves(false)];
        let domain = SampleBox::new(&[0], &[32]);
        let plan = Restructuring::new(&domain, &partition, ImposedBox::Counts([8, 1, 1, 1, 1])).unwrap();
        assert_eq!(plan.boxes.iter().map(|owned| owned.owner).collect::<Vec<_>>(), [0, 1, 0, 1]);
    }

    #[test]
    fn contradictions_are_named() {
        let domain = SampleBox::new(&[0, 0], &[4, 4]);
        let (left, right) = (SampleBox::new(&[0, 0], &[2, 4]), SampleBox::new(&[2, 0], &[2, 4]));
        let check = |partition: &[Vec<SampleBox>]| check_partition(&domain, partition);
        assert_eq!(check(&[vec![left], vec![], vec![right]]), Ok(()));
        assert_eq!(check(&[vec![left]]), Err(PartitionFault::Missing { passed: 8, needed: 16 }));
        assert_eq!(
            check(&[vec![left, right], vec![left]]),
            Err(PartitionFault::Overlap { first: 0, second: 1, part: left })
        );
        assert!(matches!(
            check(&[vec![SampleBox::new(&[0, 0], &[5, 4])]]),
            Err(PartitionFault::Outside { rank: 0, .. })
        ));
        assert!(matches!(check(&[vec![SampleBox::new(&[0], &[0])]]), Err(PartitionFault::Outside { .. })));
    }

    /// Generates a domain that is cut at random into some boxes, which are assigned to ranks at random.
    pub(crate) fn partitions() -> impl Strategy<Value = (SampleBox, Vec<Vec<SampleBox>>)> {
        let cuts = prop::collection::vec(any::<(u64, usize, u64)>(), 0..12);
        (prop::collection::vec((0u64..9, 1u64..14), 1..6), cuts, 1usize..9, any::<u64>()).prop_map(
            |(axes, cuts, ranks, mut deal)| {
                // Axes beyond the first two are short, so that the power-of-two box stays small.
                let short = |(axis, (start, count)): (usize, (u64, u64))| match axis {
                    0 | 1 => (start, count),
                    _ => (start % 3, 1 + (count - 1) % 5),
                };
                let (start, counts): (Vec<u64>, Vec<u64>) = axes.into_iter().enumerate().map(short).unzip();
                let domain = SampleBox::new(&start, &counts);
                let mut boxes = vec![domain];
                for (which, axis, at) in cuts {
                    let which = which as usize % boxes.len();
                    let axis = axis % counts.len();
                    let of = boxes[which];
                    if of.counts()[axis] > 1 {
                        let middle = of.start[axis] + 1 + at % (of.counts()[axis] - 1);
                        let (mut low, mut high) = (of, of);
                        low.end[axis] = middle;
                        high.start[axis] = middle;
                        boxes[which] = low;
                        boxes.push(high);
                    }
                }
                let mut partition = vec![Vec::new(); ranks];
                for of in boxes {
                    partition[deal as usize % ranks].push(of);
                    deal = deal.rotate_right(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                }
                (domain, partition)
            },
        )
    }

    proptest! {
        #[test]
        fn every_sample_arrives_once(
            (domain, partition) in partitions(),
            kind in 0..3,
            counts in prop::array::uniform5(1u64..20),
        ) {
            let imposed = [ImposedBox::Default, ImposedBox::Expanded, ImposedBox::Counts(counts)][kind as usize];
            prop_assert_eq!(check_partition(&domain, &partition), Ok(()));
            let plan = Restructuring::new(&domain, &partition, imposed).unwrap();
            let ranks = partition.len();
            prop_assert_eq!(check_partition(&domain, &plan.partition(ranks)), Ok(()));
            let parts: Vec<Vec<SampleBox>> = vec![plan.transfers.iter().map(|transfer| transfer.part).collect()];
            prop_assert_eq!(check_partition(&domain, &parts), Ok(()));
            for transfer in &plan.transfers {
                prop_assert!(partition[transfer.from as usize][transfer.from_box as usize].contains(&transfer.part));
                prop_assert!(plan.boxes[transfer.to_box as usize].region.contains(&transfer.part));
            }
            for owned in &plan.boxes {
                let share = |rank: usize| -> u64 {
                    let parts = partition[rank].iter().filter_map(|of| of.intersection(&owned.region));
                    parts.map(|part| part.sample_count().unwrap()).sum()
                };
                let most = (0..ranks).map(share).max().unwrap();
                prop_assert_eq!(share(owned.owner as usize), most);
            }
        }

        #[test]
        fn an_overlap_is_always_found((domain, mut partition) in partitions(), which: usize) {
            let all_boxes: Vec<SampleBox> = partition.iter().flatten().copied().collect();
            partition[0].push(all_boxes[which % all_boxes.len()]);
            let overlaps = matches!(check_partition(&domain, &partition), Err(PartitionFault::Overlap { .. }));
            prop_assert!(overlaps);
        }
    }
}
