//! Groups of options shared by several commands, flattened into each command that needs them.
//!
//! An option has the same meaning in every command. Nothing is decided here: values become the options of the crates
//! that do the work.

pub mod compression;
pub mod conventions;
pub mod events;
pub mod inputs;
pub mod io;
pub mod keys;
pub mod layout;
pub mod measuring;
pub mod output;
pub mod placing;
pub mod preview;
pub mod profile;
pub mod reader;
pub mod running;
pub mod schema;
pub mod setting;
pub mod simulation;
pub mod stripes;

pub use raddle_core::size;
