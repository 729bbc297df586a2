//! Errors of workloads, runs and profiles. Every variant names the file or setting and the remedy.

use crate::knob::{InvalidValue, Knob, SettingValue};
use std::path::PathBuf;

/// Result type of this crate.
pub type Result<T, E = TuneError> = std::result::Result<T, E>;

/// An error of measuring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// An option of `raddle idx write` has an invalid value.
    #[error("{}: [idx] {option} cannot be {value}", path.display())]
    IdxValue {
        /// Path of the profile.
        path: PathBuf,
        /// Name of the option.
        option: &'static str,
        /// Value of the setting or option.
        value: SettingValue,
    },
    /// A call of the operating system failed.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Underlying error.
        source: std::io::Error,
    },
    /// A profile or workload is not TOML of this format.
    #[error("{}: not a {what} of this version: {}", path.display(), in_a_line(source))]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// `profile` or `workload`.
        what: &'static str,
        /// Cause, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A profile was written by a newer raddle.
    #[error("{}: the profile has format {found}, but this raddle supports up to {known}: use the raddle that wrote it, or a newer one", path.display())]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// Format that this version supports.
        known: u32,
    },
    /// A setting of a profile has an invalid value.
    #[error("{}: {source}", path.display())]
    Value {
        /// Path of the profile.
        path: PathBuf,
        /// Underlying error.
        source: InvalidValue,
    },
    /// A setting is under the wrong heading.
    #[error("{}: {knob} belongs under [{belongs}.{knob}]", path.display())]
    Heading {
        /// Path of the file.
        path: PathBuf,
        /// Setting concerned.
        knob: Knob,
        /// Correct heading.
        belongs: &'static str,
    },
    /// A workload is inconsistent.
    #[error("{}: experiment {experiment}: {fault}", path.display())]
    Workload {
        /// File, or name of the preset.
        path: PathBuf,
        /// Name of the experiment.
        experiment: String,
        /// Description of the fault.
        fault: WorkloadFault,
    },
    /// A name is neither a preset nor a file.
    #[error("{name}: no such workload: give a file, or one of {}", crate::workload::preset_names().join(", "))]
    NoSuchWorkload {
        /// Name that was looked up.
        name: String,
    },
    /// A setting is not available with this library on this machine.
    #[error("{knob} = {value} is not available: {why}")]
    NotApplicable {
        /// Setting concerned.
        knob: Knob,
        /// Value of the setting or option.
        value: SettingValue,
        /// Reason why the setting is not available.
        why: Obstacle,
    },
    /// HDF5 reported an error.
    #[error(transparent)]
    Hdf5(#[from] raddle_hdf5::Hdf5Error),
    /// The ranks were not started by the MPI of the measured library.
    #[error("{wanted} ranks were started, but the MPI of {} sees {found}: name the launcher of that MPI with --mpirun", library.display())]
    OtherLauncher {
        /// The libhdf5 that uses this MPI.
        library: PathBuf,
        /// Number of ranks that this MPI sees.
        found: u32,
        /// Number of ranks requested.
        wanted: u32,
    },
    /// A message between raddle and a worker is invalid.
    #[error("invalid message from or to a worker: {source}")]
    Answer {
        /// Underlying error.
        source: serde_json::Error,
    },
    /// There is too little free space for the files of runs.
    #[error("{}: {free_len_bytes} bytes are free, but runs may need {needed_len_bytes}: choose another folder or a smaller scale", folder.display())]
    NoSpace {
        /// Path of the folder.
        folder: PathBuf,
        /// Space that runs may need.
        needed_len_bytes: u64,
        /// Free space.
        free_len_bytes: u64,
    },
    /// An experiment has no default.
    #[error("there is nothing to compare")]
    NothingToCompare,
    /// The user or the system requested cancellation.
    #[error("stopped before it finished")]
    Cancelled,
    /// A worker failed.
    #[error("a run failed: {message}")]
    Run {
        /// Message of the worker, or its exit status.
        message: String,
    },
}

/// Reason why a workload is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadFault {
    /// The workload has no experiments.
    #[error("a workload needs at least one experiment")]
    None,
    /// Two experiments have the same name.
    #[error("another experiment has the same name")]
    Twice,
    /// The experiment compares nothing.
    #[error("nothing is compared: give knobs or variants")]
    NothingCompared,
    /// The kernel cannot be parsed.
    #[error("kernel: {}", in_a_line(.0))]
    Kernel(Box<toml::de::Error>),
    /// A parameter of the kernel is out of range.
    #[error("kernel: {0} is out of range")]
    Size(&'static str),
    /// Parameters of the kernel exclude each other.
    #[error("kernel: {0}")]
    Conflict(&'static str),
    /// The ranks of a variant are not a valid number.
    #[error("ranks of a variant must be a whole number from 1 to {max}")]
    Ranks {
        /// Maximum number of ranks.
        max: u32,
    },
    /// The library of a variant is not a string.
    #[error("library must be a string: a path, or a name that the system's loader finds")]
    Library,
    /// The kernel runs on a single process only.
    #[error("kernel: {0} runs on a single process: leave ranks out")]
    NotForRanks(&'static str),
    /// A setting has an invalid value.
    #[error(transparent)]
    Setting(InvalidValue),
    /// A chunk has a wrong number of dimensions.
    #[error("chunk {shape:?} does not fit datasets of {dims:?}")]
    Chunk {
        /// Shape of the chunk.
        shape: Vec<u64>,
        /// Extent of the datasets.
        dims: Vec<u64>,
    },
    /// The experiment from which the profile should come does not exist.
    #[error("does not exist, but the profile should come from it")]
    NoSource,
}

/// Reason why a setting is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The library is too old.
    #[error("HDF5 {0} does not support it")]
    Version(String),
    /// The library was built without a filter.
    #[error("HDF5 {0} was built without this filter")]
    Filter(String),
    /// Both codings of szip are set.
    #[error("both codings of szip are set, but a filter has only one: set one of them to 0")]
    OneSzip,
    /// The setting is only for programs with several ranks.
    #[error("it needs several MPI ranks")]
    Ranks,
    /// The setting is not for programs with several ranks.
    #[error("it is not available with several MPI ranks")]
    OneProcess,
    /// The libhdf5 is not parallel.
    #[error("HDF5 {0} was built without MPI")]
    NotParallel(String),
    /// The library contains its own zlib.
    #[error("HDF5 {0} brings its own zlib: name another libhdf5 with --hdf5")]
    OwnZlib(String),
    /// The object was not loaded in place of zlib.
    #[error("it was not loaded in place of libz.so.1: it has a different soname, or does not exist")]
    Preload,
    /// The setting is only for programs run by `raddle apply`.
    #[error("only raddle apply sets it, for other programs")]
    Applied,
    /// The setting needs Lustre.
    #[error("it needs a file system with stripes")]
    Stripes,
}

/// Formats a TOML error without its source excerpt: `TOML parse error at line 2, column 1: unknown field ...`.
fn in_a_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().filter(|line| line.contains(" at line "));
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    place.map_or_else(|| message.clone(), |place| format!("{place}: {message}"))
}
