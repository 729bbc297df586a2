//! Reason why a file cannot be merged with others.

use crate::schema::display_path;
use serde::{Deserialize, Serialize};

/// Reason why a file cannot be merged with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Object that reveals it, escaped for display.
    pub object: String,
    /// Reason and remedy.
    pub reason: String,
}

/// Hint for users who know better.
const OVERRIDE: &str = "--convention none concatenates the datasets as they are";

/// Refuses a file because of `object`. `what` describes it, and `instead` is the remedy.
pub(super) fn refuse(object: &[u8], what: &str, instead: &str) -> Option<Refusal> {
    Some(Refusal { object: display_path(object), reason: format!("{what}: {instead}; {OVERRIDE}") })
}

/// Refuses a file of a format that rules of the user can describe.
pub(super) fn refuse_without_rules(object: &[u8], what: &str, instead: &str) -> Option<Refusal> {
    refuse(object, what, &format!("{instead}, or say with --rule how each dataset is merged"))
}
