//! Test material for the other crates; unpublished.
//!
//! - [`spec`]: a file as plain values, from its storage down to its bytes; [`content`]: what it means to a reader.
//! - [`plain`]: writes specs and reads contents with ordinary libhdf5 calls, independent of raddle's own readers and
//!   writer, so that a test never asks raddle whether raddle is right.
//! - [`concatenation`]: what merging files must give, computed on contents.
//! - [`split`]: a file cut into several of distinct objects, for unions.
//! - [`faults`]: a disk that fails at a chosen call; [`power`]: what one may hold after the power failed.
//! - [`strategy`]: proptest strategies for specs; [`hostile`]: damaged and malicious files, with what must happen.
//!
//! ```no_run
//! # use raddle_testing::{concatenation::concatenate, plain, spec::FileSpec};
//! # fn merge(_: &[std::path::PathBuf], _: &std::path::Path) {}
//! # let (specs, folder): (Vec<FileSpec>, std::path::PathBuf) = (vec![], "".into());
//! let inputs = plain::make_all(&folder, &specs)?;
//! merge(&inputs, &folder.join("merged.h5"));
//! let contents: Vec<_> = specs.iter().map(FileSpec::content).collect();
//! let expected = concatenate(&contents).unwrap();
//! expected.assert_equals(&plain::read(&folder.join("merged.h5"))?);
//! # Ok::<(), raddle_hdf5::Hdf5Error>(())
//! ```
#![deny(unsafe_code)]

pub mod canonical;
pub mod concatenation;
pub mod content;
pub mod faults;
pub mod hostile;
#[allow(unsafe_code, reason = "calls libhdf5 directly; every block says why it may")]
pub mod plain;
pub mod power;
pub mod spec;
pub mod split;
pub mod strategy;
