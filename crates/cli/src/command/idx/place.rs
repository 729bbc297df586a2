//! Selection of a part of a dataset: field, time step, box, resolution.

use crate::exit::Exit;
use crate::failure::Failure;
use raddle_idx::dataset::bitmask::{AXES, Point};
use raddle_idx::zarr::is_zarr;
use raddle_idx::{Dataset, Query};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

/// Options that select what to read.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "What to read")]
pub struct PlaceArgs {
    /// Name of the field [default: the first]
    #[arg(long, value_name = "NAME")]
    field: Option<String>,

    /// Time step [default: the first]
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    /// Ranges of samples per axis, end excluded; other axes are whole
    #[arg(long = "box", value_name = "x=0:64,z=5:9", value_delimiter = ',', value_parser = along)]
    along: Vec<Along>,

    /// Highest level to read: 0 is a single sample, the highest level is all samples [default: the highest]
    #[arg(long, value_name = "N")]
    resolution: Option<u32>,

    /// Read missing blocks as the default value of the field
    #[arg(long)]
    missing_as_default: bool,
}

/// Options of commands that read many blocks.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct ThreadsArgs {
    /// Threads that read and decode [default: the cores available to this process]
    #[arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true)]
    pub jobs: Option<NonZeroUsize>,
}

/// Range of samples along an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Along {
    axis: usize,
    range: Range<u64>,
}

/// Returns the number of the axis with this name.
pub fn axis(name: &str) -> Option<usize> {
    AXES.iter().position(|axis| name.chars().eq([*axis]))
}

/// Parses the range of an axis in `--box` of commands that read.
pub(crate) fn along(text: &str) -> Result<Along, String> {
    let parsed = text.split_once('=').and_then(|(name, range)| {
        let (start, end) = range.split_once(':')?;
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        Some(Along { axis: axis(name)?, range: start..end })
    });
    let parsed = parsed.filter(|along| along.range.start <= along.range.end);
    parsed.ok_or_else(|| "samples along an axis are AXIS=START:END, for example z=5:9".to_owned())
}

/// Restricts a box of samples with `rank` axes to the ranges of an option.
///
/// # Errors
/// If it names an unknown axis, or an axis twice.
pub(crate) fn limit(
    option: &str,
    along: &[Along],
    rank: usize,
    (start, end): (&mut Point, &mut Point),
) -> Result<(), Failure> {
    for (place, Along { axis, range }) in along.iter().enumerate() {
        let name = AXES[*axis];
        if *axis >= rank {
            let axes: String = AXES[..rank].iter().map(|axis| format!(" {axis}")).collect();
            return Err(Failure::usage(&format!("{option} names axis {name}, but the dataset has{axes}")));
        }
        if along[..place].iter().any(|other| other.axis == *axis) {
            return Err(Failure::usage(&format!("{option} names axis {name} twice")));
        }
        (start[*axis], end[*axis]) = (range.start, range.end);
    }
    Ok(())
}

/// Opens a dataset for reading.
pub fn open(path: &Path) -> Result<Dataset, Failure> {
    if is_zarr(path) {
        let what = format!("{}: is a Zarr folder, but only IDX can be read here", path.display());
        return Err(Failure::new(Exit::InputRefused, &what)
            .hint("read it with zarr-python, xarray or an OME-Zarr viewer; raddle idx info and verify support it"));
    }
    Dataset::open(path).map_err(|error| Failure::of_idx(&error))
}

impl PlaceArgs {
    /// Builds the query for the selection.
    ///
    /// # Errors
    /// If it is outside the dataset, or contains no sample of the resolution.
    pub fn query(&self, dataset: &Dataset) -> Result<Query, Failure> {
        let query = self.part(dataset)?;
        dataset.grid(&query).map_err(|error| Failure::of_idx(&error))?;
        Ok(query)
    }

    /// Like [`PlaceArgs::query`], for a part of a dataset that may contain no sample of the resolution.
    ///
    /// # Errors
    /// If the field or axis does not exist.
    pub fn part(&self, dataset: &Dataset) -> Result<Query, Failure> {
        let header = dataset.header();
        let field = match &self.field {
            None => 0,
            Some(name) => header.field_index(name).ok_or_else(|| {
                let names: Vec<&str> = header.fields.iter().map(|field| field.name.as_str()).collect();
                let what = format!("{}: no field {name}; it has {}", dataset.path().display(), names.join(", "));
                Failure::new(Exit::InputRefused, &what)
            })?,
        };
        let mut query = dataset.whole(field);
        if header.time.is_some() || self.step.is_some() {
            query.time = self.step.or(query.time);
        }
        limit("--box", &self.along, header.rank, (&mut query.start, &mut query.end))?;
        query.resolution = self.resolution.unwrap_or(query.resolution);
        query.missing_as_default = self.missing_as_default;
        Ok(query)
    }

    /// Whether a resolution was given.
    pub fn has_resolution(&self) -> bool {
        self.resolution.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_along_axes() {
        assert_eq!(along("z=5:9"), Ok(Along { axis: 2, range: 5..9 }));
        for wrong in ["z=5", "w=1:2", "z=9:5", "=1:2", "zz=1:2", "z=-1:2"] {
            assert!(along(wrong).is_err(), "{wrong}");
        }
    }
}
