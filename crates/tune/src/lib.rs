//! Measures HDF5 on this machine and finds the settings that help.
//!
//! A [`workload`] lists [`kernel`]s and the settings to compare. Each run is a separate process ([`worker`]), and
//! [`statistics`] evaluates the runs. The result is a [`profile`]: values of settings, the evidence for each, and the
//! machine they were measured on. Nothing here depends on a terminal.
#![forbid(unsafe_code)]

pub mod campaign;
pub mod contents;
pub mod error;
pub mod events;
pub mod findings;
pub mod fingerprint;
pub mod kernel;
pub mod knob;
pub mod measurement;
pub mod nova;
pub mod planned;
pub mod profile;
pub mod runner;
pub mod samples;
pub mod search;
pub mod statistics;
mod student;
pub mod summary;
pub mod translate;
pub mod worker;
pub mod workload;

pub use error::{Result, TuneError};
