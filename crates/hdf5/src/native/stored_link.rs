//! Links as a group stores them, before their targets are read.

use crate::model::LinkTarget;

/// A link whose hard target is still an address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredLink {
    /// Name without its terminating zero.
    pub name: Vec<u8>,
    /// Whether the name is marked UTF-8.
    pub utf8: bool,
    /// Creation order value, if stored.
    pub creation_order: Option<i64>,
    /// Target of the link.
    pub target: StoredTarget,
}

/// Target of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredTarget {
    /// An object header; `None` if the address is undefined.
    Hard(Option<u64>),
    /// Any link other than a hard link.
    Other(LinkTarget),
}
