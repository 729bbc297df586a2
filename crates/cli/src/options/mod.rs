//! Groups of options that several commands share, each flattened into the commands that need it.
//!
//! An option means the same thing in every command. Nothing here decides anything: values become the options of the
//! crates that do the work.

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
