//! Plan of a preview: which arrays have one, and which samples it holds, as a function of shapes and limits.
//!
//! Invariant: all samples together do not exceed the limit.

use super::names;
use crate::dataset::bitmask::{Bitmask, MAX_RANK};
use crate::dataset::grid::ArrayGrid;
use crate::dataset::header::{Header, HeaderError};
use crate::dataset::layout::LayoutOptions;
use crate::dataset::sample::{Number, SampleType};
use crate::error::{IdxError, Result};
use raddle_core::plan::lattice::Lattice;
use std::path::{Path, PathBuf};

/// Minimum length of two axes of an array. A smaller picture would show too little.
const PICTURE: u64 = 32;

/// Smallest allowed maximum number of samples of a dataset: smaller previews show nothing.
pub const MIN_SAMPLES: u64 = 1 << 10;

/// Returns whether an array of this shape gets a preview: two to five axes, two of them long. Columns of a table (`N x
/// 1`, `N x 3`) do not.
pub fn is_worth(shape: &[u64]) -> bool {
    let long = shape.iter().filter(|count| **count >= PICTURE).count();
    (2..=MAX_RANK).contains(&shape.len()) && !shape.contains(&0) && long >= 2
}

/// An array that can have a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewCandidate {
    /// Path for names and headers, without control characters.
    pub path: String,
    /// Number of elements per axis, slowest first.
    pub shape: Vec<u64>,
    /// Type of the elements.
    pub number: Number,
    /// Whether the elements are big-endian.
    pub is_big_endian: bool,
}

/// Limits of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewOptions {
    /// Folder of the preview.
    pub folder: PathBuf,
    /// Maximum number of samples of a dataset.
    pub max_samples: u64,
    /// Maximum number of bytes of the samples of all datasets.
    pub max_len_bytes: u64,
}

/// A dataset of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPreview {
    /// Path of the array.
    pub path: String,
    /// Number of elements of the array per axis, slowest first.
    pub shape: Vec<u64>,
    /// Lattice of the sampled elements.
    pub lattice: Lattice,
    /// Whether the elements are big-endian.
    pub is_big_endian: bool,
    /// Header of the dataset.
    pub header: Header,
    name: String,
}

/// Plan of the previews of several arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewPlan {
    /// Folder of the preview.
    pub folder: PathBuf,
    /// Maximum number of samples of a dataset: as requested, or halved until all datasets fit.
    pub max_samples: u64,
    /// One dataset per array.
    pub datasets: Vec<PlannedPreview>,
}

impl PlannedPreview {
    fn new(of: &PreviewCandidate, name: String, folder: &Path, (level, bitmask): (u32, &Bitmask)) -> Result<Self> {
        let file = folder.join(file_name(&name));
        let refused = |source: HeaderError| IdxError::Header { path: file.clone(), source };
        let rank = of.shape.len();
        let log2_spacing = bitmask.log2_spacing(level);
        let slowest_first: Vec<u32> = log2_spacing[..rank].iter().rev().copied().collect();
        let lattice = Lattice::new(&of.shape, &slowest_first);
        let counts: Vec<u64> = lattice.shape.iter().rev().copied().collect();
        let field = names::plain(of.path.rsplit('/').next().unwrap_or_default());
        let field = if field.is_empty() { "array".to_owned() } else { field };
        let sample = SampleType { number: of.number, count: 1 };
        let mut header = LayoutOptions::default().header(&file, &counts, &[(field, sample)], false).map_err(refused)?;
        let words =
            |words: &mut dyn Iterator<Item = u64>| words.map(|word| word.to_string()).collect::<Vec<_>>().join(" ");
        let spacing = || log2_spacing[..rank].iter().map(|log2| 1u64 << log2);
        // Sample i lies at i times the spacing.
        let physical = counts.iter().zip(spacing()).flat_map(|(count, spacing)| [0, count.saturating_mul(spacing)]);
        header.others = vec![
            ("physic_box".to_owned(), words(&mut physical.into_iter())),
            ("preview of".to_owned(), of.path.replace(' ', "\\u{20}")),
            ("preview counts".to_owned(), words(&mut of.shape.iter().rev().copied())),
            ("preview spacing".to_owned(), words(&mut spacing())),
        ];
        header.check().map_err(refused)?;
        let (path, shape, is_big_endian) = (of.path.clone(), of.shape.clone(), of.is_big_endian);
        Ok(Self { path, shape, lattice, is_big_endian, header, name })
    }

    /// Returns the name of the `.idx` file.
    pub fn file_name(&self) -> String {
        file_name(&self.name)
    }

    /// Returns the distance between samples in the array per axis, slowest first.
    pub fn spacing(&self) -> Vec<u64> {
        self.lattice.log2_spacing.iter().map(|log2| 1 << log2).collect()
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.lattice.shape.iter().product()
    }

    /// Returns the length of a sample.
    pub fn sample_len_bytes(&self) -> usize {
        self.header.fields[0].sample.len_bytes()
    }
}

fn file_name(name: &str) -> String {
    format!("{name}.idx")
}

/// Returns the highest level with at most `max_samples` samples.
fn level_within(bitmask: &Bitmask, of: &PreviewCandidate, max_samples: u64) -> u32 {
    let mut end = [1; MAX_RANK];
    end.iter_mut().zip(of.shape.iter().rev()).for_each(|(end, count)| *end = *count);
    let fits = |level: &u32| {
        let counts = ArrayGrid::counts_of_box(bitmask, &[0; MAX_RANK], &end, *level);
        raddle_core::plan::extent::product(&counts).is_some_and(|samples| samples <= max_samples)
    };
    (0..=bitmask.max_level()).rev().find(fits).unwrap_or(0)
}

impl PreviewPlan {
    /// Plans a preview of all `candidates`; `None` if even [`MIN_SAMPLES`] of each exceed the limit.
    ///
    /// # Errors
    /// If an array has more elements than IDX can address.
    pub fn new(candidates: &[PreviewCandidate], options: &PreviewOptions) -> Result<Option<Self>> {
        let names = names::of_paths(candidates.iter().map(|of| of.path.as_str()));
        let mut max_samples = options.max_samples.max(MIN_SAMPLES);
        loop {
            let mut datasets = Vec::new();
            for (of, name) in candidates.iter().zip(&names) {
                let counts: Vec<u64> = of.shape.iter().rev().copied().collect();
                let bitmask = Bitmask::for_counts(&counts).map_err(|source| IdxError::Header {
                    path: options.folder.join(file_name(name)),
                    source: source.into(),
                })?;
                let level = level_within(&bitmask, of, max_samples);
                datasets.push(PlannedPreview::new(of, name.clone(), &options.folder, (level, &bitmask))?);
            }
            let plan = Self { folder: options.folder.clone(), max_samples, datasets };
            if plan.len_bytes() <= options.max_len_bytes {
                return Ok(Some(plan));
            }
            if max_samples == MIN_SAMPLES {
                return Ok(None);
            }
            max_samples = (max_samples / 2).max(MIN_SAMPLES);
        }
    }

    /// Returns the number of bytes of the samples of all datasets.
    pub fn len_bytes(&self) -> u64 {
        self.datasets.iter().map(|of| of.sample_count().saturating_mul(of.sample_len_bytes() as u64)).sum()
    }

    /// Returns the number of samples of all datasets.
    pub fn sample_count(&self) -> u64 {
        self.datasets.iter().map(PlannedPreview::sample_count).sum()
    }
}
