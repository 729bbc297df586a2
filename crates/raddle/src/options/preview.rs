//! Options of the preview, which is made in the same pass as the output.

use crate::error::Error;
use raddle_idx::preview::MIN_SAMPLES;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Default maximum number of samples of a dataset: a screen of 2048 x 2048, or a volume of 161 along each axis.
const DEFAULT_SAMPLES: u64 = 1 << 22;

/// Options about previews.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Preview"))]
pub struct MergePreviewOptions {
    /// Write a small IDX dataset of each array with two to five axes, in the same pass [default folder: OUT.preview]
    ///
    /// It holds every 2nd, 4th, 8th... element along each axis and can be read at any coarser resolution with raddle
    /// idx view, idx read or OpenVisus. Only arrays of numbers with at least two axes of 32 or more elements have one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true))]
    #[serde(with = "super::text::flag")]
    pub preview: Option<Option<PathBuf>>,

    /// Maximum number of samples of each dataset of the preview, at least 1024; all together take at most a quarter of
    /// --memory [default: 4194304]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub preview_samples: Option<u64>,
}

/// Returns the default folder of a preview. It contains the full name of the output, so that `pv.nc` and `pv.h5` have
/// separate previews.
fn default_folder(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".preview");
    output.with_file_name(name)
}

impl MergePreviewOptions {
    /// Refuses options that contradict each other, and too few samples.
    ///
    /// # Errors
    /// If the options are refused. The error gives the reason.
    pub fn check(&self) -> Result<(), Error> {
        match self.preview_samples {
            Some(_) if self.preview.is_none() => Err(Error::usage("--preview-samples is for --preview")),
            Some(samples) if samples < MIN_SAMPLES => {
                Err(Error::usage(&format!("--preview-samples {samples}: a dataset has at least {MIN_SAMPLES} samples")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the folder of the preview of `output`, if one is requested.
    pub fn folder(&self, output: &Path) -> Option<PathBuf> {
        let named = self.preview.as_ref()?;
        Some(named.clone().unwrap_or_else(|| default_folder(output)))
    }

    /// Returns the maximum number of samples of a dataset.
    pub fn max_samples(&self) -> u64 {
        self.preview_samples.unwrap_or(DEFAULT_SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_previews() {
        for (output, folder) in [("a/out.h5", "a/out.h5.preview"), ("run", "run.preview"), ("x.nc", "x.nc.preview")] {
            assert_eq!(default_folder(Path::new(output)), Path::new(folder));
        }
    }
}
