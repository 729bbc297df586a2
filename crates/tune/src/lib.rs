//! Measures HDF5 on this machine and finds the settings that help.
//!
//! A [`workload`] says what is measured: [`kernel`]s with the settings that are compared. Each run is a process of its own
//! ([`worker`]); [`statistics`] say what the runs say. A [`profile`] is what comes out: values of settings, each with the
//! evidence for it, and the machine they were measured on. Nothing here knows a terminal.
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
