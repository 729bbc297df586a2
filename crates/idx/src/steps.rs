//! Which time steps of a dataset are there, by the names in the folder that holds them.
//!
//! Not for whether a step is whole (`check`). Invariant: the cost goes with the names in that folder, whatever numbers the
//! steps have.

use crate::error::{IdxError, Result};
use crate::reader::Dataset;
use crate::step::own_folder;
use crate::template::StepNames;
use raddle_core::output::folder_of;
use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::io::ErrorKind;

/// Most runs of steps that are named.
const LONGEST_LIST: usize = 10;

/// Time steps as words: `0 to 2, 7`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepList(Vec<(u64, u64)>);

impl StepList {
    /// Of ascending steps.
    pub fn of(steps: impl IntoIterator<Item = u64>) -> Self {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for step in steps {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(step) => *last = step,
                _ => runs.push((step, step)),
            }
        }
        Self(runs)
    }

    /// First and last of steps that follow each other.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.0
    }
}

impl Display for StepList {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (number, (first, last)) in self.0.iter().take(LONGEST_LIST).enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match first == last {
                true => write!(formatter, "{comma}{first}")?,
                false => write!(formatter, "{comma}{first} to {last}")?,
            }
        }
        match (self.0.last(), self.0.len() > LONGEST_LIST) {
            (None, _) => formatter.write_str("none"),
            (Some((_, last)), true) => write!(formatter, " and others up to {last}"),
            _ => Ok(()),
        }
    }
}

impl Dataset {
    /// The time steps that are there, ascending: `None` for a dataset without any. Of those that the header does not name
    /// none is, if it names any.
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
                own_folder(header, &header.files.path(0, &name), &name).is_none_or(|own| folder.join(own).exists())
            };
            steps.extend(step.filter(is_named).filter(is_there));
        }
        Ok(steps.into_iter().map(Some).collect())
    }

    /// The time steps that the header names, as its first and its last, and that are not `there`. Those between may have
    /// been left out.
    pub fn missing_steps(&self, there: &[Option<u64>]) -> Vec<u64> {
        let range = self.header().time.as_ref().and_then(|time| time.range);
        let mut named: Vec<u64> = range.into_iter().flat_map(|(first, last)| [first, last]).collect();
        named.dedup();
        named.retain(|step| !there.contains(&Some(*step)));
        named
    }

    /// The time steps that are there, as words.
    pub(crate) fn step_list(&self) -> StepList {
        // Without a list the error that this goes with still tells what is wrong.
        StepList::of(self.steps().unwrap_or_default().into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_as_words() {
        let words = |steps: &[u64]| StepList::of(steps.iter().copied()).to_string();
        assert_eq!(words(&[]), "none");
        assert_eq!(words(&[0, 1, 2, 7]), "0 to 2, 7");
        let many: Vec<u64> = (0..40).step_by(2).collect();
        assert_eq!(words(&many), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and others up to 38");
        assert_eq!(words(&[u64::MAX]), u64::MAX.to_string());
    }
}
