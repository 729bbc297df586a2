//! Conversion of errors to exceptions of `raddle.errors`, which defines the classes; the kind of an error is determined
//! here.

use pyo3::prelude::*;
use raddle::Error;
use raddle::exit::Exit;
use raddle::text::json;
use raddle::text::keywords::{as_keywords, beside_values};
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
    let in_keywords = |of: &InputDifference| InputDifference { found: beside_values(&of.found), ..of.clone() };
    let differences = json(&differences.iter().map(in_keywords).collect::<Vec<_>>());
    let created = py
        .import("raddle.errors")
        .and_then(|module| module.getattr("_make"))
        .and_then(|make| make.call1((kind, exit_code, message, details, hint, errno, differences)));
    match created {
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

/// Creates the exception for a failed request.
pub fn of_error(py: Python<'_>, error: &Error) -> PyErr {
    let (_, hint) = error.explanation();
    let details = error.details_with_keywords().map(|details| anstream::adapter::strip_str(details).to_string());
    let kind = error.file_fault().unwrap_or_else(|| error.kind());
    let (exit_code, message, errno) = (error.exit.code(), error.message(), error.errno);
    make(py, Parts { kind, exit_code, message, details, hint, errno, differences: error.differences() })
}

/// Creates the exception for a file that could not be read.
pub fn of_hdf5(py: Python<'_>, error: &Hdf5Error) -> PyErr {
    of_error(py, &Error::of_file(error))
}

/// Creates the exception for an event file that could not be opened.
pub fn of_events(py: Python<'_>, error: &EventsError) -> PyErr {
    of_error(py, &Error::of_events(error, None))
}
