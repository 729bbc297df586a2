//! What runs with several outputs share: checks of their folder, the record of those that are done, and progress.

pub(crate) mod folder;
pub(crate) mod observer;
pub(crate) mod record;
