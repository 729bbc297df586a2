//! Pages and figures of what runs did.
//!
//! Reports as they were written in ([`run`] of merges and others, [`measured`] of `bench` and `tune`, [`verified`] of `verify`),
//! one page out ([`page`]),
//! or its figures by themselves ([`figures`] and [`comparisons`], drawn with [`svg`]). Nothing here reads HDF5, knows a terminal or needs a network or a script: a page is one file that a phone, a
//! printer and a browser without JavaScript show. Invariant: every text from a report or a file is escaped.
#![forbid(unsafe_code)]

mod compared;
pub mod comparisons;
pub mod error;
pub mod escape;
pub mod figures;
pub mod measured;
pub mod page;
mod papers;
mod particulars;
mod phases;
pub mod quantity;
pub mod run;
mod scaling;
mod stage_times;
pub mod svg;
mod verdicts;
pub mod verified;

pub use error::{ReportError, Result};
