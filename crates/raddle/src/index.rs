//! Indexes: statistics next to a file, which let searches skip blocks of rows.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use raddle_core::output::check::check_output;
use raddle_hdf5::model::{Layout, ObjectKind};
use raddle_hdf5::open_file::OpenFile;
use raddle_merge::append::redo::settle;
use raddle_merge::path_text;
use raddle_query::Index;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Request to write the index of a file.
///
/// Fields are the options of `raddle index`.
///
/// ```
/// use raddle::{Context, IndexRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("all.h5");
/// # make_columns(&path, &[("/rec/energy", &[1.0, 2.0])])?;
/// let report = IndexRequest::new(&path).run(&Context::default())?;
/// assert_eq!((report.columns, report.values), (1, 2));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct IndexRequest {
    /// File to index
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    #[serde(skip)]
    pub file: PathBuf,

    /// Index to write; an existing index is replaced [default: FILE.stats, which searches find]
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "INDEX", help_heading = "Output"))]
    pub output: Option<PathBuf>,

    /// Number of worker threads [default: the cores available to this process]
    #[cfg_attr(
        feature = "clap",
        arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true, help_heading = "Running")
    )]
    pub jobs: Option<NonZeroUsize>,
}

/// Report on a written index.
#[derive(Debug, Clone, Serialize)]
pub struct IndexReport {
    /// Path of the index.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Number of datasets with statistics.
    pub columns: u64,
    /// Number of their values.
    pub values: u64,
    /// Length of these values.
    pub value_len_bytes: u64,
    /// Length of the index.
    pub output_len_bytes: u64,
    /// Number of virtual datasets, which have no statistics: their values may change without the file.
    pub virtual_datasets: u64,
    /// Wall time.
    pub elapsed_s: f64,
}

impl IndexRequest {
    /// Creates a request to write the index of a file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), ..Self::default() }
    }

    /// Reads all numbers of the file and writes the index. An interrupted append to the file is completed or rolled
    /// back first.
    ///
    /// # Errors
    /// If the file cannot be read, the index cannot be written or would replace something else, or the run is
    /// cancelled.
    pub fn run(&self, context: &Context<'_>) -> Result<IndexReport, Error> {
        let started = Instant::now();
        let output = self.output.clone().unwrap_or_else(|| Index::default_path(&self.file));
        let failed = |error| Error::of_query(&error);
        Index::check_replaceable(&output).map_err(failed)?;
        check_output(&output, &[], true).map_err(|unusable| Error::new(Exit::Output, &unusable.to_string()))?;
        settle(&self.file).map_err(|error| Error::of_merge(&error, std::slice::from_ref(&self.file)))?;
        let file = OpenFile::open(&self.file, Some(1)).map_err(|error| Error::of_file(&error))?;
        file.check_no_writer().map_err(|error| Error::of_file(&error))?;
        let jobs = self.jobs.map_or(context.default_jobs, NonZeroUsize::get);
        let index = Index::compute(&file, jobs, context.watch.cancel).map_err(failed)?;
        // The index of an earlier state would never be used.
        file.check_unchanged().map_err(|error| Error::of_file(&error))?;
        let virtual_datasets = virtual_count(&file);
        if index.column_count() == 0 && virtual_datasets > 0 {
            let what = format!(
                "{}: has only virtual datasets ({virtual_datasets}), whose values may change without the file: write an index of \
                 each file that holds them, and scan these files together",
                self.file.display()
            );
            return Err(Error::new(Exit::InputRefused, &what));
        }
        let output_len_bytes = index.write(&output, &self.file).map_err(failed)?;
        Ok(IndexReport {
            output,
            columns: index.column_count() as u64,
            values: index.value_count(),
            value_len_bytes: index.value_len_bytes(),
            output_len_bytes,
            virtual_datasets,
            elapsed_s: started.elapsed().as_secs_f64(),
        })
    }
}

/// Returns the number of virtual datasets of a file.
fn virtual_count(file: &OpenFile) -> u64 {
    let is_virtual = |kind: &ObjectKind| match kind {
        ObjectKind::Dataset(dataset) => matches!(dataset.layout, Layout::Virtual),
        ObjectKind::Templated(templated) => matches!(templated.form.dataset.layout, Layout::Virtual),
        _ => false,
    };
    file.tree().objects.iter().filter(|object| is_virtual(&object.kind)).count() as u64
}
