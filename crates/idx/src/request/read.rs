//! The request for a part of a dataset: field, time step, box and resolution.

use super::sizes::{AxisRange, restrict};
use crate::dataset::region::SampleBox;
use crate::error::Result;
use crate::read::dataset::{Dataset, Query};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Request for samples of a dataset.
///
/// # Examples
///
/// ```
/// use raddle_idx::request::ReadRequest;
/// use raddle_idx::{Dataset, Field, Header, WriteOptions, Writer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.idx");
/// let header = Header::new("a", &[4, 3], vec![Field::new("rho", "uint8".parse()?)])?;
/// Writer::new(&path, header, WriteOptions::default())?.write(None, &[&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]])?;
///
/// let dataset = Dataset::open(&path)?;
/// let request: ReadRequest = serde_json::from_str(r#"{"field": "rho", "box": ["y=1:3", "x=0:2"]}"#)?;
/// let query = request.query(&dataset)?;
/// assert_eq!(dataset.read(&query)?, [4, 5, 8, 9]);
/// assert_eq!(dataset.shape(&query), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "What to read"))]
pub struct ReadRequest {
    /// Name of the field [default: the first]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub field: Option<String>,

    /// Time step [default: the first]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub step: Option<u64>,

    /// Ranges of samples per axis, end excluded; other axes are whole
    #[cfg_attr(feature = "clap", arg(long = "box", value_name = "x=0:64,z=5:9", value_delimiter = ','))]
    #[serde(rename = "box")]
    pub ranges: Vec<AxisRange>,

    /// Highest level to read: 0 is a single sample, the highest level is all samples [default: the highest]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub resolution: Option<u32>,

    /// Read missing blocks as the default value of the field
    #[cfg_attr(feature = "clap", arg(long))]
    pub missing_as_default: bool,

    /// Threads that read and decode [default: the cores available to this process]
    #[cfg_attr(
        feature = "clap",
        arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true, help_heading = "Running")
    )]
    pub jobs: Option<NonZeroUsize>,
}

impl ReadRequest {
    /// Returns the query for the selection.
    ///
    /// # Errors
    /// If it is outside the dataset, or holds no sample of the resolution.
    pub fn query(&self, dataset: &Dataset) -> Result<Query> {
        let query = self.part(dataset)?;
        dataset.grid(&query)?;
        Ok(query)
    }

    /// Returns the query for a selection, which may hold no sample of the resolution: one of several ranks may have
    /// nothing to read.
    ///
    /// # Errors
    /// If the field or an axis does not exist.
    pub fn part(&self, dataset: &Dataset) -> Result<Query> {
        let header = dataset.header();
        let field = self.field.as_ref().map_or(Ok(0), |name| dataset.field_named(name))?;
        let mut query = dataset.whole(field);
        if header.time.is_some() || self.step.is_some() {
            query.time = self.step.or(query.time);
        }
        let mut region = SampleBox { start: query.start, end: query.end };
        restrict(&mut region, "box", &self.ranges, header.rank)?;
        (query.start, query.end) = (region.start, region.end);
        query.resolution = self.resolution.unwrap_or(query.resolution);
        query.missing_as_default = self.missing_as_default;
        Ok(query)
    }
}
