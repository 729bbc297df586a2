//! Test material for the other crates; not published.
//!
//! - [`spec`]: a file as plain values, from its storage to its bytes; [`content`]: the content that readers see.
//! - [`plain`]: writes specs and reads contents with ordinary libhdf5 calls, independent of raddle's readers and
//!   writer, so that raddle is never tested against itself.
//! - [`concatenation`]: the expected result of merging files, computed on contents.
//! - [`split`]: a file split into several with distinct objects, for unions.
//! - [`faults`]: a disk that fails at a chosen call; [`power`]: its possible contents after a power failure.
//! - [`requests`]: the largest memory request of a test.
//! - [`strategy`]: proptest strategies for specs; [`hostile`]: damaged and malicious files with expected results.
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
#[allow(unsafe_code, reason = "an allocator; it forwards all calls to that of the system")]
pub mod requests;
pub mod spec;
pub mod split;
pub mod strategy;
