//! The `raddle` command: parses options, prints results and messages.
//!
//! The other crates do all the work; only this one knows about terminals, signals and exit codes. There is one file per
//! command in [`command`]; options shared by commands are in [`options`], and all formatting of text is in [`render`].
#![forbid(unsafe_code)]

pub mod arguments;
pub mod command;
pub mod doctor;
pub mod kernels;
pub mod machine;
pub mod options;
pub mod planned;
pub mod print_error;
pub mod progress;
pub mod ranks;
pub mod rasterise;
pub mod render;
pub mod run;
pub mod self_test;
pub mod session;
pub mod signals;
pub mod standard_error;
pub mod text_file;
pub mod versions;

pub use raddle::exit;
pub use run::run;
