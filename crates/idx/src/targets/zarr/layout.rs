//! Description of an OME-Zarr output: axes, samples, chunks, shards and levels.
//!
//! Plain values; nothing here writes. Axes are numbered x first, as everywhere in this crate. Invariant: a form
//! describes arrays that OME-NGFF and Zarr allow, whose shards consist of whole chunks.

use super::downsample::Downsample;
use super::fault::ZarrFault;
use super::level::Level;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::dataset::sample::SampleType;
use raddle_core::plan::extent::product;
use serde::Serialize;

/// Axes in the order that OME-NGFF requires, slowest first.
const AXES: &str = "tczyx";

/// Maximum length of a chunk by default, in bytes. A reader fetches a whole chunk for one sample. It is large compared
/// with the 16 bytes of its index entry and with the latency of a request, and small compared with memory.
const CHUNK_LEN_BYTES: u64 = 1 << 20;

/// Maximum length of a shard by default, in bytes: a shard is held in memory while it is encoded.
const SHARD_LEN_BYTES: u64 = 32 << 20;

/// Maximum length of a shard before encoding, in bytes.
const MAX_SHARD_LEN_BYTES: u64 = 1 << 40;

/// Compression of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChunkCompression {
    /// No compression.
    None,
    /// Codec `gzip`.
    Gzip,
    /// Codec `zstd`.
    Zstd,
}

impl ChunkCompression {
    /// Returns the name of the codec; `None` without compression.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// Options of a form; the rest follows from the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct FormOptions {
    /// Names of the samples' axes, slowest first, such as `zyx`; if `None`, the last axes of `tczyx`.
    pub axes: Option<String>,
    /// Number of samples of a chunk per axis, x first.
    pub chunk: Option<Vec<u64>>,
    /// Number of samples of a shard per axis, x first.
    pub shard: Option<Vec<u64>>,
    /// Number of levels. If `None`, levels are added until one is a single chunk.
    pub levels: Option<u32>,
    /// Method by which a level is computed from the previous one.
    pub downsample: Downsample,
    /// Compression of chunks.
    pub compression: ChunkCompression,
    /// Distance between samples per axis, x first; 1 if empty.
    pub spacing: Vec<f64>,
    /// Unit of spatial distances, such as `micrometer`.
    pub unit: Option<String>,
    /// Number of time steps that are written one by one along axis `t`.
    pub steps: Option<u64>,
}

impl Default for FormOptions {
    fn default() -> Self {
        Self {
            axes: None,
            chunk: None,
            shard: None,
            levels: None,
            downsample: Downsample::Subsample,
            compression: ChunkCompression::Zstd,
            spacing: Vec::new(),
            unit: None,
            steps: None,
        }
    }
}

/// Description of an output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageLayout {
    /// Names of the samples' axes, x first.
    pub axes: Vec<char>,
    /// Fields: name and type of the samples. Components of a sample become axis `c`.
    #[serde(skip)]
    pub fields: Vec<(String, SampleType)>,
    /// Number of time steps, which become axis `t`.
    pub steps: Option<u64>,
    /// Numbers of the time steps in the dataset that is written again, ascending; empty if they are counted from 0.
    pub step_numbers: Vec<u64>,
    /// Number of samples of a chunk per axis.
    pub chunk: Point,
    /// Number of samples of a shard per axis.
    pub shard: Point,
    /// Levels, finest first.
    pub levels: Vec<Level>,
    /// Method by which a level is computed from the previous one.
    pub downsample: Downsample,
    /// Compression of chunks.
    pub compression: ChunkCompression,
    /// Distance between samples per axis.
    pub distances: Vec<f64>,
    /// Unit of spatial distances.
    pub unit: Option<String>,
}

impl ImageLayout {
    /// Creates the form for `counts` samples per axis, x first.
    ///
    /// # Errors
    /// If the options do not fit the samples, or OME-Zarr cannot represent them.
    pub fn new(counts: &[u64], fields: Vec<(String, SampleType)>, options: &FormOptions) -> Result<Self, ZarrFault> {
        let slowest_first = |of: &[u64]| of.iter().rev().copied().collect::<Vec<u64>>();
        check_names(&fields)?;
        let has_components = fields.iter().any(|(_, sample)| sample.count > 1);
        let axes = axes(counts.len(), options, has_components)?;
        let longest = fields.iter().map(|(_, sample)| sample.len_bytes() as u64).max().unwrap_or(1);
        let len_bytes = |of: &[u64]| product(of).and_then(|samples| samples.checked_mul(longest));
        if counts.contains(&0) || len_bytes(counts).is_none() {
            return Err(ZarrFault::Counts { counts: slowest_first(counts) });
        }
        let is_space: Vec<bool> = axes.iter().map(|axis| is_space(*axis)).collect();
        let chunk = options.chunk.clone().unwrap_or_else(|| default_chunk(counts, &is_space, longest));
        let chunk_fits = chunk.len() == counts.len() && !chunk.contains(&0);
        // An index entry has 64 bits for a length, but compressors have 32.
        if !chunk_fits || len_bytes(&chunk).is_none_or(|len_bytes| len_bytes > u64::from(u32::MAX) / 2) {
            return Err(ZarrFault::Chunk { chunk: slowest_first(&chunk) });
        }
        let shard = options.shard.clone().unwrap_or_else(|| default_shard(counts, &chunk, &is_space, longest));
        let is_whole = |(shard, chunk): (&u64, &u64)| *shard > 0 && shard.is_multiple_of(*chunk);
        let shard_fits = shard.len() == counts.len() && shard.iter().zip(&chunk).all(is_whole);
        if !shard_fits || len_bytes(&shard).is_none_or(|len_bytes| len_bytes > MAX_SHARD_LEN_BYTES) {
            return Err(ZarrFault::Shard { shard: slowest_first(&shard), chunk: slowest_first(&chunk) });
        }
        let point = |of: &[u64]| -> Point { std::array::from_fn(|axis| of.get(axis).copied().unwrap_or(1)) };
        let distances = (0..counts.len()).map(|axis| options.spacing.get(axis).copied().unwrap_or(1.0)).collect();
        let chunk = point(&chunk);
        Ok(Self {
            levels: levels(point(counts), &is_space, &chunk, options.levels)?,
            axes,
            fields,
            steps: options.steps,
            step_numbers: Vec::new(),
            chunk,
            shard: point(&shard),
            downsample: options.downsample,
            compression: options.compression,
            distances,
            unit: options.unit.clone(),
        })
    }

    /// Returns the number of axes of the samples.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// Returns all samples of the first level.
    pub fn domain(&self) -> SampleBox {
        self.levels[0].domain()
    }

    /// Returns the names of the axes of a field's arrays, slowest first.
    pub(crate) fn array_axes(&self, field: usize) -> Vec<char> {
        self.of_array(field, 't', 'c', &|axis| self.axes[axis])
    }

    /// Returns one value per axis of a field's arrays, slowest first: `step` for the axis of time steps and `component`
    /// for the axis of components, if they exist.
    pub(crate) fn of_array<T: Clone>(
        &self,
        field: usize,
        step: T,
        component: T,
        of_axis: &dyn Fn(usize) -> T,
    ) -> Vec<T> {
        let mut of_array: Vec<T> = self.steps.iter().map(|_| step.clone()).collect();
        let components = (self.fields[field].1.count > 1).then_some(component);
        let step_axes = usize::from(self.has_local_steps());
        let of_samples: Vec<T> = (0..self.rank()).rev().map(of_axis).collect();
        of_array.extend_from_slice(&of_samples[..step_axes]);
        of_array.extend(components);
        of_array.extend_from_slice(&of_samples[step_axes..]);
        of_array
    }

    /// Returns whether the samples have a slowest axis that is time.
    pub(crate) fn has_local_steps(&self) -> bool {
        self.axes.last() == Some(&'t')
    }
}

pub(crate) fn is_space(axis: char) -> bool {
    matches!(axis, 'x' | 'y' | 'z')
}

fn check_names(fields: &[(String, SampleType)]) -> Result<(), ZarrFault> {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    for (number, (name, _)) in fields.iter().enumerate() {
        let fits = !name.is_empty() && name.chars().all(plain) && !name.starts_with('.') && !name.starts_with("__");
        if !fits || name == "OME" || name == "zarr.json" {
            return Err(ZarrFault::Name { name: name.clone() });
        }
        if fields[..number].iter().any(|(other, _)| other == name) {
            return Err(ZarrFault::Repeated { name: name.clone() });
        }
    }
    Ok(())
}

/// Returns the names of the samples' axes, x first.
fn axes(rank: usize, options: &FormOptions, has_components: bool) -> Result<Vec<char>, ZarrFault> {
    // Axes for components and time steps cannot be axes of the samples.
    let free = |axis: &char| !(*axis == 'c' && has_components || *axis == 't' && options.steps.is_some());
    let limit = AXES.chars().filter(free).count();
    if !(2..=limit).contains(&rank) {
        return Err(ZarrFault::AxisCount { count: rank, limit });
    }
    let preferred = || {
        let space = AXES.chars().rev().take(3);
        let others = ['c', 't'].into_iter().filter(free);
        let mut of_samples: Vec<char> = space.chain(others).take(rank).collect();
        of_samples.reverse();
        of_samples.into_iter().collect::<String>()
    };
    let axes = options.axes.clone().unwrap_or_else(preferred);
    let mut rest = AXES.chars();
    let in_order = axes.chars().all(|axis| rest.any(|known| known == axis));
    if !in_order || axes.len() != rank || !axes.ends_with("yx") {
        return Err(ZarrFault::Axes { axes, count: rank });
    }
    match axes.chars().find(|axis| !free(axis)) {
        Some('c') => Err(ZarrFault::TwiceAnAxis { axis: 'c', what: "the components of samples" }),
        Some(axis) => Err(ZarrFault::TwiceAnAxis { axis, what: "time steps" }),
        None => Ok(axes.chars().rev().collect()),
    }
}

/// Returns the largest power of two whose power `rank` is at most `limit`.
fn side(limit: u64, rank: u32) -> u64 {
    1 << (limit.max(1).ilog2() / rank.max(1))
}

fn default_chunk(counts: &[u64], is_space: &[bool], sample_len_bytes: u64) -> Vec<u64> {
    let rank = is_space.iter().filter(|is_space| **is_space).count() as u32;
    let side = side(CHUNK_LEN_BYTES / sample_len_bytes, rank);
    let of_axis = |(count, is_space): (&u64, &bool)| if *is_space { side.min(count.next_power_of_two()) } else { 1 };
    counts.iter().zip(is_space).map(of_axis).collect()
}

fn default_shard(counts: &[u64], chunk: &[u64], is_space: &[bool], sample_len_bytes: u64) -> Vec<u64> {
    let rank = is_space.iter().filter(|is_space| **is_space).count() as u32;
    let chunk_len_bytes = product(chunk).unwrap_or(u64::MAX).saturating_mul(sample_len_bytes);
    let chunks = side(SHARD_LEN_BYTES / chunk_len_bytes.max(1), rank);
    let of_axis = |axis: usize| match is_space[axis] {
        true => chunk[axis] * chunks.min(counts[axis].div_ceil(chunk[axis]).next_power_of_two()),
        false => chunk[axis],
    };
    (0..counts.len()).map(of_axis).collect()
}

/// Returns levels until all samples along spatial axes fit one chunk, or `wanted` levels.
fn levels(counts: Point, is_space: &[bool], chunk: &Point, wanted: Option<u32>) -> Result<Vec<Level>, ZarrFault> {
    let halves = |axis: usize, counts: &Point| is_space.get(axis).copied().unwrap_or(false) && counts[axis] > 1;
    let mut levels = vec![Level { counts, factors: [1; MAX_RANK], spacing: [1; MAX_RANK] }];
    loop {
        let last = levels[levels.len() - 1];
        let is_enough = match wanted {
            Some(wanted) => levels.len() as u64 >= u64::from(wanted),
            None => (0..MAX_RANK).all(|axis| !halves(axis, &last.counts) || last.counts[axis] <= chunk[axis]),
        };
        let factors: Point = std::array::from_fn(|axis| if halves(axis, &last.counts) { 2 } else { 1 });
        if is_enough || factors == [1; MAX_RANK] {
            break;
        }
        let counts = std::array::from_fn(|axis| last.counts[axis].div_ceil(factors[axis]));
        let spacing = std::array::from_fn(|axis| last.spacing[axis] * factors[axis]);
        levels.push(Level { counts, factors, spacing });
    }
    match wanted {
        Some(wanted) if levels.len() as u64 != u64::from(wanted) => {
            Err(ZarrFault::Levels { levels: wanted, limit: levels.len() as u32 })
        }
        _ => Ok(levels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(sample: &str) -> Vec<(String, SampleType)> {
        vec![("a".to_owned(), sample.parse().unwrap())]
    }

    fn form(counts: &[u64], sample: &str, options: FormOptions) -> Result<ImageLayout, ZarrFault> {
        ImageLayout::new(counts, fields(sample), &options)
    }

    #[test]
    fn chunks_shards_and_levels_follow_from_the_samples() {
        let volume = form(&[500, 300, 200], "float32", FormOptions::default()).unwrap();
        assert_eq!((volume.chunk, volume.shard), ([64, 64, 64, 1, 1], [128, 128, 128, 1, 1]));
        assert_eq!(volume.axes, ['x', 'y', 'z']);
        let counts: Vec<_> = volume.levels.iter().map(|level| level.counts[..3].to_vec()).collect();
        assert_eq!(counts, [[500, 300, 200], [250, 150, 100], [125, 75, 50], [63, 38, 25]]);
        let flat = form(&[70, 1], "uint8", FormOptions { levels: Some(8), ..FormOptions::default() }).unwrap();
        assert_eq!((flat.chunk, flat.shard), ([128, 1, 1, 1, 1], [128, 1, 1, 1, 1]));
        assert_eq!((flat.levels[7].counts, flat.levels[7].spacing), ([1; 5], [128, 1, 1, 1, 1]));
        let movie = form(&[9, 8, 7, 6, 5], "float64", FormOptions::default()).unwrap();
        assert_eq!((movie.levels.len(), movie.chunk), (1, [16, 8, 8, 1, 1]));
    }

    #[test]
    fn axes_of_arrays() {
        let names = |form: &ImageLayout| form.array_axes(0).into_iter().collect::<String>();
        let rank = |rank: usize, sample: &str, options: FormOptions| form(&vec![4; rank], sample, options);
        let steps = || FormOptions { steps: Some(3), ..FormOptions::default() };
        let named = |axes: &str| FormOptions { axes: Some(axes.to_owned()), ..FormOptions::default() };
        assert_eq!(names(&rank(2, "uint8", steps()).unwrap()), "tyx");
        assert_eq!(names(&rank(3, "uint8[3]", steps()).unwrap()), "tczyx");
        assert_eq!(names(&rank(4, "uint8", FormOptions::default()).unwrap()), "czyx");
        assert_eq!(names(&rank(4, "uint8[2]", FormOptions::default()).unwrap()), "tczyx");
        assert_eq!(names(&rank(3, "uint8[2]", named("tyx")).unwrap()), "tcyx");
        for wrong in [named("xyz"), named("zyx"), named("ttzyx"), named("abyx")] {
            assert!(matches!(rank(4, "uint8", wrong), Err(ZarrFault::Axes { .. })));
        }
        for refused in [rank(1, "uint8", FormOptions::default()), rank(1, "uint8", named("y"))] {
            assert!(matches!(refused, Err(ZarrFault::AxisCount { count: 1, limit: 5 })));
        }
        for (count, sample, options, most) in
            [(5, "uint8[3]", FormOptions::default(), 4), (5, "uint8", steps(), 4), (4, "uint8[3]", steps(), 3)]
        {
            let Err(ZarrFault::AxisCount { limit, .. }) = rank(count, sample, options) else { panic!("{count}") };
            assert_eq!(limit, most);
        }
        assert!(matches!(rank(4, "uint8[3]", named("czyx")), Err(ZarrFault::TwiceAnAxis { axis: 'c', .. })));
        let both = FormOptions { steps: Some(2), ..named("tyx") };
        assert!(matches!(rank(3, "uint8", both), Err(ZarrFault::TwiceAnAxis { axis: 't', .. })));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let options = |chunk: &[u64], shard: &[u64]| FormOptions {
            chunk: Some(chunk.to_vec()),
            shard: Some(shard.to_vec()),
            ..FormOptions::default()
        };
        assert!(form(&[9, 9], "uint8", options(&[2, 3], &[4, 9])).is_ok());
        assert!(matches!(form(&[9, 9], "uint8", options(&[2, 0], &[4, 9])), Err(ZarrFault::Chunk { .. })));
        assert!(matches!(form(&[9, 9], "uint8", options(&[1 << 31, 1], &[1 << 31, 1])), Err(ZarrFault::Chunk { .. })));
        for shard in [&[4, 8][..], &[4], &[0, 9], &[2, 3, 1]] {
            assert!(matches!(form(&[9, 9], "uint8", options(&[2, 3], shard)), Err(ZarrFault::Shard { .. })));
        }
        let many = FormOptions { levels: Some(9), ..FormOptions::default() };
        assert!(matches!(form(&[9, 9], "uint8", many), Err(ZarrFault::Levels { levels: 9, limit: 5 })));
        assert!(matches!(form(&[9, 0], "uint8", FormOptions::default()), Err(ZarrFault::Counts { .. })));
        let named = |names: &[&str]| {
            let fields = names.iter().map(|name| ((*name).to_owned(), "uint8".parse().unwrap())).collect();
            ImageLayout::new(&[4, 4], fields, &FormOptions::default())
        };
        assert!(matches!(named(&["a", "a"]), Err(ZarrFault::Repeated { .. })));
        for wrong in ["", "a/b", "OME", "..", "__x", "ä"] {
            assert!(matches!(named(&[wrong]), Err(ZarrFault::Name { .. })), "{wrong}");
        }
    }
}
