//! Reasons why a request is refused before anything is read or written.

/// Reason why an option of a request does not fit the others, the samples or the dataset. Each reads as the predicate
/// of a sentence that begins with the name of the option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// The option belongs to a format other than the output's.
    #[error("is an {of} option, but the output is {output}")]
    OtherTarget {
        /// Title of the format that has the option.
        of: &'static str,
        /// Title of the output's format.
        output: &'static str,
    },
    /// The format has no such compression.
    #[error("must be {choices} for {output}; {why}")]
    Compression {
        /// Title of the output's format.
        output: &'static str,
        /// Compressions of the format.
        choices: &'static str,
        /// Reason why the format lacks the requested compression.
        why: &'static str,
    },
    /// The number of axes of a size differs from that of the samples.
    #[error("has {named} axes, but the samples have {axes}")]
    SizeAxes {
        /// Number of axes of the size.
        named: usize,
        /// Number of axes of the samples.
        axes: usize,
    },
    /// The length of a list differs from the number of axes of the samples.
    #[error("has {named} numbers, but the samples have {axes} axes")]
    Numbers {
        /// Length of the list.
        named: usize,
        /// Number of axes of the samples.
        axes: usize,
    },
    /// A distance is not a finite number above 0.
    #[error("holds {distance}; a distance is a number above 0")]
    Distance {
        /// The distance, as text.
        distance: String,
    },
    /// Time steps do not begin at 0.
    #[error("begins at {first}, but time steps of {output} are counted from 0")]
    FirstStep {
        /// First time step.
        first: u64,
        /// Title of the output's format.
        output: &'static str,
    },
    /// The format has no settings to be found by trials.
    #[error("finds IDX options, but the output is {output}")]
    NotTuned {
        /// Title of the output's format.
        output: &'static str,
    },
    /// An axis is named that the dataset does not have.
    #[error("names axis {axis}, but the dataset has{}", axes.iter().map(|axis| format!(" {axis}")).collect::<String>())]
    NoAxis {
        /// Name of the axis.
        axis: char,
        /// Names of the dataset's axes.
        axes: Vec<char>,
    },
    /// An axis is named twice.
    #[error("names axis {axis} twice")]
    AxisTwice {
        /// Name of the axis.
        axis: char,
    },
    /// A box reaches beyond the dataset.
    #[error("extends past {axis} = {limit}, where the dataset ends")]
    PastEnd {
        /// Name of the axis.
        axis: char,
        /// End of the dataset along the axis, exclusive.
        limit: u64,
    },
    /// The option applies to an IDX dataset as input, but there is none.
    #[error("applies to an input NAME.idx, but none is given")]
    NoDataset,
    /// The option applies to arrays, but the input is an IDX dataset.
    #[error("only applies to arrays; {input} specifies it itself")]
    OnlyArrays {
        /// Path of the input.
        input: String,
    },
    /// The number of names differs from the number of fields.
    #[error("gives {names} names for {fields} {}", if *fields == 1 { "field" } else { "fields" })]
    Names {
        /// Number of names.
        names: usize,
        /// Number of fields.
        fields: usize,
    },
    /// The raw form of inputs lacks its type or its shape.
    #[error("needs {other} as well")]
    Needs {
        /// Name of the missing option.
        other: &'static str,
    },
}
