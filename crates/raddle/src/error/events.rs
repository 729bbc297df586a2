//! Errors of files of events.

use super::Error;
use super::hdf5::{errno_of, exit_of_hdf5, is_exhaustion};
use crate::advice::Advice;
use crate::exit::Exit;
use crate::text::quantity;
use raddle_core::CoreError;
use raddle_core::output::folder_of;
use raddle_core::output::publish::published_path;
use raddle_events::{ColumnsError, EventsError, UnlocatedError};
use raddle_hdf5::Hdf5Error;
use raddle_root::ReassemblyError;
use std::path::Path;

impl Error {
    /// Converts the error of reading events or of writing them to `output`.
    pub fn of_events(error: &EventsError, output: Option<&Path>) -> Self {
        let failure = Self::new(exit_of_events(error, output), &error.to_string());
        match error {
            EventsError::Columns(error) => of_columns(error, failure),
            EventsError::Hdf5(source) => failure.caused_by(errno_of(source)),
            EventsError::NotInFirst { .. } => advise_on_products(failure),
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
            _ => failure,
        }
    }

    /// Converts the error of writing events to `output`, or to the file that it links to.
    pub fn of_written_events(error: &EventsError, output: &Path) -> Self {
        Self::of_events(error, Some(&published_path(output)))
    }
}

/// Adds cause and advice to the error of a source or a sink.
fn of_columns(error: &ColumnsError, failure: Error) -> Error {
    match error {
        ColumnsError::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }) => failure.echo(),
        ColumnsError::Core(CoreError::Memory { purpose, needed_bytes, limit_bytes, .. }) => {
            let (needed, limit) = (quantity::size(*needed_bytes), quantity::size(*limit_bytes));
            let what = format!("{purpose} needs {needed} of memory; the budget is {limit}");
            Error::new(failure.exit, &what).advise(Advice::one_of(&[
                "raise --memory",
                "use fewer --jobs",
                "make smaller chunks (--chunk)",
            ]))
        }
        ColumnsError::Io { source, .. } => failure.caused_by(source.raw_os_error()),
        ColumnsError::OutputExists { .. } => {
            failure.advise(Advice::one_of(&["replace it with --force", "name another output"]))
        }
        ColumnsError::Form { .. } => failure.advise(Advice::one_of(&[
            "choose products that it can hold with --products",
            "write columns, which hold everything",
        ])),
        ColumnsError::NoSuch { kind: "product", .. } => advise_on_products(failure),
        ColumnsError::MixedSerialization { .. } => {
            failure.advise(Advice::one_of(&["serialise all products alike with --serialize"]))
        }
        ColumnsError::NoSuch { kind: "tree", available, .. } if !available.is_empty() => {
            failure.advise(Advice::one_of(&["name one of them with --tree"]))
        }
        ColumnsError::Format(error) if error.is::<ReassemblyError>() => failure.advise(Advice::one_of(&[
            "choose other products with --products",
            "leave such objects out with --skip-bad",
            "read its branches as products of their own, without --whole",
        ])),
        ColumnsError::Bad { place, fault: UnlocatedError::NoObject { .. } } if place.branch.is_some() => failure
            .advise(Advice::one_of(&[
                "convert the bytes as they are with --raw",
                "leave out unreadable products with --skip-bad",
                "leave it out with --products",
            ])),
        ColumnsError::Bad { place, .. } if place.branch.is_some() => failure
            .advise(Advice::one_of(&["leave out unreadable products with --skip-bad", "leave it out with --products"])),
        _ => failure,
    }
}

fn advise_on_products(failure: Error) -> Error {
    failure.advise(Advice::one_of(&[
        "choose products that all inputs have with --products",
        "choose how to treat the others with --differing",
    ]))
}

fn exit_of_events(error: &EventsError, output: Option<&Path>) -> Exit {
    match error {
        EventsError::Columns(error) => exit_of_columns(error, output),
        EventsError::Output(_) | EventsError::Text { .. } => Exit::Output,
        EventsError::Hdf5(Hdf5Error::Io { path, .. } | Hdf5Error::Library { path, .. })
            if output.is_some_and(|output| path == output) =>
        {
            Exit::Output
        }
        EventsError::Hdf5(error) => exit_of_hdf5(error, None),
        _ => Exit::InputRefused,
    }
}

fn exit_of_columns(error: &ColumnsError, output: Option<&Path>) -> Exit {
    let is_output = |path: &Path| output.is_some_and(|output| folder_of(output) == folder_of(path));
    match error {
        ColumnsError::Io { source, .. } if is_exhaustion(source) => Exit::Limit,
        // The output is written under a temporary name next to its final one.
        ColumnsError::Io { path, operation, .. } if is_output(path) && !matches!(*operation, "open" | "read") => {
            Exit::Output
        }
        ColumnsError::OutputExists { .. } => Exit::Output,
        ColumnsError::Locked { .. } => Exit::Locked,
        ColumnsError::Core(CoreError::Cancelled) => Exit::Interrupted,
        ColumnsError::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => Exit::Limit,
        ColumnsError::Core(_) | ColumnsError::Compress { .. } => Exit::Internal,
        _ => Exit::InputRefused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_events::Location;
    use raddle_root::Apart;

    fn hint(error: impl Into<EventsError>) -> String {
        Error::of_events(&error.into(), None).hint.unwrap_or_default()
    }

    fn branch() -> Location {
        Location::file(Path::new("a.root")).tree("events").branch("tracks")
    }

    #[test]
    fn advice_names_the_options_that_help() {
        let no_object = UnlocatedError::NoObject { address: 0, structure: "serialised object" };
        assert!(hint(no_object.at(&branch())).starts_with("convert the bytes as they are with --raw, leave out"));
        let damaged = UnlocatedError::Damaged { address: 0, structure: "basket", what: "it is short".to_owned() };
        assert!(hint(damaged.at(&branch())).starts_with("leave out unreadable products with --skip-bad"));
        let why = Apart::NoClass { branch: "tracks".to_owned() };
        assert!(hint(ColumnsError::from(ReassemblyError { place: branch(), why })).contains("without --whole"));
        assert!(hint(ColumnsError::OutputExists { path: "out.h5".into() }).contains("--force"));
    }

    #[test]
    fn errors_of_libhdf5_keep_their_exit_code_through_a_sink() {
        let failed =
            || Hdf5Error::Library { path: "out.h5".into(), operation: "H5Fclose".into(), detail: "no space".into() };
        let exit = |error: EventsError| Error::of_events(&error, Some(Path::new("out.h5"))).exit;
        assert_eq!(exit(EventsError::Hdf5(failed())), Exit::Output);
        assert_eq!(exit(ColumnsError::from(EventsError::Hdf5(failed())).into()), Exit::Output);
    }
}
