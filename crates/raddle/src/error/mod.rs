//! The error of a request: cause, location, advice and exit code, as text for people and as plain data for programs.
//!
//! Errors of all other crates are converted here and nowhere else, one file per crate.

mod events;
mod hdf5;
mod idx;
mod merge;
mod query;
mod tune;

use crate::advice::{Advice, AvailableOptions};
use crate::exit::Exit;
use crate::text::escape;
use raddle_core::CoreError;
use raddle_core::ranks::communicator::AgreedError;
use raddle_core::report::InputDifference;
use raddle_merge::append::StackedScalars;
use raddle_merge::schema::join::Difference;
use raddle_merge::write::SkippedInput;
use serde::Serialize;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// Advice for ranks that have different options.
const OTHER_OPTIONS: &str =
    "start all ranks with the same options; if they find different profiles with --profile auto, name the file of one";

/// Descriptions of errors of the operating system for outputs that have no space.
const NO_SPACE: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// Advice for an output that has no space.
const MORE_SPACE: &str = "free some space, or write to another file system";

/// Error of a request.
#[derive(Debug)]
pub struct Error {
    /// The exit code.
    pub exit: Exit,
    /// Whether the error only repeats the failure of another rank.
    pub is_secondary: bool,
    /// Error number of the operating system, if it is the whole cause.
    pub errno: Option<i32>,
    /// Fault of the file, as a single word, if a single file is the cause.
    file_fault: Option<&'static str>,
    what: String,
    details: Option<String>,
    hint: Option<String>,
    /// Advice from which the hint was made, if it names options; boxed so that results stay small.
    advice: Option<Box<Advice>>,
    /// Faults of the inputs; boxed so that results stay small.
    faults: Box<InputFaults>,
}

/// Faults of the inputs.
#[derive(Debug, Default)]
struct InputFaults {
    /// Differences between inputs, if these are the cause.
    differences: Vec<InputDifference>,
    /// Table of these differences, with options as keywords of Python.
    table_with_keywords: Option<String>,
    /// Inputs that cannot be read.
    bad_inputs: Vec<SkippedInput>,
}

/// A failure in the form printed as JSON. The fields are a stable interface: fields may be added, but not renamed.
#[derive(Debug, Serialize)]
pub struct ErrorRecord<'a> {
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

impl AgreedError for Error {
    fn message(&self) -> String {
        self.what.clone()
    }

    fn of_ranks(error: CoreError) -> Self {
        Self::new(Exit::Internal, &error.to_string()).echo()
    }
}

impl Error {
    /// Creates a failure with one message, which may quote names from files.
    pub fn new(exit: Exit, what: &str) -> Self {
        let mut what = escape::text(what).into_owned();
        if let Some((end, _)) = what.char_indices().nth(MAX_MESSAGE_LEN) {
            what.truncate(end);
            what.push('…');
        }
        // Errors of all crates quote the operating system, but few keep its error number.
        let is_full = exit == Exit::Output && NO_SPACE.iter().any(|reason| what.contains(reason));
        Self {
            exit,
            is_secondary: false,
            errno: None,
            file_fault: None,
            what,
            details: None,
            hint: is_full.then(|| MORE_SPACE.to_owned()),
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
        self.is_secondary = true;
        self
    }

    /// Adds the error number of the operating system that caused it, if any.
    #[must_use]
    fn caused_by(mut self, errno: Option<i32>) -> Self {
        self.errno = errno;
        self
    }

    /// Returns the fault of the file as a single word, if a single file is the cause.
    pub fn file_fault(&self) -> Option<&'static str> {
        self.file_fault
    }

    /// Returns the kind as a single word, for programs.
    pub fn kind(&self) -> &'static str {
        match self.exit {
            _ if self.is_secondary => "rank_failed",
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
    pub fn record(&self) -> ErrorRecord<'_> {
        ErrorRecord {
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
            error: ErrorRecord<'a>,
        }
        if self.what.is_empty() { String::new() } else { crate::text::json(&Record { error: self.record() }) }
    }

    /// Returns the differences between the inputs that caused the error; empty if it has another cause.
    pub fn differences(&self) -> &[InputDifference] {
        &self.faults.differences
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        (self.hint, self.advice) = (Some(hint.to_owned()), None);
        self
    }

    /// Adds advice after the remedy for a bad input, or in place of other advice.
    #[must_use]
    pub(crate) fn hint_after_remedy(self, hint: &str) -> Self {
        let remedy = self.hint.clone().filter(|_| self.exit == Exit::InputRefused);
        let texts: Vec<&str> = remedy.iter().map(String::as_str).chain([hint]).collect();
        self.hint(&texts.join("; "))
    }

    /// Adds alternative remedies. Some of them may not apply to the command.
    #[must_use]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.hint = advice.text();
        self.advice = Some(Box::new(advice));
        self
    }

    /// Changes the advice to that for an append with these differences to a file with `stacked` scalars.
    #[must_use]
    pub fn for_append(self, differences: &[Difference], stacked: StackedScalars) -> Self {
        match self.advice.clone() {
            Some(advice) => self.advise(advice.for_append(differences, stacked)),
            None => self,
        }
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

    /// Removes an option, which the request does not accept, from the advice.
    #[must_use]
    pub(crate) fn without_option(self, option: &str) -> Self {
        match self.advice.clone() {
            Some(advice) => self.advise(advice.without(option)),
            None => self,
        }
    }

    /// Returns the message, without the lines below it and the advice.
    pub fn message(&self) -> &str {
        &self.what
    }

    /// Returns the lines below the message, with options as keywords of Python where they name any.
    pub fn details_with_keywords(&self) -> Option<&str> {
        self.faults.table_with_keywords.as_deref().or(self.details.as_deref())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_without_space_gets_advice() {
        let what = format!("out.h5: write chunks failed: {}", std::io::Error::from_raw_os_error(28));
        let hint = |exit| Error::new(exit, &what).explanation().1.map(str::to_owned);
        assert_eq!(hint(Exit::Output).as_deref(), Some(MORE_SPACE), "{what}");
        assert_eq!(hint(Exit::InputRefused), None);
    }
}
