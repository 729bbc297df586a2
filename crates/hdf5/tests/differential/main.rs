//! Both metadata readers must agree on everything that libhdf5 can create, and on values.
//!
//! Each test creates files with libhdf5 in this process, reads them natively and with libhdf5 in a child process (this
//! executable, started again for [`reader_child`]), and reports the first difference by object and field.
#![allow(clippy::macro_metavars_in_unsafe, reason = "the maker's macro is for calls with plain values")]

mod bounds;
mod compare;
mod datasets;
mod files;
mod forms;
mod groups;
mod make;
mod reach;
mod samples;
mod values;

use raddle_hdf5::child::{ChildOptions, ChildReader, ReaderCommand, serve};

/// The child's side: not a test itself.
#[test]
#[ignore = "runs as the child process of the other tests"]
fn reader_child() {
    serve().unwrap();
}

/// Compares the readers on existing files: `RADDLE_FILES` lists them, one per line, or names a folder of them.
#[test]
#[ignore = "needs files, named by RADDLE_FILES"]
fn files_from_elsewhere() {
    let named = std::env::var("RADDLE_FILES").unwrap();
    let is_folder = std::path::Path::new(&named).is_dir();
    let files: Vec<std::path::PathBuf> = if is_folder {
        std::fs::read_dir(&named).unwrap().map(|entry| entry.unwrap().path()).collect()
    } else {
        named.lines().map(Into::into).collect()
    };
    let differences: Vec<String> = files.iter().filter_map(|path| compare::difference(path)).collect();
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), files.len(), differences.join("\n"));
}

/// Creates a reader whose children run this executable.
fn child_reader(options: ChildOptions) -> ChildReader {
    let arguments = ["reader_child", "--exact", "--ignored", "--nocapture"].map(Into::into).to_vec();
    let command = ReaderCommand { executable: std::env::current_exe().unwrap(), arguments };
    ChildReader::with_options(command, options)
}
