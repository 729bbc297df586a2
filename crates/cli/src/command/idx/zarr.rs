//! Options of `raddle idx write` for OME-Zarr: axes, chunks, shards and levels.

use super::inputs::{Shape, shape};
use crate::failure::Failure;
use raddle_idx::IdxError;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::zarr::{ChunkCompression, Downsample, FormOptions, ImageLayout};
use std::path::Path;

/// Options for OME-Zarr.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "OME-Zarr")]
pub struct ZarrArgs {
    /// Number of samples of a chunk along each axis, slowest first, for example 64x64x64 [default: up to 1 MiB, equal
    /// in space]
    #[arg(long, value_name = "SIZE", value_parser = shape)]
    chunk: Option<Shape>,

    /// Number of samples of a shard, which is a file of whole chunks [default: up to 32 MiB]; each is held in memory
    /// while it is made
    #[arg(long, value_name = "SIZE", value_parser = shape)]
    shard: Option<Shape>,

    /// Number of levels, each with half the samples along x, y and z [default: until a level is a single chunk]
    #[arg(long, value_name = "N")]
    levels: Option<u32>,

    /// How each level is computed from the previous one [default: subsample]
    #[arg(long, value_name = "HOW", value_enum)]
    downsample: Option<Halving>,

    /// Names of the axes of the inputs, slowest first: a subset of t, c, z, y and x in this order [default: the last
    /// ones]
    #[arg(long, value_name = "NAMES")]
    axes: Option<String>,

    /// Distance between samples along each axis, slowest first, for example 2,0.5,0.5
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = distance)]
    spacing: Vec<f64>,

    /// Unit of the distances along x, y and z, for example micrometer
    #[arg(long, value_name = "NAME")]
    unit: Option<String>,
}

/// Computation of a level from the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Halving {
    /// Every second sample
    Subsample,
    /// The mean of up to 2 x 2 x 2 samples; integers are rounded to the nearest, ties to even
    Average,
}

fn distance(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a distance is a number above 0".to_owned())
}

impl ZarrArgs {
    /// Returns the first of these options that was given, if any: none of them applies to IDX.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.chunk.is_some(), "--chunk"),
            (self.shard.is_some(), "--shard"),
            (self.levels.is_some(), "--levels"),
            (self.downsample.is_some(), "--downsample"),
            (self.axes.is_some(), "--axes"),
            (!self.spacing.is_empty(), "--spacing"),
            (self.unit.is_some(), "--unit"),
        ];
        given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
    }

    /// Returns the form of the folder `output` for `counts` samples per axis, x first, at the given time steps.
    ///
    /// # Errors
    /// If the options do not fit the samples.
    pub fn form(
        &self,
        output: &Path,
        counts: &[u64],
        fields: &[(String, SampleType)],
        steps: Option<u64>,
        compression: ChunkCompression,
    ) -> Result<ImageLayout, Failure> {
        let rank = counts.len();
        let of_axes = |option: &str, shape: &Option<Shape>| match shape {
            Some(Shape(named)) if named.len() != rank => {
                let named = named.len();
                Err(Failure::usage(&format!("{option} has {named} axes, but the samples have {rank}")))
            }
            shape => Ok(shape.as_ref().map(|Shape(named)| named.iter().rev().copied().collect::<Vec<u64>>())),
        };
        if !self.spacing.is_empty() && self.spacing.len() != rank {
            let named = self.spacing.len();
            return Err(Failure::usage(&format!("--spacing has {named} numbers, but the samples have {rank} axes")));
        }
        let options = FormOptions {
            axes: self.axes.clone(),
            chunk: of_axes("--chunk", &self.chunk)?,
            shard: of_axes("--shard", &self.shard)?,
            levels: self.levels,
            downsample: match self.downsample {
                None | Some(Halving::Subsample) => Downsample::Subsample,
                Some(Halving::Average) => Downsample::Average,
            },
            compression,
            spacing: self.spacing.iter().rev().copied().collect(),
            unit: self.unit.clone(),
            steps,
        };
        ImageLayout::new(counts, fields.to_vec(), &options)
            .map_err(|source| Failure::of_idx(&IdxError::Zarr { path: output.to_path_buf(), source: Box::new(source) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("0.5"), Ok(0.5));
        assert!(
            distance("0").is_err() && distance("-1").is_err() && distance("inf").is_err() && distance("a").is_err()
        );
    }
}
