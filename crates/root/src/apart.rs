//! Reasons why the branches of a split object cannot be reassembled, with the branch, member or class concerned.

use super::layout::Unreadable;
use super::tree::{Branch, ElementBranch};
use raddle_columns::error::{ColumnsError, Location};

/// Error of a product whose branches cannot be reassembled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: the object cannot be reassembled: {why}")]
pub struct ReassemblyError {
    /// Location of the product.
    pub place: Location,
    /// Reason why the product cannot be reassembled.
    pub why: SplitReason,
}

impl From<ReassemblyError> for ColumnsError {
    fn from(error: ReassemblyError) -> Self {
        Self::Format(Box::new(error))
    }
}

/// Reason why a product cannot be reassembled from its branches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitReason {
    /// The contents of a branch are unknown.
    #[error("branch {branch}: {why}")]
    Unreadable {
        /// Path of the branch.
        branch: String,
        /// Reason why the contents are unknown.
        why: Unreadable,
    },
    /// The file does not describe this version of a class.
    #[error("branch {branch}: the file does not describe version {version} of class {class}")]
    Version {
        /// Path of the branch.
        branch: String,
        /// Name of the class.
        class: String,
        /// Version that the branch states.
        version: i64,
    },
    /// A member of a class has no branch.
    #[error("member {member} of class {class} ({type_name}) has no branch below {branch} at its position")]
    NoBranch {
        /// Path of the object's branch.
        branch: String,
        /// Name of the object's class.
        class: String,
        /// Name of the member.
        member: String,
        /// Type of the member.
        type_name: String,
    },
    /// A branch does not correspond to any member of the class.
    #[error("branch {branch} does not hold the expected member of class {class}")]
    NoMember {
        /// Path of the branch.
        branch: String,
        /// Name of the class.
        class: String,
    },
    /// A branch has no entries, or a different number of entries than the tree.
    #[error("branch {branch} has no entries, or a different number than the tree")]
    Entries {
        /// Path of the branch.
        branch: String,
    },
    /// A branch holds references to other objects, which mean nothing outside of their file.
    #[error("branch {branch}: references ({class}) are only valid in their own file")]
    Reference {
        /// Path of the branch.
        branch: String,
        /// Class of the references: `TRef` or `TRefArray`.
        class: &'static str,
    },
    /// A branch has a kind that is not expected at its position.
    #[error("branch {branch}: branches of kind {kind} and class {class} cannot be reassembled")]
    Kind {
        /// Path of the branch.
        branch: String,
        /// Class that the branch states.
        class: String,
        /// Kind of the branch, as ROOT numbers them.
        kind: i64,
    },
    /// A branch with branches below it does not state its class.
    #[error("branch {branch} has branches below it, but does not name their class")]
    NoClass {
        /// Path of the branch.
        branch: String,
    },
    /// Classes are nested too deep, or there are too many.
    #[error("branch {branch}: its classes are nested too deeply, or there are too many")]
    Depth {
        /// Path of the branch.
        branch: String,
    },
}

/// Returns the refusal of a branch with unknown contents.
pub(super) fn unknown(branch: &Branch, why: Unreadable) -> SplitReason {
    SplitReason::Unreadable { branch: branch.path.clone(), why }
}

/// Returns the reason for refusing a branch of an unexpected kind.
pub(super) fn kind(branch: &Branch, element: &ElementBranch) -> SplitReason {
    SplitReason::Kind { branch: branch.path.clone(), class: element.class.clone(), kind: element.kind }
}
