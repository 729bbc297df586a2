//! Pages and figures of what runs did.
//!
//! Reports as they were written in ([`run`]), one page out ([`page`]), or its figures by themselves ([`figures`], drawn with
//! [`svg`]). Nothing here reads HDF5, knows a terminal or needs a network or a script: a page is one file that a phone, a
//! printer and a browser without JavaScript show. Invariant: every text from a report or a file is escaped.
#![forbid(unsafe_code)]

pub mod error;
pub mod escape;
pub mod figures;
pub mod page;
pub mod quantity;
pub mod run;
pub mod svg;

pub use error::{ReportError, Result};
