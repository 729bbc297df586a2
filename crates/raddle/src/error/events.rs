//! Errors of files of events.

use super::Error;
use super::hdf5::{errno_of, exit_of_hdf5, is_exhaustion};
use crate::advice::Advice;
use crate::exit::Exit;
use crate::text::quantity;
use raddle_core::CoreError;
use raddle_core::output::folder_of;
use raddle_core::output::publish::published_path;
use raddle_events::EventsError;
use raddle_hdf5::Hdf5Error;
use std::path::Path;

impl Error {
    /// Converts the error of reading events or of writing them to `output`.
    pub fn of_events(error: &EventsError, output: Option<&Path>) -> Self {
        let failure = Self::new(exit_of_events(error, output), &error.to_string());
        match error {
            error if error.is_echo() => failure.echo(),
            EventsError::Core(CoreError::Memory { purpose, needed_bytes, limit_bytes, .. }) => {
                let (needed, limit) = (quantity::size(*needed_bytes), quantity::size(*limit_bytes));
                let what = format!("{purpose} needs {needed} of memory; the budget is {limit}");
                Self::new(failure.exit, &what).advise(Advice::one_of(&[
                    "raise --memory",
                    "use fewer --jobs",
                    "make smaller chunks (--chunk)",
                ]))
            }
            EventsError::Io { source, .. } => failure.caused_by(source.raw_os_error()),
            EventsError::Hdf5(source) => failure.caused_by(errno_of(source)),
            EventsError::Form { .. } => failure.advise(Advice::one_of(&[
                "choose products that it can hold with --products",
                "write columns, which hold everything",
            ])),
            EventsError::NoSuch { kind: "product", .. } | EventsError::NotInFirst { .. } => {
                failure.advise(Advice::one_of(&[
                    "choose products that all inputs have with --products",
                    "choose how to treat the others with --differing",
                ]))
            }
            EventsError::FormDiffers { .. } => failure.advise(Advice::one_of(&[
                "choose other products with --products",
                "leave these out with --differing leave-out",
                "write a layout of bytes with --serialize, which stores all of them alike",
            ])),
            EventsError::NoMatch { .. } => {
                failure.hint("name some of these with --products, or use globs such as 'Muon_*'")
            }
            EventsError::Option { name, why } => Self::usage(&format!("--{}: {why}", name.replace('_', "-"))),
            EventsError::NotMergeable { .. } => failure
                .hint("use raddle events convert, which also accepts several files and writes them in an HDF5 layout"),
            EventsError::NothingInCommon { .. } => failure.advise(Advice::one_of(&[
                "convert inputs that have the same products",
                "fill in missing products with --differing fill",
            ])),
            EventsError::MixedSerialization { .. } => {
                failure.advise(Advice::one_of(&["serialise all products alike with --serialize"]))
            }
            EventsError::NoSuch { kind: "tree", available, .. } if !available.is_empty() => {
                failure.advise(Advice::one_of(&["name one of them with --tree"]))
            }
            EventsError::Apart { .. } => failure.advise(Advice::one_of(&[
                "choose other products with --products",
                "leave such objects out with --skip-bad",
                "read its branches as products of their own, without --whole",
            ])),
            EventsError::Bad { place, .. } if place.branch.is_some() => failure.advise(Advice::one_of(&[
                "leave out unreadable products with --skip-bad",
                "leave it out with --products",
            ])),
            _ => failure,
        }
    }

    /// Converts the error of writing events to `output`, or to the file that it links to.
    pub fn of_written_events(error: &EventsError, output: &Path) -> Self {
        Self::of_events(error, Some(&published_path(output)))
    }
}

fn exit_of_events(error: &EventsError, output: Option<&Path>) -> Exit {
    let is_output = |path: &Path| output.is_some_and(|output| folder_of(output) == folder_of(path));
    match error {
        EventsError::Io { source, .. } if is_exhaustion(source) => Exit::Limit,
        // The output is written under a temporary name next to its final one.
        EventsError::Io { path, operation, .. } if is_output(path) && !matches!(*operation, "open" | "read") => {
            Exit::Output
        }
        EventsError::Output(_) | EventsError::OutputExists { .. } | EventsError::Text { .. } => Exit::Output,
        EventsError::Locked { .. } => Exit::Locked,
        EventsError::Hdf5(Hdf5Error::Io { path, .. } | Hdf5Error::Library { path, .. })
            if output.is_some_and(|output| path == output) =>
        {
            Exit::Output
        }
        EventsError::Hdf5(error) => exit_of_hdf5(error, None),
        EventsError::Core(CoreError::Cancelled) => Exit::Interrupted,
        EventsError::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => Exit::Limit,
        EventsError::Core(_) | EventsError::Compress { .. } => Exit::Internal,
        _ => Exit::InputRefused,
    }
}
