//! The `raddle` command: options in, results and messages out.
//!
//! All work is done by the crates below; this one knows terminals, signals and exit codes, and they do not.
//! One file per command in [`command`], options that commands share in [`options`], everything that becomes text in
//! [`render`].
#![forbid(unsafe_code)]

pub mod advice;
pub mod arguments;
pub mod arrays;
pub mod command;
pub mod demo;
pub mod exit;
pub mod failure;
pub mod kernels;
pub mod keywords;
pub mod machine;
pub mod options;
pub mod planned;
pub mod preview;
pub mod progress;
pub mod rasterise;
pub mod render;
pub mod run;
pub mod signals;
pub mod team;
pub mod text_file;
pub mod watching;

pub use run::run;
