//! Result of the recognition of an input: its convention and rules, or the reason why it cannot be merged.

use super::options::Choice;
use super::refusal::Refusal;
use crate::rules::Rule;
use serde::{Deserialize, Serialize};

/// Result of the recognition of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recognition {
    /// Recognised convention, if any.
    pub choice: Option<Choice>,
    /// Reason for the recognition.
    pub because: String,
    /// Rules, with the numbers of their entries, ascending.
    pub rules: Vec<(u32, Rule)>,
    /// Reason why the input cannot be merged, if there is one.
    pub refusal: Option<Refusal>,
}

impl Recognition {
    /// Returns the rule of entry number `at`. Entries must be requested in ascending order; `cursor` keeps the
    /// position.
    pub fn rule(&self, at: usize, cursor: &mut usize) -> Option<&Rule> {
        while self.rules.get(*cursor).is_some_and(|(entry, _)| (*entry as usize) < at) {
            *cursor += 1;
        }
        self.rules.get(*cursor).filter(|(entry, _)| *entry as usize == at).map(|(_, rule)| rule)
    }
}
