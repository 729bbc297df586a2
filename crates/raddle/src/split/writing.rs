//! Writing of several outputs, one after the other with all threads, and the report on them.
//!
//! Invariant: an output is recorded as done when it is complete under its hidden name, and again when it has its own name.

use super::planning::{PlannedPart, PlannedSplit};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::outputs::observer::FileObserver;
use crate::text::quantity;
use raddle_core::output::publish::hidden_path;
use raddle_core::report::peak_rss_bytes;
use raddle_core::report::progress::{Event, RunningStage, Stage, Watch};
use raddle_merge::plan::PlannedInput;
use raddle_merge::plan::input_states::InputStates;
use raddle_merge::write::{MergeReport, merge};
use raddle_merge::{clear_leftovers, path_text, plan};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// A written output.
#[derive(Debug, Clone, Serialize)]
pub struct SplitPart {
    /// Path of the output.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Path of the variable with `.` between its components, if each has its own outputs.
    pub variable: Option<String>,
    /// Range of the divided dimension, such as `/time=0:365`; `None` if the output has all elements.
    pub range: Option<String>,
    /// Number of inputs that were merged.
    pub inputs: u64,
    /// Length of the output.
    pub output_len_bytes: u64,
    /// Uncompressed length of all datasets.
    pub logical_len_bytes: u64,
    /// Number of datasets, not counting scalar and null ones.
    pub datasets: u64,
    /// Wall time of planning and writing.
    pub elapsed_s: f64,
    /// Digest of all values; equal values have equal digests regardless of layout.
    pub digest: String,
}

/// Report on written outputs.
#[derive(Debug, Clone, Serialize)]
pub struct SplitReport {
    /// Folder of the outputs.
    #[serde(serialize_with = "path_text::of")]
    pub dir: PathBuf,
    /// Outputs written by this run.
    pub files: Vec<SplitPart>,
    /// Number of outputs that an interrupted run had written.
    pub done_before: u64,
    /// Length of the inputs.
    pub input_len_bytes: u64,
    /// Length of the outputs.
    pub output_len_bytes: u64,
    /// Uncompressed length of their datasets.
    pub logical_len_bytes: u64,
    /// Wall time of planning and writing.
    pub elapsed_s: f64,
    /// Peak memory of the process, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
}

impl PlannedSplit {
    /// Writes the outputs.
    ///
    /// # Errors
    /// If an input changed or cannot be read, an output cannot be written, or the run is cancelled. Finished outputs
    /// remain, and the same request continues with the others.
    pub fn run(self, context: &Context<'_>) -> Result<SplitReport, Error> {
        std::fs::create_dir_all(&self.dir).map_err(|cause| {
            Error::new(Exit::Output, &format!("{}: cannot be created: {cause}", self.dir.display()))
        })?;
        self.done_before.iter().for_each(|output| clear_leftovers(output));
        let total_bytes = self.parts.iter().map(|part| part.logical_len_bytes).sum();
        let observer = context.watch.observer;
        let writing = RunningStage::start(observer, Stage::Encode, Some(total_bytes));
        let mut files = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            match self.write(part, &context.watch) {
                Ok(file) => files.push(file),
                Err(error) => {
                    writing.finish();
                    return Err(self.interrupted(error, files.len()));
                }
            }
            observer.event(&Event::FileFinished {
                input: part.variable.clone().or_else(|| part.range.clone()).unwrap_or_default(),
                output: part.output.to_string_lossy().into_owned(),
                done: self.done_before() + files.len() as u64,
                files: self.done_before() + self.parts.len() as u64,
            });
        }
        writing.finish();
        // A record that remains would be of use only to the same command on changed inputs, which would ignore it.
        let _ = self.record.remove();
        let sum = |of: fn(&SplitPart) -> u64| files.iter().map(of).sum();
        Ok(SplitReport {
            done_before: self.done_before(),
            input_len_bytes: self.plan.input_len_bytes(),
            output_len_bytes: sum(|file| file.output_len_bytes),
            logical_len_bytes: sum(|file| file.logical_len_bytes),
            elapsed_s: self.started.elapsed().as_secs_f64(),
            peak_rss_bytes: peak_rss_bytes(),
            dir: self.dir,
            files,
        })
    }

    /// Adds the number of finished outputs to an error.
    fn interrupted(&self, error: Error, written: usize) -> Error {
        let done = self.done_before() + written as u64;
        let all = self.done_before() + self.parts.len() as u64;
        let error = match error.exit {
            // Finished outputs are published.
            Exit::Interrupted => Error::new(Exit::Interrupted, "stopped before the end"),
            _ => error,
        };
        let counts = format!("{} of {} are done", quantity::count(done), quantity::counted(all, "file"));
        error.hint_after_remedy(&format!("{counts}: the same command continues with the others"))
    }

    /// Returns the inputs of an output.
    fn inputs_of(&self, planned: &PlannedPart) -> &[PlannedInput] {
        match &planned.part.inputs {
            Some(inputs) => &self.plan.inputs[inputs.clone()],
            None => &self.plan.inputs,
        }
    }

    /// Plans and writes an output.
    fn write(&self, planned: &PlannedPart, watch: &Watch<'_>) -> Result<SplitPart, Error> {
        let completed = || self.record.add(None, &planned.output, &hidden_path(&planned.output));
        let observer = FileObserver::new(watch.observer, &planned.output, planned.logical_len_bytes, &completed);
        let watch = Watch { observer: &observer, cancel: watch.cancel };
        let started = Instant::now();
        let known = self.inputs_of(planned);
        let inputs: Vec<PathBuf> = known.iter().map(|input| input.path.clone()).collect();
        let options = planned.part.options(&self.options, planned.output.clone());
        let merged = options.and_then(|options| {
            let plan = plan(&inputs, &options, &watch)?;
            // All outputs hold parts of the same inputs.
            InputStates::of(known).check(&plan.inputs)?;
            merge(&plan, &watch)
        });
        let merged: MergeReport = merged.map_err(|error| Error::of_merge(&error, &inputs))?;
        observer.finish();
        self.record.add(None, &planned.output, &planned.output);
        Ok(SplitPart {
            output: planned.output.clone(),
            variable: planned.variable.clone(),
            range: planned.range.clone(),
            inputs: merged.inputs,
            output_len_bytes: merged.output_len_bytes,
            logical_len_bytes: merged.logical_len_bytes,
            datasets: merged.datasets,
            elapsed_s: started.elapsed().as_secs_f64(),
            digest: merged.digest,
        })
    }
}
