//! Planning and writing of many files: each file is a merge of a single input.
//!
//! All files are planned before the first one is written, so that bad ones are reported together. Small files are
//! written on all threads at once, one thread and an equal share of the memory for each; then large ones follow one by
//! one with all threads and all memory. Invariant: the output of a file does not depend on the others.

use super::targets::{Target, split_replaceable, targets};
use super::{Destination, FailedFile, RechunkRequest};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::merge::layout_warnings;
use crate::outputs::folder::{check_folder, check_space, existing_folder, needed_len_bytes};
use crate::outputs::observer::FileObserver;
use crate::outputs::record::FolderRecord;
use crate::text::quantity;
use raddle_core::CoreError;
use raddle_core::output::folder_of;
use raddle_core::output::space::{FileSystem, file_system};
use raddle_core::parallel;
use raddle_core::report::progress::{Event, RunningStage, Stage, Watch};
use raddle_merge::error::MergeError;
use raddle_merge::options::MergeOptions;
use raddle_merge::path_text;
use raddle_merge::plan::{MergePlan, plan};
use raddle_merge::write::bridged;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Uncompressed size up to which a file is small, in bytes: it is written by one thread, next to others.
const MAX_SMALL_LEN_BYTES: u64 = 64 << 20;

/// A planned file.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedFile {
    /// Path of the input, as given.
    #[serde(serialize_with = "path_text::of")]
    pub input: PathBuf,
    /// Path of the output.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Length of the input.
    pub input_len_bytes: u64,
    /// Uncompressed length of all datasets.
    pub logical_len_bytes: u64,
    /// Number of datasets, not counting scalar and null ones.
    pub datasets: u64,
    /// Number of chunks of the output.
    pub chunks: u64,
    /// Whether the file is written by one thread, next to others.
    #[serde(skip)]
    pub(super) is_small: bool,
    /// Length that the output is expected not to exceed.
    #[serde(skip)]
    needed_len_bytes: u64,
}

/// Summary of many planned files.
#[derive(Debug, Serialize)]
pub struct FilesSummary<'a> {
    /// Folder of the outputs; `None` if they replace the inputs.
    #[serde(serialize_with = "path_text::of_some")]
    pub dir: Option<PathBuf>,
    /// Files to write, in the order of the inputs.
    pub files: &'a [PlannedFile],
    /// Files that are left out because they cannot be rewritten (`--skip-bad`).
    pub skipped: &'a [FailedFile],
    /// Number of files that an interrupted run has written.
    pub done_before: u64,
    /// Length of the inputs of the files to write.
    pub input_len_bytes: u64,
    /// Uncompressed length of their datasets.
    pub logical_len_bytes: u64,
}

/// Files that are rewritten together, within one memory budget.
#[derive(Debug)]
pub struct PlannedFiles {
    pub(super) to: Destination,
    pub(super) options: MergeOptions,
    pub(super) files: Vec<PlannedFile>,
    pub(super) skipped: Vec<FailedFile>,
    pub(super) skip_bad: bool,
    /// Outputs that an interrupted run has written.
    pub(super) done_before: Vec<PathBuf>,
    pub(super) records: HashMap<PathBuf, FolderRecord>,
    pub(super) started: Instant,
}

impl RechunkRequest {
    /// Plans the outputs of many inputs from their metadata. Nothing is written.
    ///
    /// # Errors
    /// If options conflict, outputs cannot be written, there is too little space for them, or, unless bad files are to
    /// be left out, if a file cannot be read.
    pub fn plan_files(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedFiles, Error> {
        let started = Instant::now();
        self.check_for_files(context)?;
        let (all, mut failed) = targets(files, &self.destination)?;
        let probe = all.first().map_or(Path::new(""), |target| target.output.as_path());
        let mut options = self.options(probe, context.default_jobs)?;
        options.in_place = self.destination.in_place;
        options.force |= options.in_place;
        let records = self.records(&all, options.resume)?;
        let is_done = |target: &&Target| {
            records.get(folder_of(&target.output)).is_some_and(|record| record.is_done(&target.input, &target.output))
        };
        let (done, todo): (Vec<&Target>, Vec<&Target>) = all.iter().partition(|target| is_done(target));
        let done_before: Vec<PathBuf> = done.iter().map(|target| target.output.clone()).collect();
        let todo = match &self.destination.dir {
            Some(dir) => {
                let outputs: Vec<&Path> = todo.iter().map(|target| target.output.as_path()).collect();
                let inputs: Vec<&Path> = all.iter().map(|target| target.input.as_path()).collect();
                let remedy = "name another folder, or use --in-place";
                check_folder(dir, &outputs, &inputs, self.writing.force, remedy)?;
                todo.into_iter().cloned().collect()
            }
            None => {
                let (todo, refused) = split_replaceable(todo.into_iter().cloned().collect());
                failed.extend(refused);
                todo
            }
        };
        let files = self.plan_each(&todo, &options, &mut failed, context)?;
        if !failed.is_empty() && !self.skip_bad {
            return Err(Error::of_failed_files(&failed, all.len()));
        }
        let (to, skip_bad) = (self.destination.clone(), self.skip_bad);
        let planned = PlannedFiles { to, options, files, skipped: failed, skip_bad, done_before, records, started };
        planned.check_space()?;
        Ok(planned)
    }

    fn check_for_files(&self, context: &Context<'_>) -> Result<(), Error> {
        self.check_destination()?;
        let refused = [
            (
                self.destination.dir.is_none() && !self.destination.in_place,
                "no output: name one with -o, or use --dir or --in-place",
            ),
            (
                self.destination.in_place && self.writing.force,
                "--in-place always replaces its inputs: leave out --force",
            ),
            (self.preview.preview.is_some(), "--preview is of one output: leave it out, or use -o"),
            (self.indexing.index, "--index is of one output: leave it out, or use -o"),
            (
                context.ranks.size() > 1,
                "--dir and --in-place run in one process: leave out mpirun, or start a process for each share of the files",
            ),
        ];
        match refused.into_iter().find(|(is_refused, _)| *is_refused) {
            Some((_, why)) => Err(Error::usage(why)),
            None => Ok(()),
        }
    }

    /// Returns the records in the folders of the outputs. They are empty if the run starts over.
    fn records(&self, targets: &[Target], resume: bool) -> Result<HashMap<PathBuf, FolderRecord>, Error> {
        let decisive =
            (&self.stripes, &self.layout, self.rank_1, self.writing.no_provenance, self.destination.in_place);
        let options = crate::text::json(&decisive);
        let mut records = HashMap::new();
        for folder in targets.iter().map(|target| folder_of(&target.output)) {
            if !records.contains_key(folder) {
                let mut record = FolderRecord::open(folder, "rechunk", &options).map_err(|cause| {
                    Error::new(Exit::Output, &format!("{}: its record of finished files: {cause}", folder.display()))
                })?;
                if !resume {
                    record.forget();
                }
                records.insert(folder.to_path_buf(), record);
            }
        }
        Ok(records)
    }

    /// Plans the files, several at a time, and adds those that cannot be rewritten to `failed`.
    fn plan_each(
        &self,
        todo: &[Target],
        options: &MergeOptions,
        failed: &mut Vec<FailedFile>,
        context: &Context<'_>,
    ) -> Result<Vec<PlannedFile>, Error> {
        let observer = context.watch.observer;
        let scanning = RunningStage::start(observer, Stage::Scan, None);
        let warnings: Mutex<BTreeMap<String, (PathBuf, u64)>> = Mutex::default();
        let threads = options.jobs.min(todo.len()).max(1);
        let single = share(options, threads);
        let watch = context.watch;
        let planned = parallel::map(
            todo,
            threads,
            watch.cancel,
            || (),
            |(), target| -> Result<_, Stop> {
                let planned = look(target, &single, options, &watch)?;
                observer.event(&Event::Advanced { stage: Stage::Scan, bytes: 0, items: 1 });
                if let Ok((_, found)) = &planned {
                    let mut warnings = lock(&warnings);
                    for warning in found {
                        warnings.entry(warning.clone()).or_insert_with(|| (target.input.clone(), 0)).1 += 1;
                    }
                }
                Ok(planned.map(|(file, _)| file))
            },
        );
        let planned = planned.map_err(|Stop(error)| error)?;
        scanning.finish();
        for (warning, (first, files)) in warnings.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let others = match files {
                1 => String::new(),
                all => format!(" and {} more", quantity::count(all - 1)),
            };
            context.warn(format!("{}{others}: {warning}", first.display()));
        }
        let mut good = Vec::with_capacity(planned.len());
        for planned in planned {
            match planned {
                Ok(file) => good.push(file),
                Err(bad) => failed.push(bad),
            }
        }
        Ok(good)
    }
}

/// Error that ends the work on all files.
pub(super) struct Stop(pub(super) Error);

impl From<CoreError> for Stop {
    fn from(error: CoreError) -> Self {
        Self(Error::of_merge(&error.into(), &[]))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the options of each of `lanes` concurrent merges.
pub(super) fn share(options: &MergeOptions, lanes: usize) -> MergeOptions {
    let (jobs, memory_limit_bytes) = ((options.jobs / lanes).max(1), options.memory_limit_bytes / lanes as u64);
    MergeOptions { jobs, memory_limit_bytes, ..options.clone() }
}

/// Returns the plan of a file.
pub(super) fn plan_of(
    target: (&Path, &Path),
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<MergePlan, MergeError> {
    let (input, output) = target;
    plan(&[input.to_path_buf()], &MergeOptions { output: output.to_path_buf(), ..options.clone() }, watch)
}

/// Plans a file with the options for several concurrent files, or with those for a single file if it needs more memory.
/// Returns the file with warnings, or the reason why it cannot be rewritten.
fn look(
    target: &Target,
    small: &MergeOptions,
    alone: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Result<(PlannedFile, Vec<String>), FailedFile>, Stop> {
    let silent = FileObserver::new(watch.observer, &target.input, 0, &|| {});
    let watch = Watch { observer: &silent, cancel: watch.cancel };
    let paths = (target.input.as_path(), target.output.as_path());
    let as_error = |error: MergeError| Error::of_merge(&error, std::slice::from_ref(&target.input));
    let mut is_small = true;
    let planned = plan_of(paths, small, &watch).map_err(as_error).or_else(|error| {
        is_small = false;
        match error.exit {
            Exit::Limit => plan_of(paths, alone, &watch).map_err(as_error),
            _ => Err(error),
        }
    });
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) if is_of_file(&error) => return Ok(Err(FailedFile::of(&target.input, &error))),
        Err(error) => return Err(Stop(error)),
    };
    let user_block = plan.inputs.first().map_or(0, |input| input.userblock_len_bytes);
    if small.in_place && user_block > 0 {
        let reason =
            format!("has a user block of {user_block} bytes, which would be lost; write to another folder instead");
        return Ok(Err(FailedFile::new(&target.input, Exit::InputRefused, reason, None)));
    }
    let mut warnings = layout_warnings(&plan);
    warnings.extend(bridged(&plan).iter().map(|found| format!("{}: {} ({})", found.path, found.found, found.expected)));
    let logical_len_bytes = plan.logical_len_bytes();
    let file = PlannedFile {
        input: target.input.clone(),
        output: target.output.clone(),
        input_len_bytes: plan.input_len_bytes(),
        logical_len_bytes,
        datasets: plan.columns.len() as u64,
        chunks: plan.chunk_count(),
        is_small: is_small && logical_len_bytes <= MAX_SMALL_LEN_BYTES,
        needed_len_bytes: needed_len_bytes(&plan, logical_len_bytes),
    };
    Ok(Ok((file, warnings)))
}

/// Returns whether an error is about a single file, in which case others can still be rewritten.
pub(super) fn is_of_file(error: &Error) -> bool {
    matches!(error.exit, Exit::InputRefused | Exit::Limit)
}

impl PlannedFiles {
    /// Returns the files to write, in the order of the inputs.
    pub fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    /// Returns the files that are left out.
    pub fn skipped(&self) -> &[FailedFile] {
        &self.skipped
    }

    /// Summarises what would be written as plain data.
    pub fn summary(&self) -> FilesSummary<'_> {
        let sum = |of: fn(&PlannedFile) -> u64| self.files.iter().map(of).sum();
        FilesSummary {
            dir: self.to.dir.clone(),
            files: &self.files,
            skipped: &self.skipped,
            done_before: self.done_before(),
            input_len_bytes: sum(|file| file.input_len_bytes),
            logical_len_bytes: sum(|file| file.logical_len_bytes),
        }
    }

    /// Returns the number of files that an interrupted run has written.
    pub fn done_before(&self) -> u64 {
        self.done_before.len() as u64
    }

    /// Refuses to begin if a file system lacks space for all outputs in its folder or, in place, for those that are
    /// written at the same time.
    fn check_space(&self) -> Result<(), Error> {
        let mut folders: BTreeMap<FileSystem, (&Path, Vec<&PlannedFile>)> = BTreeMap::new();
        for file in &self.files {
            let folder = self.to.dir.as_deref().unwrap_or(folder_of(&file.output));
            let existing = existing_folder(folder);
            let Ok(found) = file_system(existing) else { continue };
            folders.entry(found).or_insert((existing, Vec::new())).1.push(file);
        }
        for (folder, files) in folders.into_values() {
            let (needed, what) = match self.to.in_place {
                true => (self.needed_at_once(&files), "the largest files that are written at the same time"),
                false => (files.iter().map(|file| file.needed_len_bytes).sum(), "the outputs"),
            };
            check_space(folder, needed, what, "free space, use fewer --jobs, or name another folder")?;
        }
        Ok(())
    }

    /// Returns the length of the files that may be in flight at the same time.
    fn needed_at_once(&self, files: &[&PlannedFile]) -> u64 {
        let of = |is_small: bool| files.iter().filter(move |file| file.is_small == is_small);
        let mut small: Vec<u64> = of(true).map(|file| file.needed_len_bytes).collect();
        small.sort_unstable_by(|one, other| other.cmp(one));
        let together: u64 = small.iter().take(self.options.jobs).sum();
        let alone = of(false).map(|file| file.needed_len_bytes).max().unwrap_or(0);
        together.max(alone)
    }
}
