//! Options that a measured profile decides where a request does not.

pub mod events;
pub mod idx;
