//! What can go wrong with workloads, runs and profiles; every variant names the file or setting and what to do.

use crate::knob::{Knob, Value};
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = TuneError> = std::result::Result<T, E>;

/// An error of measuring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A value that an option of `raddle idx write` cannot have.
    #[error("{}: [idx] {option} cannot be {value}", path.display())]
    IdxValue {
        /// Profile.
        path: PathBuf,
        /// Option.
        option: &'static str,
        /// Value.
        value: Value,
    },
    /// The operating system refused.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// A profile or workload that is no TOML of this form.
    #[error("{}: not a {what} of this version: {}", path.display(), in_a_line(source))]
    Form {
        /// File.
        path: PathBuf,
        /// `profile` or `workload`.
        what: &'static str,
        /// Cause, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A profile that a newer raddle wrote.
    #[error("{}: a profile of form {found}, this raddle knows form {known}: use the raddle that wrote it, or a newer one", path.display())]
    Newer {
        /// File.
        path: PathBuf,
        /// Its form.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A value that the setting cannot have.
    #[error("{knob} cannot be {value}: it is {}", knob.kind())]
    Value {
        /// Setting.
        knob: Knob,
        /// Value.
        value: Value,
    },
    /// A setting under a heading that is not its own.
    #[error("{}: {knob} belongs under [{belongs}.{knob}]", path.display())]
    Heading {
        /// File.
        path: PathBuf,
        /// Setting.
        knob: Knob,
        /// Where it should be.
        belongs: &'static str,
    },
    /// Not a version of HDF5.
    #[error("{text:?} is no version of HDF5: give two numbers, for example 1.10")]
    Reader {
        /// What was given.
        text: String,
    },
    /// A workload that contradicts itself.
    #[error("{}: experiment {experiment}: {fault}", path.display())]
    Workload {
        /// File, or name of the preset.
        path: PathBuf,
        /// Experiment, or where it would stand.
        experiment: String,
        /// What is wrong.
        fault: WorkloadFault,
    },
    /// Neither a preset nor a file.
    #[error("{name}: no such workload: give a file, or one of {}", crate::workload::preset_names().join(", "))]
    NoSuchWorkload {
        /// What was given.
        name: String,
    },
    /// A setting that this library, on this machine, does not have.
    #[error("{knob} = {value} is not to be had: {why}")]
    NotApplicable {
        /// Setting.
        knob: Knob,
        /// Value.
        value: Value,
        /// Why.
        why: Obstacle,
    },
    /// HDF5 refused.
    #[error(transparent)]
    Hdf5(#[from] raddle_hdf5::Hdf5Error),
    /// Ranks that do not see each other.
    #[error("{wanted} ranks were started, but the MPI of {} sees {found}: name the launcher of that MPI with --mpirun", library.display())]
    OtherLauncher {
        /// The libhdf5 whose MPI it is.
        library: PathBuf,
        /// Ranks in the world.
        found: u32,
        /// Ranks that were asked for.
        wanted: u32,
    },
    /// A worker's answer or request that is none.
    #[error("a worker said what makes no sense: {source}")]
    Answer {
        /// Cause.
        source: serde_json::Error,
    },
    /// Too little free space for the files of runs.
    #[error("{}: {free_len_bytes} bytes are free, runs may take {needed_len_bytes}: name another folder, or a smaller scale", folder.display())]
    NoSpace {
        /// Folder.
        folder: PathBuf,
        /// What runs may take.
        needed_len_bytes: u64,
        /// What is free.
        free_len_bytes: u64,
    },
    /// An experiment without a default.
    #[error("there is nothing to compare")]
    NothingToCompare,
    /// The user or the system asked to stop.
    #[error("stopped before it was done")]
    Cancelled,
    /// A worker that could not do its run.
    #[error("a run failed: {message}")]
    Run {
        /// What the worker said, or how it ended.
        message: String,
    },
}

/// What is wrong with a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadFault {
    /// There is no experiment at all.
    #[error("a workload has at least one")]
    None,
    /// Two of one name.
    #[error("there is another of this name")]
    Twice,
    /// Nothing is compared.
    #[error("nothing is compared: give knobs or variants")]
    NothingCompared,
    /// The kernel cannot be understood.
    #[error("its kernel: {}", in_a_line(.0))]
    Kernel(Box<toml::de::Error>),
    /// A number of the kernel is 0, or so large that nothing can be that long.
    #[error("its kernel: {0} is 0 or too large")]
    Size(&'static str),
    /// Numbers of the kernel that exclude each other.
    #[error("its kernel: {0}")]
    Conflict(&'static str),
    /// A variant whose ranks are not a number.
    #[error("ranks of a variant is a whole number from 1 to {}", crate::workload::MOST_RANKS)]
    Ranks,
    /// A variant whose library is not a text.
    #[error("library is a text: a path, or a name that the system's loader finds")]
    Library,
    /// A kernel that one process carries out.
    #[error("its kernel: {0} is for one process: leave ranks out")]
    NotForRanks(&'static str),
    /// A value of a setting.
    #[error(transparent)]
    Setting(Box<TuneError>),
    /// A chunk for another number of dimensions.
    #[error("chunk {shape:?} does not fit datasets of {dims:?}")]
    Chunk {
        /// Shape.
        shape: Vec<u64>,
        /// Extent.
        dims: Vec<u64>,
    },
    /// The experiment that the profile is to come from is not there.
    #[error("is to give the profile, and is not there")]
    NoSource,
}

/// Why a setting is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// Too old a library.
    #[error("HDF5 {0} does not know it")]
    Version(String),
    /// Built without a filter.
    #[error("HDF5 {0} was built without this filter")]
    Filter(String),
    /// Both codings of szip at once.
    #[error("szip is set, too, and a filter has one coding: set one of both to 0")]
    OneSzip,
    /// Only for programs of several ranks.
    #[error("it takes several ranks of MPI")]
    Ranks,
    /// Not for programs of several ranks.
    #[error("ranks of MPI do not have it")]
    OneProcess,
    /// The libhdf5 is not parallel.
    #[error("HDF5 {0} was built without MPI")]
    NotParallel(String),
    /// The library has a zlib inside.
    #[error("HDF5 {0} brings its own zlib: name another libhdf5 with --hdf5")]
    OwnZlib(String),
    /// The object was not loaded in place of zlib.
    #[error("it was not loaded in place of libz.so.1: it has another soname, or is not there")]
    Preload,
    /// Only for programs that are not raddle's.
    #[error("raddle apply sets it, for other programs")]
    Applied,
    /// Only on Lustre.
    #[error("it takes a file system with stripes")]
    Stripes,
    /// Does not fit the datasets of the kernel.
    #[error("it does not fit the datasets {0:?}")]
    Dims(Vec<u64>),
}

/// An error of TOML without the picture of the place: `TOML parse error at line 2, column 1: unknown field ...`.
fn in_a_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().filter(|line| line.contains(" at line "));
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    place.map_or_else(|| message.clone(), |place| format!("{place}: {message}"))
}
