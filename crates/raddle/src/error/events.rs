//! Errors of event files.

use super::hdf5::{errno_of, exit_of_hdf5, is_exhaustion};
use super::{Error, OTHER_OPTIONS};
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
    /// Converts the error of writing events to `output`, or of only reading them if it is `None`.
    pub fn of_events(error: &EventsError, output: Option<&Path>) -> Self {
        let failure = Self::new(exit_of_events(error, output), &error.to_string());
        match error {
            EventsError::Columns(error) if output.is_none() => of_read(error, failure),
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

/// Adds cause and advice to the error of a source that is only read. Readers choose products by other options than
/// writers, and cannot leave out unreadable products.
fn of_read(error: &ColumnsError, failure: Error) -> Error {
    const OTHERS: &str = "read the other products only";
    const CONVERT: &str =
        "convert the file with `raddle events convert --skip-bad`, which leaves out unreadable products";
    match error {
        ColumnsError::Bad { place, fault } if place.branch.is_some() && !is_of_ids(fault) => {
            let raw =
                matches!(fault, UnlocatedError::NoObject { .. }).then_some("read the bytes as they are with --raw");
            let choices: Vec<&str> = raw.into_iter().chain([OTHERS, CONVERT]).collect();
            failure.advise(Advice::one_of(&choices))
        }
        ColumnsError::Bad { fault, .. } if is_of_ids(fault) => {
            failure.hint("read the ids as the products that they are, in Python: `raddle.events.open(INPUT).arrays()`")
        }
        ColumnsError::Format(error) if error.is::<ReassemblyError>() => {
            failure.advise(Advice::one_of(&[OTHERS, "read its branches as products of their own, without --whole"]))
        }
        _ => of_columns(error, failure),
    }
}

/// Returns whether a fault concerns the ids of events, which do not depend on the choice of products.
fn is_of_ids(fault: &UnlocatedError) -> bool {
    matches!(fault, UnlocatedError::IdRange { .. })
}

/// Adds cause and advice to the error of a source or a sink.
fn of_columns(error: &ColumnsError, failure: Error) -> Error {
    match error {
        ColumnsError::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }) => failure.echo(),
        ColumnsError::Core(CoreError::PlansDiffer { .. }) => failure.hint(OTHER_OPTIONS),
        ColumnsError::Core(CoreError::Memory { purpose, needed_bytes, available_bytes, limit_bytes }) => {
            let [needed, free, limit] = [*needed_bytes, *available_bytes, *limit_bytes].map(quantity::size);
            let budget = match available_bytes == limit_bytes {
                true => format!("the budget is {limit}"),
                false => format!("{free} of the budget of {limit} are free"),
            };
            let what = format!("{purpose} needs {needed} of memory; {budget}");
            Error::new(failure.exit, &what).advise(Advice::one_of(&[
                "raise --memory",
                "convert fewer --products",
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
        ColumnsError::OtherIds { .. } => failure.advise(Advice::one_of(&[
            "give the product another name",
            "leave the product out",
            "write columns, which store the ids apart from the products",
        ])),
        ColumnsError::Bad { fault, .. } if is_of_ids(fault) => {
            failure.advise(Advice::one_of(&["leave out the ids of all events with --skip-bad"]))
        }
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
        ColumnsError::Core(CoreError::PlansDiffer { .. }) => Exit::Usage,
        ColumnsError::Core(_) | ColumnsError::Compress { .. } => Exit::Internal,
        _ => Exit::InputRefused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::keywords::as_keywords;
    use raddle_events::Location;
    use raddle_root::SplitReason;

    fn hint(error: impl Into<EventsError>) -> String {
        Error::of_events(&error.into(), Some(Path::new("b.h5"))).hint.unwrap_or_default()
    }

    fn hint_on_reading(error: impl Into<EventsError>) -> String {
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
        let why = SplitReason::NoClass { branch: "tracks".to_owned() };
        assert!(hint(ColumnsError::from(ReassemblyError { place: branch(), why })).contains("without --whole"));
        let range = UnlocatedError::IdRange { what: "run", value: -1, max: u32::MAX.into() };
        assert!(hint(range.at(&branch())).ends_with("the ids of all events with --skip-bad"));
        assert!(hint(ColumnsError::OutputExists { path: "out.h5".into() }).contains("--force"));
    }

    #[test]
    fn advice_on_reading_names_no_option_of_writing() {
        let no_object = UnlocatedError::NoObject { address: 0, structure: "serialised object" };
        let damaged = UnlocatedError::Damaged { address: 0, structure: "basket", what: "it is short".to_owned() };
        let why = SplitReason::NoClass { branch: "tracks".to_owned() };
        let apart = ColumnsError::from(ReassemblyError { place: branch(), why });
        for error in [no_object.at(&branch()), damaged.at(&branch()), apart] {
            let hint = as_keywords(&hint_on_reading(error));
            assert!(hint.contains("read the other products only"), "{hint}");
            assert!(!hint.contains("skip_bad") && !hint.contains("products="), "{hint}");
        }
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
