//! Applies measured HDF5 settings to unmodified programs.
//!
//! Two C objects embedded here do the work: one is preloaded and intercepts HDF5's functions; the other is a file
//! driver for programs with a statically linked HDF5. This crate decides which of them reaches a program ([`program`])
//! and which settings it gets ([`plan`]), installs the objects ([`install`]), and writes the same settings as source
//! code ([`emit`]). [`measure`] runs a program with different settings, for `tune`. No HDF5 is loaded here. Invariants:
//! settings that change the contents of files are applied only if allowed; settings that are not applied are listed,
//! with the reason.
#![forbid(unsafe_code)]

mod elf;
pub mod emit;
pub mod error;
pub mod install;
pub mod measure;
pub mod patch;
pub mod plan;
pub mod program;

pub use error::{InjectError, Result};
