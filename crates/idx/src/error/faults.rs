//! Reasons why time steps and boxes do not fit a dataset.

use crate::dataset::time_steps::StepList;

/// Reason why a box cannot be written into an existing time step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateFault {
    /// The other samples of a field would be rounded a second time.
    #[error(
        "field {field:?} has compression {compression}, so samples outside the box would be rounded again; write the \
         whole time step again"
    )]
    Rounded {
        /// Name of the field.
        field: String,
        /// Compression named in the header.
        compression: String,
    },
    /// The time step has no separate folder, so it cannot be replaced atomically.
    #[error(
        "its file names ({template}) do not give each time step a separate folder, so it cannot be replaced atomically; write the \
         dataset again as another output"
    )]
    NoFolder {
        /// Template of the file names.
        template: String,
    },
    /// No rank passes a box.
    #[error("no rank passes any samples")]
    NoSamples,
    /// A field is passed twice.
    #[error("field {field:?} is passed twice")]
    FieldTwice {
        /// Name of the field.
        field: String,
    },
}

/// Reason why the requested time step, or the lack of one, does not fit a dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeFault {
    /// A time step was requested from a dataset without time steps.
    #[error("has no time steps, but time step {asked} was requested")]
    None {
        /// Requested time step.
        asked: u64,
    },
    /// A time step was to be added to a dataset without time steps.
    #[error("has no time steps, so none can be added")]
    NotAdded,
    /// A time step without a number was to be added.
    #[error("has time steps, so the one to add must have a number")]
    Unnumbered,
    /// The dataset has time steps, but none was requested.
    #[error("has several time steps; name one")]
    Unnamed,
    /// A time step was to be written whose number other readers do not support.
    #[error("cannot have time step {asked}: OpenVisus reads none of the steps if a number is above {limit}")]
    TooLarge {
        /// Requested time step.
        asked: u64,
        /// Largest number.
        limit: u64,
    },
    /// The dataset has other time steps.
    #[error("has no time step {asked}; available: {there}")]
    Absent {
        /// Requested time step.
        asked: u64,
        /// Existing time steps.
        there: StepList,
    },
}
