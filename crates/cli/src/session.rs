//! Environment of a running command: progress, signals, and their shutdown.

use crate::exit::Exit;
use crate::options::running::VerbosityArgs;
use crate::progress::Progress;
use crate::ranks::{PostponedReport, Ranks};
use crate::signals::{self, SignalFlag};
use raddle::Context;
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_core::report::InputDifference;
use raddle_core::report::progress::{Event, Observer, Severity};
use raddle_merge::options::Watch;
use std::path::Path;
use std::sync::Arc;

/// A running command, watched by the user.
#[derive(Debug)]
pub struct Session {
    progress: Progress,
    /// Destination of the outcome; `None` on ranks that do not lead.
    verbosity: Option<VerbosityArgs>,
    /// Destination of what the ranks report at their end; `None` for a single process.
    postponed: Option<Arc<PostponedReport>>,
    cancel: CancelToken,
    received: SignalFlag,
}

impl Session {
    /// Starts progress and signal handling. `command` is the name of the run in the log; `files` are those that it
    /// reads and writes.
    ///
    /// # Errors
    /// If log or report would overwrite one of the files, the log cannot be created, or signals cannot be handled.
    pub fn start(
        verbosity: &VerbosityArgs,
        command: &str,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Self, Error> {
        verbosity.check(files)?;
        Self::with(Progress::start(verbosity, command)?, Some(verbosity.clone()))
    }

    /// Collective. Like [`Session::start`], for a command executed by several ranks; the first rank shows progress and
    /// writes the log.
    ///
    /// # Errors
    /// As for [`Session::start`], on every rank.
    pub fn start_collective(
        team: &Ranks,
        verbosity: &VerbosityArgs,
        command: &str,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Self, Error> {
        let local = match team.leads() {
            true => Self::start(verbosity, command, files),
            false => Self::with(Progress::silent(), None),
        };
        let local = local.map(|session| Self { postponed: Some(team.postponed()), ..session });
        team.agree("start", local)
    }

    fn with(progress: Progress, verbosity: Option<VerbosityArgs>) -> Result<Self, Error> {
        let cancel = CancelToken::new();
        let stop = cancel.clone();
        let received = signals::watch(move || stop.cancel())
            .map_err(|cause| Error::new(Exit::Limit, &format!("signals cannot be watched: {cause}")))?;
        Ok(Self { progress, verbosity, postponed: None, cancel, received })
    }

    /// Runs `work`, then ends the progress and turns a cancelled run into the exit code of its signal. A failure that only
    /// repeats that of another rank is reported by [`Ranks::end`], which learns the cause.
    pub fn conclude(&self, work: impl FnOnce(&Watch<'_>) -> Result<Exit, Error>) -> Result<Exit, Error> {
        let watch = Watch { observer: &self.progress, cancel: &self.cancel };
        let outcome = work(&watch).map_err(|mut failure| {
            if failure.exit == Exit::Interrupted {
                failure.exit = self.received.exit();
                // Otherwise the signal arrived on another rank.
                failure.is_secondary |= !self.received.any();
            }
            failure
        });
        match (&outcome, &self.postponed) {
            (Err(failure), Some(postponed)) if failure.is_secondary => {
                postponed.set(self.verbosity.clone(), self.progress.finish_without_outcome());
                outcome
            }
            _ => self.report(outcome),
        }
    }

    /// Writes the outcome to log and report.
    fn report(&self, outcome: Result<Exit, Error>) -> Result<Exit, Error> {
        if let Err(failure) = &outcome {
            self.progress.failed(failure);
            if let Some(verbosity) = &self.verbosity {
                // The failure of the work is more important than one of writing the report.
                let _ = verbosity.write_failure(failure);
            }
        }
        let exit = outcome.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
        let logged = self.progress.finish(exit.code());
        // The failure of the work is more important than one of the log.
        outcome.and_then(|exit| logged.map(|()| exit))
    }

    /// Collective. Runs `work` with the ranks of `team`, like [`Session::conclude`].
    pub fn run(&self, team: &Ranks, work: impl FnOnce(&Context<'_>) -> Result<Exit, Error>) -> Result<Exit, Error> {
        self.conclude(|watch| work(&Context { watch: *watch, ranks: team.ranks(), default_jobs: team.default_jobs() }))
    }

    /// Shows a warning (not with `--quiet`).
    pub fn warn(&self, text: &str) {
        self.progress.event(&Event::Message { severity: Severity::Warning, text: text.to_owned() });
    }

    /// Logs differences between inputs, if there are any.
    pub fn note_differences(&self, differences: Vec<InputDifference>) {
        if !differences.is_empty() {
            self.progress.event(&Event::Differences { differences });
        }
    }

    /// Shows lines with names that are already escaped (not with `--quiet`).
    pub fn say(&self, lines: &str) {
        self.progress.say(lines.trim_end());
    }
}
