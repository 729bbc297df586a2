//! Planning of several outputs: the merge of everything is planned once, divided, and its parts get names.
//!
//! Invariant: all outputs are checked before the first one is written.

use super::SplitRequest;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::merge::plan_inputs;
use crate::outputs::folder::{check_folder, check_space, existing_folder, needed_len_bytes};
use crate::outputs::record::FolderRecord;
use crate::text::json;
use raddle_core::output::publish::published_path;
use raddle_merge::division::{OutputPart, divide};
use raddle_merge::error::MergeError;
use raddle_merge::options::MergeOptions;
use raddle_merge::path_text;
use raddle_merge::plan::MergePlan;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A planned output.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedPart {
    /// Path of the output.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Path of the variable with `.` between its components, if each has its own outputs.
    pub variable: Option<String>,
    /// Range of the divided dimension, such as `/time=0:365`; `None` if the output has all elements.
    pub range: Option<String>,
    /// Number of inputs that are merged.
    pub inputs: usize,
    /// Uncompressed length of all datasets.
    pub logical_len_bytes: u64,
    #[serde(skip)]
    pub(super) part: OutputPart,
}

/// Summary of planned outputs.
#[derive(Debug, Serialize)]
pub struct SplitSummary<'a> {
    /// Folder of the outputs.
    #[serde(serialize_with = "path_text::of")]
    pub dir: &'a Path,
    /// Outputs to write.
    pub files: &'a [PlannedPart],
    /// Number of outputs that an interrupted run has written.
    pub done_before: u64,
    /// Length of the inputs.
    pub input_len_bytes: u64,
    /// Uncompressed length of the outputs to write.
    pub logical_len_bytes: u64,
}

/// Planned outputs.
#[derive(Debug)]
pub struct PlannedSplit {
    pub(super) dir: PathBuf,
    pub(super) options: MergeOptions,
    pub(super) parts: Vec<PlannedPart>,
    /// Outputs that an interrupted run has written.
    pub(super) done_before: Vec<PathBuf>,
    /// Files in the folder that have the name of a part but do not belong to this division.
    pub(super) other_parts: Vec<PathBuf>,
    pub(super) record: FolderRecord,
    pub(super) plan: MergePlan,
    pub(super) started: Instant,
}

impl SplitRequest {
    /// Plans the outputs from the metadata of the inputs. Nothing is written.
    ///
    /// # Errors
    /// If options conflict, outputs cannot be written, there is too little space for them, or inputs cannot be read or
    /// do not fit together.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedSplit, Error> {
        self.plan_files(self.inputs.expand_collective(context.ranks)?, context)
    }

    /// Plans the outputs of these files instead of those that the inputs name.
    ///
    /// # Errors
    /// As for [`SplitRequest::plan`].
    pub fn plan_files(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedSplit, Error> {
        let started = Instant::now();
        let criteria = self.division.criteria()?;
        if context.ranks.size() > 1 {
            return Err(Error::usage(
                "split runs in one process: leave out mpirun, or start a process for each share of the variables",
            ));
        }
        let options = self.options(context.default_jobs)?;
        let (plan, inputs) = plan_inputs(files, &self.sorting, &options, context)?;
        let of_merge = |error: MergeError| Error::of_merge(&error, &inputs);
        let divided = divide(&plan, criteria).map_err(of_merge)?;
        let parts = self.named(divided, &plan)?;
        let other_parts = self.other_parts(&parts, &inputs);
        let mut record = self.record(&inputs)?;
        if !options.resume {
            record.forget();
        }
        let is_done = |part: &PlannedPart| record.is_done(&part.output, &part.output);
        let (done, parts): (Vec<PlannedPart>, Vec<PlannedPart>) = parts.into_iter().partition(is_done);
        let outputs: Vec<&Path> = parts.iter().map(|part| part.output.as_path()).collect();
        let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        check_folder(&self.dir, &outputs, &paths, self.writing.force, "name another folder, or another --name")?;
        let needed =
            parts.iter().map(|part| needed_len_bytes(&plan, part.logical_len_bytes)).fold(0, u64::saturating_add);
        check_space(existing_folder(&self.dir), needed, "the outputs", "free space, or name another folder")?;
        let done_before = done.into_iter().map(|part| part.output).collect();
        Ok(PlannedSplit { dir: self.dir.clone(), options, parts, done_before, other_parts, record, plan, started })
    }

    /// Gives the outputs of a division their paths.
    fn named(&self, divided: Vec<OutputPart>, plan: &MergePlan) -> Result<Vec<PlannedPart>, Error> {
        let extension = plan
            .inputs
            .first()
            .and_then(|input| input.path.extension())
            .map_or("h5".into(), |extension| extension.to_string_lossy().into_owned());
        let start = self.name.as_deref().unwrap_or("part");
        if start.is_empty() || start.contains('/') {
            return Err(Error::usage(&format!("--name {start:?} is not a valid prefix of a file name")));
        }
        let digits = divided.iter().map(|part| part.number).max().unwrap_or(0).to_string().len().max(4);
        let mut known: HashMap<PathBuf, String> = HashMap::new();
        let mut parts = Vec::with_capacity(divided.len());
        for part in divided {
            let stem = part.variable.as_deref().unwrap_or(start);
            let name = match (part.number, &part.variable) {
                (0, Some(_)) => format!("{stem}.{extension}"),
                (number, _) => format!("{stem}_{:0digits$}.{extension}", number.max(1)),
            };
            let output = published_path(&self.dir.join(name));
            let of = part.variable.clone().unwrap_or_default();
            if let Some(other) = known.insert(output.clone(), of.clone()) {
                let what = format!("{}: would hold both {other} and {of}", output.display());
                return Err(Error::new(Exit::InputRefused, &what).hint("leave out one of them with --exclude"));
            }
            parts.push(PlannedPart {
                output,
                variable: part.variable.clone(),
                range: part.range.as_ref().map(ToString::to_string),
                inputs: part.inputs.as_ref().map_or(plan.inputs.len(), ExactSizeIterator::len),
                logical_len_bytes: part.logical_len_bytes,
                part,
            });
        }
        Ok(parts)
    }

    /// Returns the files in the folder that have a name such as `part_0003.nc`, but are neither outputs nor inputs.
    fn other_parts(&self, parts: &[PlannedPart], inputs: &[PathBuf]) -> Vec<PathBuf> {
        let start = self.name.as_deref().unwrap_or("part");
        let stems: HashSet<&str> = parts.iter().map(|part| part.variable.as_deref().unwrap_or(start)).collect();
        let extension = parts.first().and_then(|part| part.output.extension());
        let known: HashSet<PathBuf> = parts
            .iter()
            .map(|part| &part.output)
            .chain(inputs)
            .filter_map(|path| std::fs::canonicalize(path).ok())
            .collect();
        let is_part = |path: &Path| {
            let stem = path.file_stem().and_then(OsStr::to_str).and_then(|name| name.rsplit_once('_'));
            let is_numbered = stem.is_some_and(|(stem, number)| {
                number.len() >= 4 && number.bytes().all(|byte| byte.is_ascii_digit()) && stems.contains(stem)
            });
            is_numbered && path.extension() == extension
        };
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_known = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|path| known.contains(&path));
        let mut found: Vec<PathBuf> = entries.filter(|path| is_part(path) && !is_known(path)).collect();
        found.sort_unstable();
        found
    }

    /// Returns the record of finished outputs of the same request with the same, unchanged inputs.
    fn record(&self, inputs: &[PathBuf]) -> Result<FolderRecord, Error> {
        let state = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok();
            (path.to_string_lossy().into_owned(), found.map(|found| (found.len(), found.mtime(), found.mtime_nsec())))
        };
        let inputs: Vec<_> = inputs.iter().map(state).collect();
        let decisive =
            json(&(&self.division, &self.name, &self.schema, &self.layout, self.writing.no_provenance, inputs));
        FolderRecord::open(&self.dir, "split", &decisive).map_err(|cause| {
            Error::new(Exit::Output, &format!("{}: its record of finished files: {cause}", self.dir.display()))
        })
    }
}

impl PlannedSplit {
    /// Returns the plan of the merge that is divided.
    pub fn plan(&self) -> &MergePlan {
        &self.plan
    }

    /// Returns the number of outputs that an interrupted run has written.
    pub fn done_before(&self) -> u64 {
        self.done_before.len() as u64
    }

    /// Returns the warning about files of another division in the folder, which a reader of all parts would read, too.
    pub fn warning_of_other_parts(&self) -> Option<String> {
        let first = self.other_parts.first()?.display();
        Some(match self.other_parts.len() {
            1 => format!("{first} is not a part of this division; remove it if an earlier split wrote it"),
            count => format!(
                "{first} and {} more are not parts of this division; remove them if an earlier split wrote them",
                count - 1
            ),
        })
    }

    /// Summarises what would be written as plain data.
    pub fn summary(&self) -> SplitSummary<'_> {
        SplitSummary {
            dir: &self.dir,
            files: &self.parts,
            done_before: self.done_before(),
            input_len_bytes: self.plan.input_len_bytes(),
            logical_len_bytes: self.parts.iter().map(|part| part.logical_len_bytes).sum(),
        }
    }
}
