//! The bitmask: the axis that each level of the hierarchy splits, which determines the Z and HZ address of every
//! sample.
//!
//! A bitmask is `V` followed by one digit per level, coarsest first; digit d splits axis d, and axis 0 (x) varies
//! fastest in memory. The last letter is the lowest bit of the Z address. These functions define the addresses one
//! sample at a time; [`crate::kernel`] moves the data. Invariant: HZ addresses and the points of the power-of-two box
//! are in bijection.
//!
//! Source: Kumar et al., "Efficient Data Restructuring and Aggregation for I/O Acceleration in PIDX", SC12, section II.

/// Maximum number of axes of an IDX dataset.
pub const MAX_RANK: usize = 5;

/// Names of the axes, fastest first.
pub const AXES: [char; MAX_RANK] = ['x', 'y', 'z', 'u', 'v'];

/// Maximum number of letters of a bitmask: addresses and the marker bit above them fit 63 bits, because OpenVisus reads
/// them as signed.
pub const MAX_LEVEL: u32 = 62;

/// Coordinates or counts per axis, x first; axes beyond the rank hold 0 as a coordinate and 1 as a count.
pub type Point = [u64; MAX_RANK];

/// Reason why a bitmask is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BitmaskError {
    /// `F`: every level stored whole, not as differences of a hierarchy.
    #[error("bitmask {text:?} stores blocks at full resolution (F), which is not supported; only V is")]
    FullResolution {
        /// Text of the bitmask.
        text: String,
    },
    /// Text other than `V` and digits.
    #[error("bitmask {text:?} is not V followed by digits 0 to 4 (character {position})")]
    Letter {
        /// Text of the bitmask.
        text: String,
        /// Position of the first wrong character, from 0.
        position: usize,
    },
    /// More letters than addresses have bits.
    #[error("bitmask has {letters} letters, {MAX_LEVEL} are supported")]
    TooLong {
        /// Number of letters.
        letters: usize,
    },
    /// No axes, too many axes, or an axis without samples.
    #[error("no bitmask for a box of {counts:?} samples: 1 to {MAX_RANK} axes of at least one sample are needed")]
    Counts {
        /// Number of samples per axis.
        counts: Vec<u64>,
    },
}

/// A parsed bitmask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bitmask {
    /// Axis split by each level; level i + 1 is at index i.
    letters: Vec<u8>,
    /// `splits[h][d]`: how often axis d occurs in the first h letters.
    splits: Vec<[u8; MAX_RANK]>,
    /// Number of axes: one more than the highest digit, at least 1.
    rank: usize,
}

impl Bitmask {
    /// Parses `V` followed by digits.
    ///
    /// # Errors
    /// If the text is not a bitmask, or is a bitmask of kind `F`.
    pub fn parse(text: &str) -> Result<Self, BitmaskError> {
        let quoted = || text.chars().take(80).collect::<String>();
        match text.as_bytes().first() {
            Some(b'V') => {}
            Some(b'F') => return Err(BitmaskError::FullResolution { text: quoted() }),
            _ => return Err(BitmaskError::Letter { text: quoted(), position: 0 }),
        }
        let letters = &text.as_bytes()[1..];
        if let Some(wrong) = letters.iter().position(|letter| !(b'0'..b'0' + MAX_RANK as u8).contains(letter)) {
            return Err(BitmaskError::Letter { text: quoted(), position: wrong + 1 });
        }
        Self::from_axes(letters.iter().map(|letter| letter - b'0').collect())
    }

    /// Returns the bitmask that OpenVisus uses for a box of `counts` samples per axis: the axes alternate from the
    /// coarsest level, x first, until each has split its length, rounded up to a power of two. Unless another axis is
    /// longer, x is split last, so most rows stay contiguous (docs/design/018-idx.md).
    ///
    /// # Errors
    /// If `counts` has no axes or more than [`MAX_RANK`], contains 0, or needs more than [`MAX_LEVEL`] letters.
    pub fn for_counts(counts: &[u64]) -> Result<Self, BitmaskError> {
        let refused = || BitmaskError::Counts { counts: counts.to_vec() };
        if counts.is_empty() || counts.len() > MAX_RANK || counts.contains(&0) {
            return Err(refused());
        }
        let mut left = [0u32; MAX_RANK];
        for (left, count) in left.iter_mut().zip(counts) {
            *left = u64::BITS - (count - 1).leading_zeros();
        }
        let mut letters = Vec::new();
        while left.iter().any(|left| *left > 0) {
            for (axis, left) in left.iter_mut().enumerate() {
                if *left > 0 {
                    letters.push(axis as u8);
                    *left -= 1;
                }
            }
        }
        Self::from_axes(letters)
    }

    fn from_axes(letters: Vec<u8>) -> Result<Self, BitmaskError> {
        if letters.len() > MAX_LEVEL as usize {
            return Err(BitmaskError::TooLong { letters: letters.len() });
        }
        let mut splits = vec![[0; MAX_RANK]];
        for (level, axis) in letters.iter().enumerate() {
            let mut next: [u8; MAX_RANK] = splits[level];
            next[usize::from(*axis)] += 1;
            splits.push(next);
        }
        let rank = letters.iter().max().map_or(1, |axis| usize::from(*axis) + 1);
        Ok(Self { letters, splits, rank })
    }

    /// Returns the number of levels after level 0, which is the resolution that holds every sample.
    pub fn max_level(&self) -> u32 {
        self.letters.len() as u32
    }

    /// Returns the number of axes that the letters name.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the axis that `level` (1 to [`Bitmask::max_level`]) splits.
    pub fn axis(&self, level: u32) -> usize {
        usize::from(self.letters[level as usize - 1])
    }

    /// Returns how often the levels up to `level` split each axis.
    pub fn splits(&self, level: u32) -> [u32; MAX_RANK] {
        self.splits[level as usize].map(u32::from)
    }

    /// Returns the base-2 logarithm of the size of the power-of-two box, per axis.
    pub fn log2_counts(&self) -> [u32; MAX_RANK] {
        self.splits(self.max_level())
    }

    /// Returns the base-2 logarithm, per axis, of the spacing of the samples in the levels up to `resolution`.
    pub fn log2_spacing(&self, resolution: u32) -> [u32; MAX_RANK] {
        let (all, coarse) = (self.log2_counts(), self.splits(resolution));
        std::array::from_fn(|axis| all[axis] - coarse[axis])
    }

    /// Returns the Z address of a point of the power-of-two box: the bits of its coordinates, interleaved in the order
    /// of the letters.
    pub fn z_address(&self, point: &Point) -> u64 {
        let mut left = *point;
        let mut z = 0;
        for (shift, axis) in self.letters.iter().rev().enumerate() {
            let coordinate = &mut left[usize::from(*axis)];
            z |= (*coordinate & 1) << shift;
            *coordinate >>= 1;
        }
        z
    }

    /// Returns the point with this Z address.
    pub fn point_of_z(&self, z: u64) -> Point {
        let mut point = [0; MAX_RANK];
        let mut next_bit = [0u32; MAX_RANK];
        for (shift, axis) in self.letters.iter().rev().enumerate() {
            let axis = usize::from(*axis);
            point[axis] |= (z >> shift & 1) << next_bit[axis];
            next_bit[axis] += 1;
        }
        point
    }

    /// Converts a Z address to an HZ address: its trailing zero bits determine the level and are removed.
    pub fn hz_of_z(&self, z: u64) -> u64 {
        let marked = z | 1 << self.max_level();
        marked >> (marked.trailing_zeros() + 1)
    }

    /// Converts an HZ address to a Z address.
    pub fn z_of_hz(&self, hz: u64) -> u64 {
        let max_level = self.max_level();
        ((hz << 1 | 1) << (max_level - level_of(hz))) & ((1 << max_level) - 1)
    }

    /// Returns the HZ address of a point of the power-of-two box.
    pub fn hz_address(&self, point: &Point) -> u64 {
        self.hz_of_z(self.z_address(point))
    }

    /// Returns the point with this HZ address.
    pub fn point_of_hz(&self, hz: u64) -> Point {
        self.point_of_z(self.z_of_hz(hz))
    }
}

/// Returns the level that holds `hz`: level 0 is the origin, level h the addresses from 2^(h-1) to 2^h - 1.
pub fn level_of(hz: u64) -> u32 {
    u64::BITS - hz.leading_zeros()
}

impl std::str::FromStr for Bitmask {
    type Err = BitmaskError;

    fn from_str(text: &str) -> Result<Self, BitmaskError> {
        Self::parse(text)
    }
}

impl std::fmt::Display for Bitmask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("V")?;
        self.letters.iter().try_for_each(|axis| write!(formatter, "{axis}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Range;

    /// The 8x8 example of the paper's figure 1: HZ addresses in rows y = 0 to 7, each with x = 0 to 7.
    const EIGHT_BY_EIGHT: [[u64; 8]; 8] = [
        [0, 32, 8, 34, 2, 40, 10, 42],
        [16, 33, 17, 35, 20, 41, 21, 43],
        [4, 36, 9, 38, 5, 44, 11, 46],
        [18, 37, 19, 39, 22, 45, 23, 47],
        [1, 48, 12, 50, 3, 56, 14, 58],
        [24, 49, 25, 51, 28, 57, 29, 59],
        [6, 52, 13, 54, 7, 60, 15, 62],
        [26, 53, 27, 55, 30, 61, 31, 63],
    ];

    #[test]
    fn the_eight_by_eight_example() {
        let bitmask = Bitmask::parse("V101010").unwrap();
        for (y, row) in EIGHT_BY_EIGHT.iter().enumerate() {
            for (x, hz) in row.iter().enumerate() {
                assert_eq!(bitmask.hz_address(&[x as u64, y as u64, 0, 0, 0]), *hz, "x {x}, y {y}");
            }
        }
    }

    /// Returns the first and last address, the number of samples and the bound of the finest level in a box.
    fn finest(x: Range<u64>, y: Range<u64>) -> (u64, u64, usize, u64) {
        let bitmask = Bitmask::parse("V101010").unwrap();
        let addresses: Vec<u64> = x
            .flat_map(|x| y.clone().map(move |y| (x, y)))
            .map(|(x, y)| bitmask.hz_address(&[x, y, 0, 0, 0]))
            .filter(|hz| level_of(*hz) == 6)
            .collect();
        let (first, last) = (*addresses.iter().min().unwrap(), *addresses.iter().max().unwrap());
        (first, last, addresses.len(), last - first + 1)
    }

    /// Table I of the paper. It counts P2 and P3 counter-clockwise in (b) and (c), and misprints the bound of P1 in
    /// (c), 40:45, as 5.
    #[test]
    fn table_one() {
        let regular = [(0, 0), (4, 0), (0, 4), (4, 4)].map(|(x, y)| finest(x..x + 4, y..y + 4));
        assert_eq!(regular, [(32, 39, 8, 8), (40, 47, 8, 8), (48, 55, 8, 8), (56, 63, 8, 8)]);
        let irregular = [(0, 0), (3, 0), (3, 3), (0, 3)].map(|(x, y)| finest(x..x + 3, y..y + 3));
        assert_eq!(irregular, [(32, 36, 3, 5), (34, 44, 6, 11), (39, 57, 6, 19), (37, 49, 3, 13)]);
        let restructured = [finest(0..4, 0..4), finest(4..6, 0..4), finest(4..6, 4..6), finest(0..4, 4..6)];
        assert_eq!(restructured, [(32, 39, 8, 8), (40, 45, 4, 6), (56, 57, 2, 2), (48, 51, 4, 4)]);
    }

    #[test]
    fn defaults_are_those_of_openvisus() {
        let text = |counts: &[u64]| Bitmask::for_counts(counts).unwrap().to_string();
        assert_eq!(text(&[22, 36, 22]), "V0120120120120121");
        assert_eq!(text(&[8, 8]), "V010101");
        assert_eq!(text(&[1]), "V");
        assert_eq!(text(&[2, 1, 3]), "V022");
        assert!(matches!(Bitmask::for_counts(&[4, 0]), Err(BitmaskError::Counts { .. })));
        assert!(matches!(Bitmask::for_counts(&[1 << 40, 1 << 40]), Err(BitmaskError::TooLong { .. })));
    }

    #[test]
    fn anything_but_a_bitmask_is_refused() {
        assert!(matches!(Bitmask::parse("F0101"), Err(BitmaskError::FullResolution { .. })));
        assert!(matches!(Bitmask::parse(""), Err(BitmaskError::Letter { position: 0, .. })));
        assert!(matches!(Bitmask::parse("V015"), Err(BitmaskError::Letter { position: 3, .. })));
        assert!(matches!(Bitmask::parse("V0é"), Err(BitmaskError::Letter { position: 2, .. })));
        assert!(matches!(Bitmask::parse(&format!("V{}", "01".repeat(32))), Err(BitmaskError::TooLong { .. })));
        assert_eq!(Bitmask::parse(&format!("V{}", "0".repeat(62))).unwrap().hz_address(&[0; 5]), 0);
    }

    fn bitmasks() -> impl Strategy<Value = Bitmask> {
        prop::collection::vec(0u8..5, 0..62).prop_map(|letters| Bitmask::from_axes(letters).unwrap())
    }

    proptest! {
        #[test]
        fn addresses_and_points_are_in_bijection(bitmask in bitmasks(), seed: u64) {
            let hz = seed & ((1 << bitmask.max_level()) - 1);
            let point = bitmask.point_of_hz(hz);
            prop_assert_eq!(bitmask.hz_address(&point), hz);
            for (coordinate, log2) in point.iter().zip(bitmask.log2_counts()) {
                prop_assert!(coordinate >> log2 == 0);
            }
            prop_assert_eq!(Bitmask::parse(&bitmask.to_string()).unwrap(), bitmask);
        }

        #[test]
        fn the_levels_up_to_a_resolution_are_a_lattice(bitmask in bitmasks(), seed: u64, level in 0u32..62) {
            let resolution = level.min(bitmask.max_level());
            let point = bitmask.point_of_z(seed & ((1 << bitmask.max_level()) - 1));
            let spacing = bitmask.log2_spacing(resolution);
            let on_lattice = point.iter().zip(spacing).all(|(at, log2)| at & ((1 << log2) - 1) == 0);
            prop_assert_eq!(level_of(bitmask.hz_address(&point)) <= resolution, on_lattice);
        }
    }
}
