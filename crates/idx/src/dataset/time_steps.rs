//! Lists of time steps as text, and the folder of a step.

use crate::dataset::header::Header;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// Maximum number of ranges that a list prints.
const MAX_LIST_LEN: usize = 10;

/// Time steps as text: `0 to 2, 7`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepList(Vec<(u64, u64)>);

impl StepList {
    /// Creates a list from ascending steps.
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

    /// Creates the list of all steps from `first` to `last`.
    pub fn of_run(first: u64, last: u64) -> Self {
        Self(vec![(first, last)])
    }

    /// Returns the first and last step of each range of consecutive steps.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.0
    }
}

impl Display for StepList {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (number, (first, last)) in self.0.iter().take(MAX_LIST_LEN).enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match first == last {
                true => write!(formatter, "{comma}{first}")?,
                false => write!(formatter, "{comma}{first} to {last}")?,
            }
        }
        match (self.0.last(), self.0.len() > MAX_LIST_LEN) {
            (None, _) => formatter.write_str("none"),
            (Some((_, last)), true) => write!(formatter, " and others up to {last}"),
            _ => Ok(()),
        }
    }
}

/// Returns the folder that contains only the files of a step; `None` if the template does not provide one.
pub(crate) fn exclusive_folder(header: &Header, any_file: &Path, time_name: &str) -> Option<PathBuf> {
    let text = header.files.text();
    let before = text.split('%').next().unwrap_or_default();
    let before = before.strip_prefix("./").unwrap_or(before);
    let fixed = format!("{before}{time_name}");
    if !time_name.is_empty() && !time_name.contains('/') {
        return None; // the steps share a folder
    }
    let depth = Path::new(&fixed).components().count() - usize::from(!fixed.ends_with('/') && !fixed.is_empty());
    // Without a conversion, the last component is the file itself.
    (depth > 0).then(|| any_file.components().take(depth).collect())
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
