//! The existing time steps of a dataset, found by the names in their folder.
//!
//! Whether a step is complete is checked in `check`. Invariant: the cost depends on the number of names in that folder,
//! not on the numbers of the steps.

use crate::dataset::template::StepNames;
use crate::dataset::time_steps::{StepList, exclusive_folder};
use crate::error::{IdxError, Result};
use crate::read::dataset::Dataset;
use raddle_core::output::folder_of;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

impl Dataset {
    /// Returns the existing time steps, ascending; a single `None` for a dataset without steps. If the header names
    /// steps, others are not returned.
    ///
    /// # Errors
    /// If the folder that holds them cannot be listed.
    pub fn steps(&self) -> Result<Vec<Option<u64>>> {
        let header = self.header();
        let Some(time) = &header.time else { return Ok(vec![None]) };
        let folder = folder_of(self.path());
        let names = StepNames::new(&header.files, &time.template);
        let listed = folder.join(&names.folder);
        let failed = |source| IdxError::Read { path: listed.clone(), operation: "list", source };
        let entries = match std::fs::read_dir(&listed) {
            Ok(entries) => entries,
            Err(source) if source.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(source)),
        };
        let mut steps = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let step = name.to_str().and_then(|name| names.step(name));
            let is_named = |step: &u64| time.range.is_none_or(|(first, last)| (first..=last).contains(step));
            let is_there = |step: &u64| {
                let name = time.template.name(*step);
                exclusive_folder(header, &header.files.path(0, &name), &name)
                    .is_none_or(|step_folder| folder.join(step_folder).exists())
            };
            steps.extend(step.filter(is_named).filter(is_there));
        }
        Ok(steps.into_iter().map(Some).collect())
    }

    /// Returns whether `folder` contains blocks of an existing time step, also through symbolic links.
    pub(crate) fn has_blocks_in(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else { return false };
        let header = self.header();
        // Without the list, the data cannot be read either.
        let steps = self.steps().unwrap_or_default();
        steps.into_iter().any(|step| {
            let (fixed, beginning) = header.files.fixed_folder(&header.time_name(step));
            let Ok(blocks) = folder_of(self.path()).join(fixed).canonicalize() else { return false };
            let first_name = folder.strip_prefix(&blocks).ok().and_then(|within| within.iter().next()?.to_str());
            let rest = first_name.and_then(|name| name.strip_prefix(&beginning));
            blocks.starts_with(&folder) || rest.is_some_and(|rest| header.files.begins_with_number(rest))
        })
    }

    /// Returns the first and the last time step of the header if `there` lacks them. Steps in between may be absent on
    /// purpose.
    pub fn missing_steps(&self, there: &[Option<u64>]) -> Vec<u64> {
        let range = self.header().time.as_ref().and_then(|time| time.range);
        let mut named: Vec<u64> = range.into_iter().flat_map(|(first, last)| [first, last]).collect();
        named.dedup();
        named.retain(|step| !there.contains(&Some(*step)));
        named
    }

    /// Returns the existing time steps as text.
    pub(crate) fn step_list(&self) -> StepList {
        // Even without the list, the error message is understandable.
        StepList::of(self.steps().unwrap_or_default().into_iter().flatten())
    }
}
