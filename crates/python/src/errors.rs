//! Conversion of errors to exceptions of `raddle.errors`, which defines the classes; the kind of an error is determined
//! here.

use pyo3::prelude::*;
use raddle_cli::exit::Exit;
use raddle_cli::failure::Failure;
use raddle_cli::keywords::as_keywords;
use raddle_cli::render::json;
use raddle_core::report::InputDifference;
use raddle_events::EventsError;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::paths::MAX_LINKS;

/// Parts of an exception, as arguments of `raddle.errors._make`.
struct Parts<'a> {
    kind: &'a str,
    exit_code: u8,
    message: &'a str,
    details: Option<String>,
    hint: Option<&'a str>,
    /// Error number of the operating system.
    errno: Option<i32>,
    /// Differences between inputs.
    differences: &'a [InputDifference],
}

fn make(py: Python<'_>, parts: Parts<'_>) -> PyErr {
    let Parts { kind, exit_code, message, details, hint, errno, differences } = parts;
    let (message, hint) = (as_keywords(message), hint.map(as_keywords));
    let differences = json(&differences);
    let made = py
        .import("raddle.errors")
        .and_then(|module| module.getattr("_make"))
        .and_then(|make| make.call1((kind, exit_code, message, details, hint, errno, differences)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Creates the exception for a defect of raddle.
pub fn internal(py: Python<'_>, what: &str) -> PyErr {
    let message = format!("internal error: {what}");
    let hint = Some("this is a defect of raddle; please report it with this message and what led to it");
    make(
        py,
        Parts {
            kind: "internal",
            exit_code: Exit::Internal.code(),
            message: &message,
            details: None,
            hint,
            errno: None,
            differences: &[],
        },
    )
}

/// Creates the exception for an invalid call.
pub fn usage(py: Python<'_>, message: &str) -> PyErr {
    make(
        py,
        Parts {
            kind: "usage",
            exit_code: Exit::Usage.code(),
            message,
            details: None,
            hint: None,
            errno: None,
            differences: &[],
        },
    )
}

/// Creates the exception for a path that leads through more links than are followed.
pub fn too_many_links(py: Python<'_>, path: &str) -> PyErr {
    let message = format!("{path:?}: too many links: they lead in a circle, or there are more than {MAX_LINKS}");
    let (kind, exit_code) = ("too_many_links", Exit::InputRefused.code());
    make(py, Parts { kind, exit_code, message: &message, details: None, hint: None, errno: None, differences: &[] })
}

/// Creates the exception for a failed run.
pub fn of_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    of_kind(py, failure.kind(), failure)
}

/// Creates the exception for a file that could not be read.
pub fn of_hdf5(py: Python<'_>, error: &Hdf5Error) -> PyErr {
    of_kind(py, kind_of_hdf5(error), &Failure::of_input(error))
}

/// Creates the exception for a file of events that could not be opened.
pub fn of_events(py: Python<'_>, error: &EventsError) -> PyErr {
    of_failure(py, &Failure::of_events(error, None))
}

fn of_kind(py: Python<'_>, kind: &str, failure: &Failure) -> PyErr {
    let (details, hint) = failure.explanation();
    let details = details.map(|details| anstream::adapter::strip_str(details).to_string());
    let (exit_code, message, errno) = (failure.exit.code(), failure.message(), failure.errno);
    let differences = failure.differences();
    make(py, Parts { kind, exit_code, message, details, hint, errno, differences })
}

fn kind_of_hdf5(error: &Hdf5Error) -> &'static str {
    match error {
        Hdf5Error::InObject { source, .. } => kind_of_hdf5(source),
        Hdf5Error::Io { .. } => "io",
        Hdf5Error::NotHdf5 { .. } => "not_hdf5",
        Hdf5Error::Truncated { .. } => "truncated",
        Hdf5Error::InUse { .. } => "in_use",
        Hdf5Error::Malformed { .. } | Hdf5Error::Chunk { .. } => "damaged",
        Hdf5Error::Unsupported { .. } | Hdf5Error::LeftOut { .. } => "unsupported",
        Hdf5Error::Limit { .. } | Hdf5Error::Memory { .. } => "limit",
        Hdf5Error::Changed { .. } => "changed",
        Hdf5Error::BoxOutside { .. } => "internal",
        _ => "library",
    }
}
