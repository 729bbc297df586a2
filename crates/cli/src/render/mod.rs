//! Formatting of results as text. Nothing here reads files or decides anything.

pub mod apply;
pub mod counts;
pub mod doctor;
pub mod events;
pub mod histogram;
pub mod idx_plan;
pub mod inspection;
pub mod keys;
pub mod measurement;
pub mod picture;
pub mod plan;
pub mod preview;
pub mod rechunk;
pub mod report;
pub mod simulation;
pub mod split;
mod spreads;
pub mod summary;
pub mod targets;

pub use raddle::text::{differences, escape, json, quantity, table};
