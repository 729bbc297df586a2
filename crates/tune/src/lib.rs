//! Measures HDF5 on this machine and finds the settings that help.
//!
//! A [`profile`] is what comes out: values of settings, each with the evidence for it, and the machine they were measured
//! on. Nothing here knows a terminal.
#![forbid(unsafe_code)]

pub mod error;
pub mod fingerprint;
pub mod knob;
pub mod profile;

pub use error::{Result, TuneError};
