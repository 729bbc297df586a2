//! Errors of conversions and of HDF5 event files. Errors that any source or sink may have are those of
//! [`raddle_columns`].

use crate::sources::generated::EventTimesError;
use raddle_columns::ColumnsError;
use raddle_columns::error::{Location, listed};
use raddle_core::CoreError;
use raddle_core::output::check::UnusableOutput;
use raddle_core::ranks::communicator::AgreedError;
use raddle_hdf5::Hdf5Error;
use std::path::PathBuf;

/// Result type of this crate.
pub type Result<T, E = EventsError> = std::result::Result<T, E>;

/// Error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// A source or a sink failed.
    #[error(transparent)]
    Columns(ColumnsError),
    /// Text output could not be written.
    #[error("the output cannot be written: {source}")]
    Text {
        /// Cause.
        source: std::io::Error,
    },
    /// Patterns match no product.
    #[error("{place}: no such product; available: {}", listed(available))]
    NoMatch {
        /// The file and the patterns.
        place: Box<Location>,
        /// Names of the existing products.
        available: Vec<String>,
    },
    /// An option is not valid.
    #[error("{name}: {why}")]
    Option {
        /// Name of the option, as a field of a request.
        name: &'static str,
        /// Reason.
        why: String,
    },
    /// Files of this format cannot be merged.
    #[error("{}: {title} cannot be merged", path.display().to_string().escape_debug())]
    NotMergeable {
        /// Path of the file.
        path: PathBuf,
        /// Name of the format, in the plural.
        title: &'static str,
    },
    /// A file of recorded times cannot be parsed.
    #[error("{}: {source}", path.display())]
    Times {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: EventTimesError,
    },
    /// A product has different forms in two inputs.
    #[error("{place}: its form is {got}, but {expected} in the first input")]
    FormDiffers {
        /// The input and the product.
        place: Box<Location>,
        /// Form of the product in this input.
        got: String,
        /// Form of the product in the first input.
        expected: String,
    },
    /// A stream's records cannot follow another stream's header.
    #[error("{place}: {what} differs from that of the first input")]
    StreamDiffers {
        /// Location of the input.
        place: Box<Location>,
        /// Part of the header that differs.
        what: &'static str,
    },
    /// A product does not exist in the first input.
    #[error("{place}: the first input has no such product; it has {}", listed(available))]
    NotInFirst {
        /// The input and the product.
        place: Box<Location>,
        /// Names of the products of the first input.
        available: Vec<String>,
    },
    /// No product exists in all inputs in the same form, so all would be left out.
    #[error("no product has the same form in all inputs; {} would all be left out: {first}", listed(products))]
    NothingInCommon {
        /// Names of the products.
        products: Vec<String>,
        /// Reason why the first product would be left out.
        first: Box<EventsError>,
    },
    /// The output path cannot be used.
    #[error(transparent)]
    Output(#[from] UnusableOutput),
    /// Reading or writing an HDF5 file failed.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
}

/// Recovers an error of this crate that passed through a [`Source`](crate::Source) or a [`Sink`](crate::Sink).
impl From<ColumnsError> for EventsError {
    fn from(error: ColumnsError) -> Self {
        match error {
            ColumnsError::Format(error) => match error.downcast() {
                Ok(error) => *error,
                Err(error) => Self::Columns(ColumnsError::Format(error)),
            },
            error => Self::Columns(error),
        }
    }
}

/// Converts the error to one that sources and sinks may return.
impl From<EventsError> for ColumnsError {
    fn from(error: EventsError) -> Self {
        match error {
            EventsError::Columns(error) => error,
            error => Self::Format(Box::new(error)),
        }
    }
}

impl From<CoreError> for EventsError {
    fn from(error: CoreError) -> Self {
        Self::Columns(error.into())
    }
}

impl AgreedError for EventsError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        error.into()
    }
}

impl EventsError {
    /// Creates the error for an option that is not valid.
    pub(crate) fn option(name: &'static str, why: impl Into<String>) -> Self {
        Self::Option { name, why: why.into() }
    }

    /// Returns whether this error only reports that another rank failed.
    pub fn is_secondary(&self) -> bool {
        matches!(self, Self::Columns(ColumnsError::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. })))
    }
}

/// Reason why a layout that stores serialised objects cannot take a column.
pub(crate) const NEEDS_BYTES: &str = "it holds serialised objects; columns and fields of RNTuples are not serialised";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_out_of_sources_and_sinks_as_they_were() {
        let option = || EventsError::option("codec", "none such");
        assert!(matches!(ColumnsError::from(option()), ColumnsError::Format(_)));
        assert!(matches!(EventsError::from(ColumnsError::from(option())), EventsError::Option { name: "codec", .. }));
        let changed = EventsError::Columns(ColumnsError::Changed { path: "a.h5".into() });
        let passed = ColumnsError::from(changed);
        assert!(matches!(&passed, ColumnsError::Changed { .. }), "{passed}");
        assert!(matches!(EventsError::from(passed), EventsError::Columns(ColumnsError::Changed { .. })));
        // Errors of other crates stay what they are.
        let other = ColumnsError::Format(Box::new(std::fmt::Error));
        assert!(matches!(EventsError::from(other), EventsError::Columns(ColumnsError::Format(_))));
    }
}
