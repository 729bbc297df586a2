//! Reason why a file cannot be merged with others.

use serde::{Deserialize, Serialize};

/// Reason why a file cannot be merged with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Object that reveals it, escaped for display.
    pub object: String,
    /// Reason and remedy.
    pub reason: String,
}
