//! `raddle idx view`: draws a slice as a picture.

use super::read::{check_apart, put};
use crate::exit::Exit;
use crate::render::picture::{Picture, Range};
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::default_jobs;
use raddle_idx::dataset::bitmask::AXES;
use raddle_idx::request::{ReadRequest, axis_named};
use raddle_idx::targets::open_dataset;
use raddle_idx::{Dataset, Query, Readers};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Longest side of a picture if no resolution is given; fits on a screen.
const MAX_SIDE: u64 = 2048;

/// Options of `raddle idx view`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ViewArgs {
    /// The .idx file
    #[arg(value_name = "IN.idx")]
    input: PathBuf,

    /// Picture file to write
    #[arg(short, long, value_name = "FILE.png")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long)]
    force: bool,

    /// Slice: one sample index for each axis except two, or except one for a line [default: the middle of the last
    /// axes]
    #[arg(long, value_name = "z=11", value_delimiter = ',', value_parser = at)]
    slice: Vec<At>,

    /// Number of the component to draw, if samples have several
    #[arg(long, value_name = "N", default_value_t = 0)]
    component: usize,

    /// Values drawn as black and white [default: minimum and maximum of the picture]
    #[arg(long, value_name = "LOW:HIGH", value_parser = range, allow_hyphen_values = true)]
    range: Option<Range>,

    #[command(flatten)]
    request: ReadRequest,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx view flow.idx -o middle.png
  raddle idx view flow.idx --slice z=11 --resolution 12 -o slice.png
  raddle idx view flow.idx --slice x=100 --field v --component 2 --range -1:1 \\
    -o v2.png

The picture is grey, the first row at the top, as numpy would print it. Without --resolution, the highest \
resolution is used at which no side of the picture is longer than 2048.";

/// A sample along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    axis: usize,
    sample: u64,
}

fn at(text: &str) -> Result<At, String> {
    let parsed = text
        .split_once('=')
        .and_then(|(name, sample)| Some(At { axis: axis_named(name)?, sample: sample.parse().ok()? }));
    parsed.ok_or_else(|| "a slice is AXIS=SAMPLE, for example z=11".to_owned())
}

fn range(text: &str) -> Result<Range, String> {
    let parsed =
        text.split_once(':').and_then(|(low, high)| Some(Range { low: low.parse().ok()?, high: high.parse().ok()? }));
    let parsed = parsed.filter(|range| range.low < range.high);
    parsed.ok_or_else(|| "a range is LOW:HIGH, for example -1:1".to_owned())
}

/// Draws the slice.
pub fn run(arguments: &ViewArgs) -> Result<Exit, Error> {
    let dataset = open_dataset(&arguments.input)?;
    let header = dataset.header();
    check_apart(&arguments.output, &dataset, arguments.force)?;
    let mut query = arguments.request.query(&dataset)?;
    let picture_axes = sides(&dataset, &query, &arguments.slice)?;
    if arguments.request.resolution.is_none() {
        let is_small = |resolution: &u32| {
            let mut coarser = query;
            coarser.resolution = *resolution;
            let grid = dataset.grid(&coarser);
            grid.is_ok_and(|grid| picture_axes.iter().all(|axis| grid.counts[*axis] <= MAX_SIDE))
        };
        query.resolution = (0..=query.resolution).rev().find(is_small).unwrap_or(0);
    }
    // Rounds the slice down to a sample of the resolution.
    let spacing = header.bitmask.log2_spacing(query.resolution);
    for axis in (0..header.rank).filter(|axis| !picture_axes.contains(axis)) {
        let named = arguments.slice.iter().find(|at| at.axis == axis).map(|at| at.sample);
        let sample = named.unwrap_or(query.start[axis] + (query.end[axis] - query.start[axis]) / 2);
        let sample = (sample >> spacing[axis] << spacing[axis]).max(header.start[axis]);
        (query.start[axis], query.end[axis]) = (sample, sample + 1);
    }
    let sample = header.fields[query.field].sample;
    if arguments.component >= sample.count {
        return Err(Error::usage(&format!("samples of type {sample} have no component {}", arguments.component)));
    }
    let failed = |error| Error::of_idx(&error);
    let grid = dataset.grid(&query).map_err(failed)?;
    let jobs = arguments.request.jobs.map_or_else(default_jobs, NonZeroUsize::get);
    let samples = dataset.read_by(&query, &Readers { jobs, cancel: &CancelToken::new() }).map_err(failed)?;
    let at = arguments.component * sample.number.len_bytes();
    let values = samples.chunks(sample.len_bytes()).map(|bytes| sample.number.value_of(&bytes[at..])).collect();
    let side = |number: usize| picture_axes.get(number).map_or(1, |axis| grid.counts[*axis]);
    let (width, height) = (side(0), side(1));
    let picture = Picture { width, height, values };
    let png = picture
        .to_png(arguments.range)
        .map_err(|error| Error::new(Exit::Limit, &format!("{}: {error}", arguments.output.display())))?;
    put(&arguments.output, arguments.force, &png)?;
    Ok(Exit::Done)
}

/// Returns the axes of the picture: the two that the slice does not name, fastest first, or the only one.
fn sides(dataset: &Dataset, query: &Query, slice: &[At]) -> Result<Vec<usize>, Error> {
    let header = dataset.header();
    for (place, at) in slice.iter().enumerate() {
        let is_inside = at.axis < header.rank && (query.start[at.axis]..query.end[at.axis]).contains(&at.sample);
        if !is_inside || slice[..place].iter().any(|other| other.axis == at.axis) {
            let (axis, sample) = (AXES[at.axis], at.sample);
            return Err(Error::usage(&format!("--slice {axis}={sample} is not in the dataset, or named twice")));
        }
    }
    let is_free = |axis: &usize| slice.iter().all(|at| at.axis != *axis);
    let picture_axes: Vec<usize> = (0..header.rank).filter(is_free).take(2).collect();
    if picture_axes.is_empty() {
        return Err(Error::usage("--slice leaves no axis to show; name one axis fewer"));
    }
    Ok(picture_axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_ranges() {
        assert_eq!(at("z=11"), Ok(At { axis: 2, sample: 11 }));
        assert!(at("z").is_err() && at("w=1").is_err());
        assert_eq!(range("-1:2.5"), Ok(Range { low: -1.0, high: 2.5 }));
        assert!(range("2:1").is_err() && range("1").is_err());
    }
}
