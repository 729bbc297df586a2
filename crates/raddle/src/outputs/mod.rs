//! Runs with several outputs: checks of their folder, the record of the finished ones, and progress.

pub(crate) mod folder;
pub(crate) mod observer;
pub(crate) mod record;
