//! Groups of options that only the command has, flattened into each command that needs them. All others are those of
//! requests ([`raddle::options`]).
//!
//! An option has the same meaning in every command. Nothing is decided here: values become the options of the crates
//! that do the work.

pub mod events;
pub mod inputs;
pub mod io;
pub mod keys;
pub mod measuring;
pub mod printing;
pub mod running;
pub mod setting;
pub mod simulation;

pub use raddle_core::size;
