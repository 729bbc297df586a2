//! Options that a measured profile sets if the request does not.

pub mod events;
pub mod idx;
