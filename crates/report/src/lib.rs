//! Pages and figures about runs.
//!
//! The input is reports as they were written: those of merges and others ([`run`]), of `bench` and `tune`
//! ([`measured`]), and of `verify` ([`verified`]). The output is one page ([`page`]) or its separate figures
//! ([`figures`] and [`measured::comparisons`], drawn with [`svg`]). Nothing here reads HDF5, depends on a terminal, or
//! needs a network or a script: a page is a single file for phones, printers and browsers without JavaScript.
//! Invariant: every string from a report or a file is escaped.
#![forbid(unsafe_code)]

mod compared;
pub mod error;
pub mod escape;
pub mod figures;
mod histogram;
mod markup;
pub mod measured;
pub mod page;
mod particulars;
mod phases;
pub mod quantity;
pub mod run;
pub mod svg;
pub mod verified;

pub use error::{ReportError, Result};
