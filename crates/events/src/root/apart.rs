//! Why the branches of an object are not put together: which branch, which member, which class.

use super::layout::Unreadable;
use super::tree::{Branch, ElementBranch};

/// Why a branch of objects is not put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Apart {
    /// A branch whose entries are not understood.
    #[error("branch {branch}: {why}")]
    Unreadable {
        /// The branch.
        branch: String,
        /// Why they are not.
        why: Unreadable,
    },
    /// A version of a class that no description is of.
    #[error("branch {branch}: the file does not describe version {version} of class {class}")]
    Version {
        /// The branch.
        branch: String,
        /// Its class.
        class: String,
        /// The version.
        version: i64,
    },
    /// A member without a branch.
    #[error("member {member} of class {class} ({type_name}) has no branch below {branch} in its place")]
    NoBranch {
        /// The branch of the object.
        branch: String,
        /// Its class.
        class: String,
        /// The member.
        member: String,
        /// Its type.
        type_name: String,
    },
    /// A branch that is none of the members.
    #[error("branch {branch} holds no member of class {class} that is expected there")]
    NoMember {
        /// The branch.
        branch: String,
        /// The class.
        class: String,
    },
    /// A branch without entries.
    #[error("branch {branch} has no entries, or another number of them than the tree")]
    Entries {
        /// The branch.
        branch: String,
    },
    /// References to other objects.
    #[error("branch {branch}: references ({class}) mean nothing outside of their file")]
    Reference {
        /// The branch.
        branch: String,
        /// `TRef` or `TRefArray`.
        class: &'static str,
    },
    /// A branch of a kind that does not stand where it was found.
    #[error("branch {branch}: branches of kind {kind} and class {class} are not put together")]
    Kind {
        /// The branch.
        branch: String,
        /// Its class.
        class: String,
        /// Its kind.
        kind: i64,
    },
    /// A branch with branches below it that does not say what they are of.
    #[error("branch {branch} has branches below it, and does not say of which class")]
    NoClass {
        /// The branch.
        branch: String,
    },
    /// Classes in classes without end.
    #[error("branch {branch}: its classes are nested too deep, or too many")]
    Depth {
        /// The branch.
        branch: String,
    },
}

/// The refusal of a branch that is not understood.
pub(super) fn unknown(branch: &Branch, why: Unreadable) -> Apart {
    Apart::Unreadable { branch: branch.path.clone(), why }
}

/// The refusal of a branch of another kind than is expected.
pub(super) fn kind(branch: &Branch, element: &ElementBranch) -> Apart {
    Apart::Kind { branch: branch.path.clone(), class: element.class.clone(), kind: element.kind }
}
