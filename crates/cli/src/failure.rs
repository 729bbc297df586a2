//! The error with which a command stops: cause, location, advice and exit code. Printed as text for people and as JSON
//! for programs.
//!
//! Errors of all other crates are converted here and nowhere else.

use crate::advice::{Advice, AvailableOptions, remedy_of_io};
use crate::exit::Exit;
use crate::render::{differences, escape, keys, quantity};
use raddle_core::CoreError;
use raddle_core::output::folder_of;
use raddle_core::ranks::communicator::AgreedError;
use raddle_core::report::InputDifference;
use raddle_events::EventsError;
use raddle_hdf5::Hdf5Error;
use raddle_idx::dataset::compression::BlockFault;
use raddle_idx::{ErrorKind as IdxErrorKind, IdxError, TimeFault};
use raddle_merge::error::{BadInput, MergeError};
use raddle_merge::write::SkippedInput;
use raddle_tune::TuneError;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Error of a command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// Whether it only repeats the failure of another rank.
    pub is_echo: bool,
    /// Error number of the operating system, if it is the whole cause.
    pub errno: Option<i32>,
    what: String,
    details: Option<String>,
    hint: Option<String>,
    /// Advice from which the hint was made, if it names options.
    advice: Option<Advice>,
    /// Faults of the inputs; boxed so that results stay small.
    faults: Box<InputFaults>,
}

/// Faults of the inputs.
#[derive(Debug, Default)]
struct InputFaults {
    /// Differences between inputs, if these are the cause.
    differences: Vec<InputDifference>,
    /// Inputs that cannot be read.
    bad_inputs: Vec<SkippedInput>,
}

/// A failure in the form printed as JSON. The fields are a stable interface: fields may be added, but not renamed.
#[derive(Debug, Serialize)]
pub struct FailureRecord<'a> {
    /// Kind of the failure, as a single word.
    pub kind: &'static str,
    /// The exit code.
    pub exit_code: u8,
    /// Description in one line.
    pub message: &'a str,
    /// Advice, if there is any.
    pub hint: Option<&'a str>,
    /// Differences between the inputs.
    pub differences: &'a [InputDifference],
    /// Inputs that cannot be read, with the reasons.
    pub bad_inputs: &'a [SkippedInput],
}

/// Maximum length of a printed message, in characters: an error may quote a name of 64 KiB.
const MAX_MESSAGE_LEN: usize = 2000;

impl AgreedError for Failure {
    fn message(&self) -> String {
        self.what.clone()
    }

    fn of_ranks(error: CoreError) -> Self {
        Self::new(Exit::Internal, &error.to_string()).echo()
    }
}

impl Failure {
    /// Creates a failure with one message, which may quote names from files.
    pub fn new(exit: Exit, what: &str) -> Self {
        let mut what = escape::text(what).into_owned();
        if let Some((end, _)) = what.char_indices().nth(MAX_MESSAGE_LEN) {
            what.truncate(end);
            what.push('…');
        }
        Self {
            exit,
            is_echo: false,
            errno: None,
            what,
            details: None,
            hint: None,
            advice: None,
            faults: Box::default(),
        }
    }

    /// Creates the failure of an invalid command line.
    pub fn usage(what: &str) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Marks the failure as that of another rank.
    #[must_use]
    pub fn echo(mut self) -> Self {
        self.is_echo = true;
        self
    }

    /// Adds the error number of the operating system that caused it, if any.
    #[must_use]
    fn caused_by(mut self, errno: Option<i32>) -> Self {
        self.errno = errno;
        self
    }

    /// Returns the message alone.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the kind as a single word, for programs.
    pub fn kind(&self) -> &'static str {
        match self.exit {
            _ if self.is_echo => "rank_failed",
            Exit::InputRefused if self.errno.is_some() => "io",
            Exit::Usage => "usage",
            Exit::InputRefused | Exit::InputsSkipped => "input_refused",
            Exit::Output => "output",
            Exit::Limit => "limit",
            Exit::Locked => "locked",
            Exit::Mismatch => "mismatch",
            Exit::Interrupted | Exit::Announced | Exit::Terminated => "interrupted",
            Exit::Done | Exit::Internal => "internal",
        }
    }

    /// Converts the failure for programs.
    pub fn record(&self) -> FailureRecord<'_> {
        FailureRecord {
            kind: self.kind(),
            exit_code: self.exit.code(),
            message: &self.what,
            hint: self.hint.as_deref(),
            differences: &self.faults.differences,
            bad_inputs: &self.faults.bad_inputs,
        }
    }

    /// Formats the failure as the output of `--json`; empty for a failure without a message.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Record<'a> {
            error: FailureRecord<'a>,
        }
        if self.what.is_empty() { String::new() } else { crate::render::json(&Record { error: self.record() }) }
    }

    /// Returns the differences between the inputs, if these are the cause.
    pub fn differences(&self) -> &[InputDifference] {
        &self.faults.differences
    }

    /// Prints the failure on standard error and returns its exit code.
    pub fn tell(&self) -> Exit {
        anstream::eprint!("{}", self.render());
        self.exit
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        (self.hint, self.advice) = (Some(hint.to_owned()), None);
        self
    }

    /// Adds alternative remedies, of which the command may not support all.
    #[must_use]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.hint = advice.text();
        self.advice = Some(advice);
        self
    }

    /// Restricts the advice to remedies that the command supports.
    #[must_use]
    pub fn offered_by(self, offers: &AvailableOptions) -> Self {
        match self.advice.clone() {
            Some(advice) => self.advise(advice.offered_by(offers)),
            None => self,
        }
    }

    /// Adds lines to show below the message; names in them must already be escaped.
    #[must_use]
    pub fn details(mut self, details: String) -> Self {
        self.details = Some(details);
        self
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.what
    }

    /// Returns the lines below the message, which may contain escape sequences, and the advice.
    pub fn explanation(&self) -> (Option<&str>, Option<&str>) {
        (self.details.as_deref(), self.hint.as_deref())
    }

    /// Creates the failure for an auxiliary file (report, log, manual page) that could not be written.
    pub fn writing(path: &Path, cause: &std::io::Error) -> Self {
        Self::new(Exit::Output, &format!("{}: cannot be written: {cause}", escape::path(path)))
    }

    /// Creates the failure for standard output that could not be written. A reader that has exited (`| head`) is not a
    /// failure: nothing is reported.
    pub fn standard_output(cause: std::io::Error) -> Self {
        match cause.kind() {
            ErrorKind::BrokenPipe => Self::new(Exit::Done, ""),
            _ => Self::new(Exit::Output, &format!("standard output: {cause}")),
        }
    }

    /// Creates the failure for standard input that could not be read.
    pub fn standard_input(cause: &std::io::Error) -> Self {
        Self::new(Exit::InputRefused, &format!("standard input: {cause}"))
    }

    /// Converts the error of a merge, rechunk or verification of `inputs`.
    pub fn of_merge(error: &MergeError, inputs: &[PathBuf]) -> Self {
        if let MergeError::Resumable { source, path, kept } = error {
            let path = escape::path(path);
            let what = match kept.tiles {
                0 => format!("the partial output of an earlier run is still in {path}"),
                _ => format!("{} of finished chunks are kept in {path}", quantity::size(kept.stored_len_bytes)),
            };
            return Self::of_merge(source, inputs)
                .hint(&format!("{what}: the same command resumes from there (--no-resume starts over)"));
        }
        let failure = Self::new(exit_of(error, inputs), &error.to_string());
        match error {
            MergeError::BadInputs { bad } => {
                let count = quantity::count(bad.len() as u64);
                let what = format!("{count} of {} inputs cannot be read; nothing was written", inputs.len());
                let first = bad.first().and_then(|bad| errno_of(&bad.error));
                let errno = first.filter(|&errno| bad.iter().all(|bad| errno_of(&bad.error) == Some(errno)));
                let failure = match bad.as_slice() {
                    [bad] => {
                        let (path, reason) = (escape::path(&bad.path), differences::reason(bad));
                        Self::new(failure.exit, &format!("{path}: {reason}; nothing was written"))
                    }
                    bad => Self::new(failure.exit, &what).details(differences::bad_inputs(bad)),
                };
                let mut failure = failure.advise(Advice::on_bad_inputs(bad.iter().map(|bad| &bad.error)));
                let shown = |bad: &BadInput| SkippedInput { path: bad.path.clone(), reason: bad.error.to_string() };
                failure.faults.bad_inputs = bad.iter().map(shown).collect();
                failure.caused_by(errno)
            }
            MergeError::SortKeys { missing } => {
                let count = quantity::count(missing.len() as u64);
                let what = format!("{count} of {} inputs have no value to sort by; nothing was written", inputs.len());
                Self::new(failure.exit, &what)
                    .details(differences::missing_keys(missing))
                    .hint("leave these inputs out, or sort by datasets that all inputs have")
            }
            MergeError::Differences { differences } => {
                let count = quantity::counted(differences.len() as u64, "difference");
                let what = format!("the inputs do not fit together: {count}; nothing was written");
                let mut failure = Self::new(failure.exit, &what)
                    .details(differences::table(differences, inputs))
                    .advise(Advice::on_differences(differences));
                failure.faults.differences = differences.iter().map(|difference| difference.of_inputs(inputs)).collect();
                failure
            }
            MergeError::Repeated { repeated, .. } => {
                let count = quantity::count(repeated.len() as u64);
                let what = format!("{count} of {} inputs are in the file already; nothing was written", inputs.len());
                Self::new(failure.exit, &what)
                    .details(differences::repeated(repeated))
                    .advise(Advice::one_of(&["leave them out", "append their rows again with --again"]))
            }
            error if error.is_echo() => failure.echo(),
            MergeError::Input { source, .. } => {
                failure.advise(Advice::one_of(&[remedy_of_io(source)])).caused_by(source.raw_os_error())
            }
            MergeError::Hdf5(source) => {
                let errno = errno_of(source);
                match failure.exit {
                    Exit::InputRefused => failure.advise(Advice::on_bad_values(source, inputs.len())).caused_by(errno),
                    _ => failure.caused_by(errno),
                }
            }
            MergeError::PartDiffers { .. } => failure.hint(
                "give every part the same inputs and options, or start over with --no-resume, which removes parts of other merges",
            ),
            // The only tile observer is the preview, made by the IDX writer.
            MergeError::TileObserver { source } => {
                source.downcast_ref::<IdxError>().map_or(failure, Self::of_idx)
            }
            MergeError::InUse { .. } => failure.hint("close the file there and run the same command again"),
            MergeError::KeyFaults { faults } => {
                let count = quantity::counted(faults.len() as u64, "table");
                Self::new(failure.exit, &format!("{count} cannot get keys; nothing was written"))
                    .details(keys::faults(faults))
                    .hint(keys::advice(faults))
            }
            MergeError::Core(CoreError::Memory { purpose, needed_bytes, limit_bytes, .. }) => {
                let (needed, limit) = (quantity::size(*needed_bytes), quantity::size(*limit_bytes));
                let what = format!("{purpose} needs {needed} of memory; the budget is {limit}");
                Self::new(failure.exit, &what).advise(Advice::one_of(&[
                    "raise --memory",
                    "use fewer --jobs",
                    "make smaller chunks (--for random, --chunk)",
                ]))
            }
            MergeError::Oversized { .. } => failure.advise(Advice::one_of(&[
                "check the dimensions of the dataset in that file",
                "leave it out with --exclude",
            ])),
            MergeError::LongChunks { object, input, chunk_len_bytes, needed, limit } => {
                let [chunk, needed, limit] = [*chunk_len_bytes, *needed, *limit].map(quantity::size);
                let message = format!(
                    "{object}: its chunks in {} are {chunk} each, and reading them needs {needed} of memory; the budget is {limit}",
                    escape::path(input)
                );
                Self::new(failure.exit, &message).advise(Advice::one_of(&["raise --memory", "check that file"]))
            }
            MergeError::OutputTooLong { object, input, needed, limit } => {
                let (needed, limit) = (quantity::size(*needed), quantity::size(*limit));
                let input = input.display();
                let message =
                    format!("{object} of {input} and the others claim {needed} uncompressed, but the limit is {limit}");
                Self::new(failure.exit, &message).advise(Advice::one_of(&[
                    "check that file",
                    "raise --max-output if its dimensions are meant to be that large",
                ]))
            }
            _ => failure,
        }
    }

    /// Converts the error of writing or reading an IDX dataset.
    pub fn of_idx(error: &IdxError) -> Self {
        let exit = match error.kind() {
            IdxErrorKind::Usage => Exit::Usage,
            IdxErrorKind::Input => Exit::InputRefused,
            IdxErrorKind::Output => Exit::Output,
            IdxErrorKind::Limit => Exit::Limit,
            IdxErrorKind::Locked => Exit::Locked,
            IdxErrorKind::Cancelled => Exit::Interrupted,
            _ => Exit::Internal,
        };
        let failure = Self::new(exit, &error.to_string());
        match error {
            error if error.is_echo() => failure.echo(),
            IdxError::Core(CoreError::Cancelled) => Self::new(exit, "stopped before the end; nothing was published"),
            IdxError::Exists { .. } => failure.hint("replace it with --force, or name another output"),
            IdxError::OtherPreview { .. } => {
                failure.hint("name another folder with --preview=FOLDER, or remove this one if it is not needed")
            }
            IdxError::StepExists { .. } => failure
                .hint("name another step with --step, or rewrite the whole dataset with --force instead of --append"),
            IdxError::NoTime { fault: TimeFault::NotAdded, .. } => {
                failure.hint("rewrite it with --step N and --force instead of --append, or name another output")
            }
            IdxError::NoTime { fault: TimeFault::Unnamed, .. } => failure.hint("name one with --step"),
            IdxError::OnePhase { .. } => failure.hint("write raw blocks with -c none, or choose --phases two or three"),
            IdxError::Core(CoreError::Memory { .. }) => {
                failure.hint("use fewer --jobs, smaller blocks (--bits-per-block) or shards (--shard), or more ranks")
            }
            IdxError::Block { source: BlockFault::NotStored | BlockFault::NoFile, .. } => failure.hint(
                "read missing blocks as the default value with --missing-as-default, if they are missing on purpose",
            ),
            _ => failure,
        }
    }

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

    /// Converts the error of a measurement or of a profile.
    pub fn of_tune(error: &TuneError) -> Self {
        // A worker is another process, so only the text of its errors is available.
        let is_full = |message: &str| message.contains("No space left");
        let exit = match error {
            TuneError::NoSuchWorkload { .. } => Exit::Usage,
            TuneError::Io { operation: "reading the profile" | "reading the workload", .. } => Exit::InputRefused,
            TuneError::Io { .. } | TuneError::NoSpace { .. } => Exit::Output,
            TuneError::Run { message } if is_full(message) => Exit::Output,
            TuneError::Cancelled => Exit::Interrupted,
            TuneError::Answer { .. } | TuneError::NothingToCompare => Exit::Internal,
            _ => Exit::InputRefused,
        };
        let failure = Self::new(exit, &error.to_string());
        match error {
            TuneError::NoSpace { folder, needed_len_bytes, free_len_bytes } => {
                let (needed, free) = (quantity::size(*needed_len_bytes), quantity::size(*free_len_bytes));
                let what = format!("{}: {free} are free, but runs may need {needed}", folder.display());
                Self::new(exit, &what).hint("name a folder with more space with --scratch, or a smaller --scale")
            }
            TuneError::Run { message } if is_full(message) => {
                failure.hint("name a folder with more space with --scratch, or a smaller --scale")
            }
            TuneError::Io { operation: "making a scratch folder" | "asking for free space", .. } => {
                failure.hint("name a folder that can be written with --scratch")
            }
            _ => failure,
        }
    }

    /// Converts the error of reading an HDF5 file.
    pub fn of_input(error: &Hdf5Error) -> Self {
        let failure = Self::new(exit_of_hdf5(error, None), &error.to_string()).caused_by(errno_of(error));
        match error {
            Hdf5Error::InObject { source, .. } if matches!(**source, Hdf5Error::ForeignFile { .. }) => {
                failure.hint("copy the values with `raddle merge --follow-foreign-files` and read the copy")
            }
            Hdf5Error::NotHdf5 { format: Some(format), .. } => failure.hint(format.remedy()),
            _ => failure,
        }
    }

    /// Formats the message for the terminal: `error: ...`, details, advice. Empty for a failure without a message.
    pub fn render(&self) -> String {
        if self.what.is_empty() {
            return String::new();
        }
        let (red, bold, off) = ("\x1b[1;31m", "\x1b[1m", "\x1b[0m");
        let mut text = format!("{red}error:{off} {}\n", self.what);
        if let Some(details) = &self.details {
            text.push_str(details);
            if !details.ends_with('\n') {
                text.push('\n');
            }
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{bold}what to do:{off} {hint}\n"));
        }
        text
    }
}

fn exit_of(error: &MergeError, inputs: &[PathBuf]) -> Exit {
    match error {
        MergeError::Resumable { source, .. } => exit_of(source, inputs),
        MergeError::Pattern { .. } => Exit::Usage,
        MergeError::NoInputs { .. }
        | MergeError::Input { .. }
        | MergeError::Duplicate { .. }
        | MergeError::Unlistable { .. }
        | MergeError::NothingIncluded { .. }
        | MergeError::SortKeys { .. }
        | MergeError::Differences { .. }
        | MergeError::Repeated { .. }
        | MergeError::Contradiction { .. }
        | MergeError::KeyFaults { .. }
        | MergeError::NoDigests { .. }
        | MergeError::DigestsNewer { .. }
        | MergeError::DigestsDamaged { .. }
        | MergeError::Object { .. }
        | MergeError::Inexact { .. }
        | MergeError::Oversized { .. }
        | MergeError::PartDiffers { .. } => Exit::InputRefused,
        MergeError::Output { .. } | MergeError::Write { .. } | MergeError::Unaccompanied { .. } => Exit::Output,
        MergeError::Locked { .. } | MergeError::InUse { .. } => Exit::Locked,
        MergeError::BadInputs { bad } if bad.iter().all(|bad| exit_of_hdf5(&bad.error, None) == Exit::Limit) => {
            Exit::Limit
        }
        MergeError::BadInputs { .. } => Exit::InputRefused,
        MergeError::OutputTooLong { .. } | MergeError::LongChunks { .. } => Exit::Limit,
        MergeError::Cancelled => Exit::Interrupted,
        MergeError::Hdf5(error) => exit_of_hdf5(error, Some(inputs)),
        MergeError::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => Exit::Limit,
        _ => Exit::Internal,
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
        EventsError::OutputExists { .. } | EventsError::Text { .. } => Exit::Output,
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

/// Returns the exit of an HDF5 error: that of an input, unless the error names a file that is not an input and must be
/// the output.
fn exit_of_hdf5(error: &Hdf5Error, inputs: Option<&[PathBuf]>) -> Exit {
    match error {
        Hdf5Error::InObject { source, .. } => exit_of_hdf5(source, inputs),
        Hdf5Error::Io { source, .. } if is_exhaustion(source) => Exit::Limit,
        Hdf5Error::Memory { .. } => Exit::Limit,
        Hdf5Error::Limit { .. } => Exit::InputRefused,
        Hdf5Error::Io { path, .. } | Hdf5Error::Library { path, .. }
            if inputs.is_some_and(|inputs| !inputs.contains(path)) =>
        {
            Exit::Output
        }
        _ => Exit::InputRefused,
    }
}

/// Returns the operating system's error number that caused an HDF5 error.
fn errno_of(error: &Hdf5Error) -> Option<i32> {
    match error {
        Hdf5Error::InObject { source, .. } => errno_of(source),
        Hdf5Error::Io { source, .. } => source.raw_os_error(),
        _ => None,
    }
}

/// Whether the machine ran out of memory or open files.
fn is_exhaustion(error: &std::io::Error) -> bool {
    /// `EMFILE` and `ENFILE` on Linux; the standard library has no kind for them.
    const TOO_MANY_OPEN_FILES: [i32; 2] = [24, 23];
    error.kind() == ErrorKind::OutOfMemory
        || error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
}
