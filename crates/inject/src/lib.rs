//! Gives measured settings of HDF5 to programs that know nothing of them.
//!
//! The work is done by two C objects that are embedded here: one that is preloaded and stands before HDF5's functions, and a
//! file driver for programs into which HDF5 is linked statically. This crate says which of them reaches a program
//! ([`program`]), what it is told ([`plan`]), puts the objects where the program finds them ([`install`]), and writes the
//! same settings as source code ([`emit`]). [`measure`] runs a program with one setting after the other, for `tune`. No HDF5
//! is loaded here. Invariants: nothing that changes what files hold is applied unless allowed; what is not applied is named,
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
