//! Both readers of metadata must agree, on everything that libhdf5 can make; and on values.
//!
//! Each test makes files with libhdf5 in this process, reads them natively and with libhdf5 in a child process (this
//! executable, started again for [`reader_child`]), and reports the first difference by object and field.

mod compare;
mod datasets;
mod files;
mod groups;
mod make;
mod samples;
mod values;

use raddle_hdf5::child::{ChildOptions, ChildReader, serve};

/// The child's side: not a test of its own.
#[test]
#[ignore = "runs as the child process of the other tests"]
fn reader_child() {
    serve().unwrap();
}

/// A reader whose children are this executable.
fn child_reader(options: ChildOptions) -> ChildReader {
    let arguments = ["reader_child", "--exact", "--ignored", "--nocapture"].map(Into::into).to_vec();
    ChildReader::with_options(std::env::current_exe().unwrap(), arguments, options)
}
