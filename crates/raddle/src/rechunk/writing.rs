//! Writing of many planned files, on several threads within one memory budget, and the report on them.
//!
//! Invariant: a file is recorded as done when its output is complete under its hidden name, and again when the output has
//! its own name.

use super::FailedFile;
use super::files::{PlannedFile, PlannedFiles, Stop, is_of_file, lock, plan_of, share};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::outputs::observer::FileObserver;
use crate::text::quantity;
use raddle_core::output::folder_of;
use raddle_core::output::publish::hidden_path;
use raddle_core::parallel;
use raddle_core::report::peak_rss_bytes;
use raddle_core::report::progress::{Event, RunningStage, Stage, Watch};
use raddle_merge::clear_leftovers;
use raddle_merge::options::MergeOptions;
use raddle_merge::path_text;
use raddle_merge::write::{MergeReport, merge};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A rewritten file.
#[derive(Debug, Clone, Serialize)]
pub struct RechunkedFile {
    /// Path of the input, as given.
    #[serde(serialize_with = "path_text::of")]
    pub input: PathBuf,
    /// Path of the output.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Length of the input.
    pub input_len_bytes: u64,
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

/// Report on many rewritten files.
#[derive(Debug, Clone, Serialize)]
pub struct RechunkedFiles {
    /// Folder of the outputs; `None` if they replace the inputs.
    #[serde(serialize_with = "path_text::of_some")]
    pub dir: Option<PathBuf>,
    /// Files written by this run, in the order of the inputs.
    pub files: Vec<RechunkedFile>,
    /// Files that were left out because they cannot be rewritten (`--skip-bad`).
    pub skipped: Vec<FailedFile>,
    /// Number of files that an interrupted run had written.
    pub done_before: u64,
    /// Length of the inputs of the files written by this run.
    pub input_len_bytes: u64,
    /// Length of these files.
    pub output_len_bytes: u64,
    /// Uncompressed length of their datasets.
    pub logical_len_bytes: u64,
    /// Wall time of planning and writing.
    pub elapsed_s: f64,
    /// Peak memory of the process, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
}

impl PlannedFiles {
    /// Writes the files.
    ///
    /// # Errors
    /// If an output cannot be written, the run is cancelled, or, unless bad files are to be left out, if an input turns
    /// out to be damaged. Finished files remain, and the same request continues with the others.
    pub fn run(self, context: &Context<'_>) -> Result<RechunkedFiles, Error> {
        if let Some(dir) = &self.to.dir {
            std::fs::create_dir_all(dir)
                .map_err(|cause| Error::new(Exit::Output, &format!("{}: cannot be created: {cause}", dir.display())))?;
        }
        self.done_before.iter().for_each(|output| clear_leftovers(output));
        let total_bytes = self.files.iter().map(|file| file.logical_len_bytes).sum();
        let writing = RunningStage::start(context.watch.observer, Stage::Encode, Some(total_bytes));
        let run = RechunkState {
            files: &self,
            watch: context.watch,
            rechunked: Mutex::default(),
            failed: Mutex::default(),
            postponed: Mutex::default(),
            finished: AtomicU64::new(self.done_before()),
        };
        let written = run.write_all();
        writing.finish();
        let (rechunked, failed) = (take(run.rechunked), take(run.failed));
        if let Err(Stop(error)) = written {
            return Err(self.interrupted(error, rechunked.len()));
        }
        for record in self.records.values() {
            // A record that remains would be of use only to the same command on changed inputs, which would ignore it.
            let _ = record.remove();
        }
        Ok(self.report(rechunked, failed))
    }

    /// Adds the number of finished files to an error.
    fn interrupted(&self, error: Error, rechunked: usize) -> Error {
        let done = self.done_before() + rechunked as u64;
        let all = self.done_before() + self.files.len() as u64;
        let skip = if is_of_file(&error) && all > 1 { "; --skip-bad leaves such files out" } else { "" };
        let error = match error.exit {
            // Finished files are published.
            Exit::Interrupted => Error::new(Exit::Interrupted, "stopped before the end"),
            _ => error,
        };
        let counts = format!("{} of {} are done", quantity::count(done), quantity::counted(all, "file"));
        let hint = format!("{counts}: the same command continues with the others{skip}");
        error.hint_after_remedy(&hint)
    }

    fn report(self, mut files: Vec<(usize, RechunkedFile)>, failed: Vec<(usize, FailedFile)>) -> RechunkedFiles {
        files.sort_unstable_by_key(|(number, _)| *number);
        let files: Vec<RechunkedFile> = files.into_iter().map(|(_, file)| file).collect();
        let done_before = self.done_before();
        let mut skipped = self.skipped;
        skipped.extend(failed.into_iter().map(|(_, file)| file));
        let sum = |of: fn(&RechunkedFile) -> u64| files.iter().map(of).sum();
        RechunkedFiles {
            dir: self.to.dir,
            skipped,
            done_before,
            input_len_bytes: sum(|file| file.input_len_bytes),
            output_len_bytes: sum(|file| file.output_len_bytes),
            logical_len_bytes: sum(|file| file.logical_len_bytes),
            elapsed_s: self.started.elapsed().as_secs_f64(),
            peak_rss_bytes: peak_rss_bytes(),
            files,
        }
    }
}

fn take<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Run over many files, shared by its threads.
struct RechunkState<'a> {
    files: &'a PlannedFiles,
    watch: Watch<'a>,
    rechunked: Mutex<Vec<(usize, RechunkedFile)>>,
    failed: Mutex<Vec<(usize, FailedFile)>>,
    /// Files that need more memory than the share of a file that is written next to others.
    postponed: Mutex<Vec<(usize, &'a PlannedFile)>>,
    finished: AtomicU64,
}

impl<'a> RechunkState<'a> {
    fn write_all(&self) -> Result<(), Stop> {
        let numbered = self.files.files.iter().enumerate();
        let (small, large): (Vec<_>, Vec<_>) = numbered.partition(|(_, file)| file.is_small);
        let lanes = self.files.options.jobs.min(small.len()).max(1);
        let of_lane = share(&self.files.options, lanes);
        let cancel = self.watch.cancel;
        parallel::for_each(
            &small,
            lanes,
            cancel,
            || (),
            |(), &(number, file)| self.write_small(number, file, &of_lane),
        )?;
        let postponed = std::mem::take(&mut *lock(&self.postponed));
        for (number, file) in postponed.into_iter().chain(large) {
            cancel.check()?;
            self.write(number, file, &self.files.options).or_else(|error| self.after_failure(number, file, error))?;
        }
        Ok(())
    }

    fn write_small(&self, number: usize, file: &'a PlannedFile, options: &MergeOptions) -> Result<(), Stop> {
        match self.write(number, file, options) {
            Err(error) if error.exit == Exit::Limit => {
                lock(&self.postponed).push((number, file));
                Ok(())
            }
            Err(error) => self.after_failure(number, file, error),
            Ok(()) => Ok(()),
        }
    }

    /// Leaves a bad file out if that is allowed; otherwise ends the run.
    fn after_failure(&self, number: usize, file: &PlannedFile, error: Error) -> Result<(), Stop> {
        if !self.files.skip_bad || !is_of_file(&error) {
            return Err(Stop(error));
        }
        let text = format!("left out: {}", error.message());
        self.watch.warn(text);
        lock(&self.failed).push((number, FailedFile::of(&file.input, &error)));
        Ok(())
    }

    /// Plans a file again, as it may have changed, and writes it.
    fn write(&self, number: usize, file: &PlannedFile, options: &MergeOptions) -> Result<(), Error> {
        let record = self.files.records.get(folder_of(&file.output));
        let kept_input = Some(file.input.as_path()).filter(|_| !options.in_place);
        let completed = || {
            if let Some(record) = record {
                record.add(kept_input, &file.output, &hidden_path(&file.output));
            }
        };
        let observer = FileObserver::new(self.watch.observer, &file.input, file.logical_len_bytes, &completed);
        let watch = Watch { observer: &observer, cancel: self.watch.cancel };
        let started = Instant::now();
        let merged = plan_of((&file.input, &file.output), options, &watch).and_then(|plan| merge(&plan, &watch));
        let merged: MergeReport = merged.map_err(|error| Error::of_merge(&error, std::slice::from_ref(&file.input)))?;
        observer.finish();
        if let Some(record) = record {
            record.add(kept_input, &file.output, &file.output);
        }
        let rechunked = RechunkedFile {
            input: file.input.clone(),
            output: file.output.clone(),
            input_len_bytes: merged.input_len_bytes,
            output_len_bytes: merged.output_len_bytes,
            logical_len_bytes: merged.logical_len_bytes,
            datasets: merged.datasets,
            elapsed_s: started.elapsed().as_secs_f64(),
            digest: merged.digest,
        };
        lock(&self.rechunked).push((number, rechunked));
        let done = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        self.watch.observer.event(&Event::FileFinished {
            input: text(&file.input),
            output: text(&file.output),
            done,
            files: self.files.done_before() + self.files.files.len() as u64,
        });
        Ok(())
    }
}
