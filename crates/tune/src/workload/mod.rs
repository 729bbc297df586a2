//! Workloads: experiments, each with kernels and the settings to compare with their default.
//!
//! A workload is TOML (`text`), in a file or a preset; running it is left to others. Invariants: a workload that
//! [`Workload::parse`] accepts can run on a large enough machine; each candidate differs from the default of its case
//! in one setting, in all settings of a factorial design, or by a variant.

mod experiment;
mod presets;
mod scale;
#[cfg(test)]
mod tests;
mod text;

pub use experiment::{Candidate, Case, Experiment, Variant};
pub use presets::preset_names;
pub use scale::Scale;

use crate::error::{Result, TuneError};
use crate::kernel::{Kernel, Verify};
use crate::knob::{Knob, SettingValue};
use crate::planned::PlannedTable;
use presets::preset;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A list of experiments to measure together.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Name of the workload.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Scale of the runs.
    pub scale: Scale,
    /// Index of the experiment whose winner becomes the profile.
    pub profile_from: usize,
    /// Experiments of the workload, in order.
    pub experiments: Vec<Experiment>,
    /// Tables of planned numbers, which are not measured.
    pub planned: Vec<PlannedTable>,
    /// Names of the presets that were combined, if there are several.
    pub parts: Vec<String>,
}

impl Workload {
    /// Returns the preset with this name, or reads the workload from the file with this name.
    ///
    /// # Errors
    /// If neither exists, or it is not a valid workload.
    pub fn named(name: &str, scale: Scale) -> Result<Self> {
        let path = Path::new(name);
        if let Some(text) = preset(name) {
            return Self::parse(path, text, scale);
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text, scale),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(TuneError::NoSuchWorkload { name: name.to_owned() })
            }
            Err(source) => Err(TuneError::Io { path: path.to_path_buf(), operation: "reading the workload", source }),
        }
    }

    /// Parses a workload; `path` is for messages.
    ///
    /// # Errors
    /// If it is not a valid workload.
    pub fn parse(path: &Path, text: &str, scale: Scale) -> Result<Self> {
        text::parse(path, text, scale)
    }

    /// Returns the maximum number of bytes that the largest run writes, without inflation.
    pub fn largest_run_len_bytes(&self) -> u64 {
        let candidates = self.experiments.iter().flat_map(Experiment::candidates);
        candidates.map(|candidate| candidate.kernel.len_bytes()).max().unwrap_or(0)
    }

    /// Creates the workload of a program with each of `knobs`; the best settings become the profile.
    ///
    /// # Errors
    /// If nothing is compared, or a value does not fit its setting.
    pub fn of_program(command: Vec<String>, verify: Verify, knobs: BTreeMap<Knob, Vec<SettingValue>>) -> Result<Self> {
        let name = name_of_command(&command);
        let experiment = Experiment {
            name: "program".to_owned(),
            title: command.join(" "),
            knobs,
            ..Experiment::of_kernel(Kernel::Program { command, verify })
        };
        let title = "An unmodified program under different settings".to_owned();
        let checked = experiment.kernel().check().and_then(|()| experiment.check());
        checked.map_err(|fault| TuneError::Workload {
            path: PathBuf::from(&name),
            experiment: "program".to_owned(),
            fault,
        })?;
        Ok(Self {
            name,
            title,
            scale: Scale::Own,
            profile_from: 0,
            experiments: vec![experiment],
            planned: Vec::new(),
            parts: Vec::new(),
        })
    }
}

/// Returns the name of a program without its folder, which names the measurement.
fn name_of_command(command: &[String]) -> String {
    command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default().to_owned()
}
